import type { KeyHealth, KmsCodec } from '@sealring/core';
import type { Command } from 'commander';
import { Failure } from '../failure.ts';
import { keyName } from '../ring/key-name.ts';
import { isLive } from '../ring/key-state.ts';
import { attempt, open, openToCreate } from '../ring/open.ts';
import { publishedKeys, publishedText } from '../ring/published.ts';
import { statusOf } from '../ring/status.ts';
import { statusText } from '../ring/status-text.ts';
import type { SealringConfig } from '../settings/settings.ts';
import { paintFor } from '../terminal/paint.ts';
import { withSettings } from './connect.ts';
import { addCommonOptions, type CommonOptions, printJson } from './options.ts';

const EXAMPLE = `
Requires the permissions of a member or rotator. The new key seals once every
server has had time to read it: after 75 minutes by default or, with
--emergency, after 11 minutes, when every server that can reach the ring has
read it. Tokens of the other keys stay valid. If all keys have expired or were
revoked, the new key seals at once.

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
      await withSettings(file, async ({ config }) => {
        const { codec, published } = await rotated(config, emergency);
        try {
          const status = await statusOf(codec, config);
          if (json) printJson({ published: published.map(({ id }) => keyName(id)), ...status });
          else {
            const text = statusText(status, paintFor(process.stdout, color));
            process.stdout.write(`${publishedText(published)}\n${text}`);
          }
        } finally {
          await codec.close();
        }
      });
    });
}

interface Rotated {
  readonly codec: KmsCodec;
  readonly published: readonly KeyHealth[];
}

/** Publishes a successor. In a ring without a live key, a member creates one when it starts. */
async function rotated(config: SealringConfig, emergency: boolean): Promise<Rotated> {
  const codec = await openLive(config);
  if (codec === undefined) {
    const created = await openToCreate(config, { mustExist: true });
    return { codec: created, published: created.health().keys.filter(isLive) };
  }
  try {
    const before = codec.health().keys;
    await attempt('rotating', () => codec.rotate({ emergency }));
    return { codec, published: publishedKeys(before, codec.health().keys) };
  } catch (error) {
    await codec.close();
    throw error;
  }
}

/** A member of the ring; undefined if the ring has no live key. */
async function openLive(config: SealringConfig): Promise<KmsCodec | undefined> {
  try {
    return await open(config, { role: 'member', create: 'never' });
  } catch (error) {
    if (error instanceof Failure && error.code === 'no-sealing-key') return undefined;
    throw error;
  }
}
