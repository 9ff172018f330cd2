import { Argument, Command, InvalidArgumentError } from 'commander';
import { LARGEST_SEED } from '../options.ts';
import type { SuiteName } from '../requirement.ts';
import { kitVersion } from '../run.ts';
import { addInitCommand } from './init.ts';
import { type CheckOptions, runCheck } from './run-check.ts';
import { SUITES } from './suites.ts';
import { paintFor } from './terminal.ts';

const AFTER = `
Exit codes: 0 if every MUST passed; 1 if a MUST failed; 2 for a wrong command line or target; 130 if interrupted.

Example:
  $ npx sealring-conformance list codec
`;

interface SuiteCommand {
  readonly summary: string;
  readonly description: string;
  readonly target: string;
  /** Additional options in the example command. */
  readonly example?: string;
  readonly addOptions?: (command: Command) => Command;
}

const COMMANDS: Readonly<Record<SuiteName, SuiteCommand>> = {
  codec: {
    summary: 'check a requestState codec',
    description: 'Checks a codec against the contract of requestState codecs.',
    addOptions: (command) =>
      command
        .option('--no-confidentiality', 'with --exec: tokens do not hide their payload')
        .option('--no-cross-instance', 'with --exec: other processes do not unseal the tokens of the program')
        .option('--no-rotation', 'with --exec: the program does not support the role "rotated"')
        .option(
          '--max-payload-bytes <n>',
          'with --exec: length of the longest payload that seal accepts',
          wholeNumber(1, Number.MAX_SAFE_INTEGER),
        ),
    target: `
  import { randomBytes } from 'node:crypto';
  import { AesGcmRequestStateCodec } from '@sealring/core';

  const [a, b] = [randomBytes(32), randomBytes(32)];
  const codec = (...keys) => ({ codec: new AesGcmRequestStateCodec(keys) });
  export default {
    name: 'my codec',
    create: () => codec(a),
    createPeer: () => codec(a),
    createStranger: () => codec(b),
    createRotated: () => codec(b, a),
  };`,
  },
  'key-wrapper': {
    summary: 'check a key wrapper',
    description: 'Checks a key wrapper against the contract of KeyWrapper.',
    target: `
  import { randomBytes } from 'node:crypto';
  import { localKeyWrapper } from '@sealring/core';

  const [ours, theirs] = [randomBytes(32), randomBytes(32)];
  export default {
    name: 'my key wrapper',
    create: () => ({ keyWrapper: localKeyWrapper({ masterKey: ours }) }),
    createOtherKey: () => ({ keyWrapper: localKeyWrapper({ masterKey: theirs }) }),
    supports: { remote: false, versions: false },
  };`,
  },
  'ring-store': {
    summary: 'check a ring store',
    description:
      'Checks a ring store on its real backend against the contract of RingStore. The checks write test documents.',
    addOptions: (command) =>
      command
        .option(
          '--rounds <n>',
          'number of contests between writers (default: as many as one second allows)',
          wholeNumber(1, 100_000),
        )
        .option('--writers <n>', 'number of writers in a contest (default: 20)', wholeNumber(2, 1_000)),
    example: '--rounds 5 ',
    target: `
  import { mkdtempSync, rmSync } from 'node:fs';
  import { tmpdir } from 'node:os';
  import { join } from 'node:path';
  import { fileRing } from '@sealring/core';

  const folder = mkdtempSync(join(tmpdir(), 'rings-'));
  export default {
    name: 'my ring store',
    create: (ringName) => ({ store: fileRing(join(folder, ringName + '.ring')) }),
  };
  export const close = () => rmSync(folder, { recursive: true });`,
  },
  'single-use': {
    summary: 'check a single-use store',
    description: 'Checks a single-use store against the contract of SingleUseStore, on its real backend.',
    target: `
  import { memorySingleUse } from '@sealring/mcp';

  const store = memorySingleUse();
  export default { name: 'my single-use store', create: () => ({ store }) };`,
  },
};

/** Creates the command line: one command for each suite, plus `list` and `init`. */
export function createProgram(): Command {
  const program = new Command('sealring-conformance')
    .description('Checks a requestState codec, a key wrapper, a ring store or a single-use store.')
    .version(kitVersion, '--version', 'print the version')
    .helpOption('--help', 'print this help')
    .exitOverride()
    // Prints an error and its suggestion on one line.
    .configureOutput({ outputError: (text, write) => write(`${text.trim().replaceAll('\n', ' ')}\n`) })
    .addHelpText('after', AFTER);
  const suites = Object.keys(COMMANDS) as SuiteName[];
  for (const suite of suites) addSuiteCommand(program, suite);
  addListCommand(program, suites);
  addInitCommand(program);
  return program;
}

function addSuiteCommand(program: Command, suite: SuiteName): void {
  const { summary, description, target, example = '', addOptions = (command) => command } = COMMANDS[suite];
  const command = program
    .command(suite)
    .summary(summary)
    .description(description)
    .argument('[target]', 'module that exports a target: .js, .mjs, .ts, .mts');
  if (suite !== 'single-use') {
    command.option('--exec <command>', 'check a program in any language that speaks JSON lines, instead of a module');
  }
  addOptions(command)
    .option('--report <file.html>', 'write an HTML report: one self-contained page')
    .option(
      '--json [file.json]',
      'write the report as JSON; without a file, to standard output (everything else goes to standard error)',
    )
    .option('--only <id>', 'check only these requirements; repeat the option or separate ids with commas', ids)
    .option('--seed <n>', 'repeat a run with the seed from its report or a finding', wholeNumber(0, LARGEST_SEED))
    .option('--timeout <seconds>', 'time limit for one requirement', seconds)
    .option('--no-color', 'print without colours, as with NO_COLOR=1')
    .option('--quiet', 'print only the findings and the verdict')
    .addHelpText(
      'after',
      `
The target, in a file target.mjs:
${target}

Example:
  $ npx sealring-conformance ${suite} target.mjs ${example}--report report.html
`,
    )
    .action(async (module: string | undefined, options: CheckOptions) => {
      process.exitCode = await runCheck(suite, module, options);
    });
}

function addListCommand(program: Command, suites: readonly SuiteName[]): void {
  program
    .command('list')
    .summary('list the requirements')
    .description('Lists the requirements of one suite or of all suites, with the id, level, text and source of each.')
    .addArgument(new Argument('[suite]', 'suite to list').choices(suites))
    .option('--no-color', 'print without colours, as with NO_COLOR=1')
    .addHelpText('after', '\nExample:\n  $ npx sealring-conformance list codec\n')
    .action((given: SuiteName | undefined, { color }: { readonly color: boolean }) => {
      const paint = paintFor(process.stdout, color);
      const lines = (given === undefined ? suites : [given]).flatMap((suite) =>
        SUITES[suite].requirements.map(
          ({ id, level, text, source }) => `${paint('bold', id)}  ${level}\n  ${text}\n  Source: ${source}\n`,
        ),
      );
      process.stdout.write(lines.join('\n'));
    });
}

function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= least && value <= most) return value;
    throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`);
  };
}

function seconds(text: string): number {
  const value = Number(text);
  if (/^[\d.]+$/.test(text) && value >= 0.1 && value <= 3_600) return value;
  throw new InvalidArgumentError('It must be a number of seconds from 0.1 to 3600.');
}

function ids(text: string, before: readonly string[] = []): readonly string[] {
  const given = text.split(',').flatMap((id) => (id.trim() === '' ? [] : [id.trim()]));
  if (given.length === 0) throw new InvalidArgumentError('It must name a requirement.');
  return [...before, ...given];
}
