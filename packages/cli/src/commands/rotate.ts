import type { Command } from 'commander';
import { keyName } from '../ring/key-name.ts';
import { attempt } from '../ring/open.ts';
import { publishedKeys, publishedText } from '../ring/published.ts';
import { statusOf } from '../ring/status.ts';
import { statusText } from '../ring/status-text.ts';
import { paintFor } from '../terminal/paint.ts';
import { withRing } from './connect.ts';
import { addCommonOptions, type CommonOptions, printJson } from './options.ts';

const EXAMPLE = `
Requires the permissions of a member or rotator. The new key seals once every
server has had time to read it: after 75 minutes by default or, with
--emergency, after 11 minutes, when every server that can reach the ring has
read it. Tokens of the other keys stay valid.

After a leak, run "revoke" instead; see docs/guides/incidents.md.

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
      .summary('publish a new key')
      .description('Publishes a successor of the active key.')
      .option('--emergency', 'let the new key seal sooner'),
  )
    .addHelpText('after', EXAMPLE)
    .action(async ({ config: file, json = false, color, emergency = false }: RotateOptions) => {
      await withRing(file, 'member', async (codec, { config }) => {
        const before = codec.health().keys;
        await attempt('rotating', () => codec.rotate({ emergency }));
        const published = publishedKeys(before, codec.health().keys);
        const status = await statusOf(codec, config);
        if (json) printJson({ published: published.map(({ id }) => keyName(id)), ...status });
        else {
          const text = statusText(status, paintFor(process.stdout, color));
          process.stdout.write(`${publishedText(published)}\n${text}`);
        }
      });
    });
}
