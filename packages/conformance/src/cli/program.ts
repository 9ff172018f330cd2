import { Command } from 'commander';
import { kitVersion } from '../version.ts';
import { addCodecCommand } from './codec.ts';
import { addInitCommand } from './init.ts';
import { addKeyWrapperCommand } from './key-wrapper.ts';
import { addListCommand } from './list.ts';
import { addRingStoreCommand } from './ring-store.ts';
import { addSingleUseCommand } from './single-use.ts';

const AFTER = `
Exit code: 0 every MUST passed, 1 a MUST failed, 2 the command line or the target is wrong, 130 interrupted.

Example:
  $ npx sealring-conformance list codec
`;

/** The command line: one command for each suite, and `list`. Each command is a file of its own. */
export function createProgram(): Command {
  const program = new Command('sealring-conformance')
    .description('Checks a requestState codec, a key wrapper, a ring store or a single-use store.')
    .version(kitVersion, '--version', 'print the version')
    .helpOption('--help', 'print this help')
    .exitOverride()
    // One line, a suggestion included.
    .configureOutput({ outputError: (text, write) => write(`${text.trim().replaceAll('\n', ' ')}\n`) })
    .addHelpText('after', AFTER);
  addCodecCommand(program);
  addKeyWrapperCommand(program);
  addRingStoreCommand(program);
  addSingleUseCommand(program);
  addListCommand(program);
  addInitCommand(program);
  return program;
}
