import type { Command } from 'commander';
import { addCheckOptions, type CheckOptions, wholeNumber } from './check-options.ts';
import { runCheck } from './run-check.ts';

const EXAMPLE = `
The target, in a file target.mjs:

  import { mkdtempSync, rmSync } from 'node:fs';
  import { tmpdir } from 'node:os';
  import { join } from 'node:path';
  import { fileRing } from '@sealring/core';

  const folder = mkdtempSync(join(tmpdir(), 'rings-'));
  export default {
    name: 'my ring store',
    create: (ringName) => ({ store: fileRing(join(folder, ringName + '.ring')) }),
  };
  export const close = () => rmSync(folder, { recursive: true });

Example:
  $ npx sealring-conformance ring-store target.mjs --rounds 5 --report report.html
`;

export function addRingStoreCommand(program: Command): void {
  const command = program
    .command('ring-store')
    .summary('try a ring store')
    .description(
      'Checks a ring store against the contract of RingStore, on its real backend: it writes documents of its own.',
    )
    .argument('[target]', 'module that exports a target: .js, .mjs, .ts, .mts')
    .option('--rounds <n>', 'contests between writers; default as many as three seconds allow', wholeNumber(1, 100_000))
    .option('--writers <n>', 'writers in a contest; default 20', wholeNumber(2, 1_000));
  addCheckOptions(command)
    .addHelpText('after', EXAMPLE)
    .action(async (module: string | undefined, options: CheckOptions) => {
      process.exitCode = await runCheck('ring-store', module, options);
    });
}
