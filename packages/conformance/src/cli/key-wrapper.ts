import type { Command } from 'commander';
import { addCheckOptions, type CheckOptions } from './check-options.ts';
import { runCheck } from './run-check.ts';

const EXAMPLE = `
The target, in a file target.mjs:

  import { randomBytes } from 'node:crypto';
  import { localKeyWrapper } from '@sealring/core';

  const [ours, theirs] = [randomBytes(32), randomBytes(32)];
  export default {
    name: 'my key wrapper',
    create: () => ({ keyWrapper: localKeyWrapper({ masterKey: ours }) }),
    createOtherKey: () => ({ keyWrapper: localKeyWrapper({ masterKey: theirs }) }),
    supports: { remote: false, versions: false },
  };

Example:
  $ npx sealring-conformance key-wrapper target.mjs --report report.html
`;

export function addKeyWrapperCommand(program: Command): void {
  const command = program
    .command('key-wrapper')
    .summary('try a key wrapper')
    .description('Checks a key wrapper against the contract of KeyWrapper.')
    .argument('[target]', 'module that exports a target: .js, .mjs, .ts, .mts');
  addCheckOptions(command)
    .addHelpText('after', EXAMPLE)
    .action(async (module: string | undefined, options: CheckOptions) => {
      process.exitCode = await runCheck('key-wrapper', module, options);
    });
}
