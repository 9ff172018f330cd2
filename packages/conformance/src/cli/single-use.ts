import type { Command } from 'commander';
import { addCheckOptions, type CheckOptions } from './check-options.ts';
import { runCheck } from './run-check.ts';

const EXAMPLE = `
The target, in a file target.mjs:

  import { memorySingleUse } from '@sealring/mcp';

  const store = memorySingleUse();
  export default { name: 'my single-use store', create: () => ({ store }) };

Example:
  $ npx sealring-conformance single-use target.mjs --report report.html
`;

export function addSingleUseCommand(program: Command): void {
  const command = program
    .command('single-use')
    .summary('try a single-use store')
    .description('Checks a single-use store against the contract of SingleUseStore, on its real backend.')
    .argument('[target]', 'module that exports a target: .js, .mjs, .ts, .mts');
  addCheckOptions(command)
    .addHelpText('after', EXAMPLE)
    .action(async (module: string | undefined, options: CheckOptions) => {
      process.exitCode = await runCheck('single-use', module, options);
    });
}
