import { Argument, type Command } from 'commander';
import type { SuiteName } from '../report.ts';
import { paintFor } from './paint.ts';
import { SUITES } from './suites.ts';

const EXAMPLE = `
Example:
  $ npx sealring-conformance list codec
`;

export function addListCommand(program: Command): void {
  const names = Object.keys(SUITES) as SuiteName[];
  program
    .command('list')
    .summary('list the requirements')
    .description('Lists the requirements of one suite, or of all: id, level, text and source.')
    .addArgument(new Argument('[suite]', 'which suite').choices(names))
    .option('--no-color', 'no colours; NO_COLOR=1 does the same')
    .addHelpText('after', EXAMPLE)
    .action((suite: SuiteName | undefined, { color }: { readonly color: boolean }) => {
      const paint = paintFor(process.stdout, color);
      const lines = (suite === undefined ? names : [suite]).flatMap((name) =>
        SUITES[name].requirements.map(
          ({ id, level, text, source }) => `${paint('bold', id)}  ${level}\n  ${text}\n  Source: ${source}\n`,
        ),
      );
      process.stdout.write(lines.join('\n'));
    });
}
