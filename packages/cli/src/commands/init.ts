import type { Command } from 'commander';
import { attempt, open } from '../ring/open.ts';
import { statusOf, statusText } from '../ring/status.ts';
import { paintFor } from '../terminal/paint.ts';
import { UsageError } from '../usage-error.ts';
import { withSettings } from './connect.ts';
import { LOCAL_FILES, writeLocalSetup } from './local-setup.ts';
import { addCommonOptions, type CommonOptions, printJson } from './options.ts';

const EXAMPLE = `
Founds the ring at once, where servers would first wait for the store to be absent for six minutes. A ring that is there is
left as it is, and that is no error. With --local it first writes a development key (${LOCAL_FILES.key}, mode 0600) and
${LOCAL_FILES.config} for a ring in a file, in the working directory, over nothing.

Example:
  $ npx sealring init --local
  $ npx sealring status
`;

interface InitOptions extends CommonOptions {
  readonly local?: boolean;
}

export function addInitCommand(program: Command): void {
  addCommonOptions(
    program
      .command('init')
      .summary('found the ring')
      .description('Founds the ring, if there is none.')
      .option('--local', 'a development key and a ring in files of the working directory'),
  )
    .addHelpText('after', EXAMPLE)
    .action(async ({ config: file, json = false, color, local = false }: InitOptions) => {
      if (local && file !== undefined) {
        throw new UsageError(`--local writes a configuration of its own: --config "${file}" does not go with it`);
      }
      if (local) setUpLocally(json);
      await withSettings(file, async ({ config }) => {
        const isThere = await attempt('reading the ring', async () => (await config.ring.read()) !== undefined);
        const codec = await open(config, { role: 'member', create: 'now' });
        try {
          const status = await statusOf(codec, config);
          if (json) printJson({ founded: !isThere, ...status });
          else {
            const head = isThere ? 'the ring is there already' : 'the ring was founded';
            process.stdout.write(`${head}\n${statusText(status, paintFor(process.stdout, color))}`);
          }
        } finally {
          await codec.close();
        }
      });
    });
}

function setUpLocally(isJson: boolean): void {
  const lines = writeLocalSetup();
  (isJson ? process.stderr : process.stdout).write(`${lines.join('\n')}\n`);
}
