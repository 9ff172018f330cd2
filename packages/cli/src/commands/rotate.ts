import type { Command } from 'commander';
import { attempt } from '../ring/open.ts';
import { statusOf, statusText } from '../ring/status.ts';
import { paintFor } from '../terminal/paint.ts';
import { withRing } from './connect.ts';
import { addCommonOptions, type CommonOptions, printJson } from './options.ts';

const EXAMPLE = `
Publishes a successor of the key that seals, and takes the rights of a member or rotator. The successor seals once every
server can have it: by default after 75 minutes; with --emergency as soon as every server that reads the ring has it, by
default after 11 minutes. After a theft of keys use "revoke", and a new ring name: docs/guides/operate.md.

Example:
  $ npx sealring init --local
  $ npx sealring rotate
`;

interface RotateOptions extends CommonOptions {
  readonly emergency?: boolean;
}

export function addRotateCommand(program: Command): void {
  addCommonOptions(
    program
      .command('rotate')
      .summary('publish a successor of the key that seals')
      .description('Publishes a new data key; the others go on opening what they sealed.')
      .option('--emergency', 'it seals as soon as every server that reads the ring has it'),
  )
    .addHelpText('after', EXAMPLE)
    .action(async ({ config: file, json = false, color, emergency = false }: RotateOptions) => {
      await withRing(file, 'member', async (codec, { config }) => {
        await attempt('rotating', () => codec.rotate({ emergency }));
        const status = await statusOf(codec, config);
        if (json) printJson(status);
        else process.stdout.write(statusText(status, paintFor(process.stdout, color)));
      });
    });
}
