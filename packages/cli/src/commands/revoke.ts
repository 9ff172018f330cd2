import { createKmsCodec, type KmsCodec, staticRing } from '@sealring/core';
import type { Command } from 'commander';
import { kmsFailuresOf } from '../foreign-error.ts';
import { recordedRing } from '../revocation/recorded-ring.ts';
import { KeptRevocation, type RevokedKey, waitSecondsFor } from '../revocation/until-kept.ts';
import { attempt, open } from '../ring/open.ts';
import { policyOf } from '../ring/policy.ts';
import { statusOf, statusText } from '../ring/status.ts';
import { codecOptionsOf, type SealringConfig } from '../settings/settings.ts';
import { paintFor } from '../terminal/paint.ts';
import { stopSignal, waits } from '../terminal/until-stopped.ts';
import { UsageError } from '../usage-error.ts';
import { withSettings } from './connect.ts';
import { addCommonOptions, type CommonOptions, printJson } from './options.ts';

const EXAMPLE = `
Revokes for ever: tokens that the key sealed are refused from then on. A successor is made in the same write and seals at
once; where the KMS does not answer or the ring is full, the key is revoked all the same, and members make a successor as
soon as they can. The id is that of "status" or "inspect"; one that begins with "-" goes after "--".

Every server learns of it at its next read of the ring. Until the store has kept it for refreshEverySeconds and a minute
(${waitSecondsFor(300)} s by default), the command stays, and writes it again should an older copy of the ring come back. With
--no-wait it ends at once. Exit code: 0 revoked and kept, 1 it could not be written or the store did not keep it.

--before leaves out no key that may be older by any clock: it takes clockSkewSeconds more.

Example, every key that there is:
  $ npx sealring init --local
  $ npx sealring revoke --all
`;

interface RevokeOptions extends CommonOptions {
  readonly before?: string;
  readonly all?: boolean;
  readonly wait: boolean;
}

const TIME = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d))?$/;
/** Later than any key is made: `created` is of four digits. */
const END_OF_TIME = new Date('9999-12-31T23:59:59Z');

export function addRevokeCommand(program: Command): void {
  addCommonOptions(
    program
      .command('revoke')
      .summary('revoke a key, all that are older than a time, or all')
      .description('Revokes a data key of the ring, every one created before a time, or all of them.')
      .argument('[key-id]', 'the key')
      .option('--before <time>', 'every key created before: 2026-11-21T20:00:00Z')
      .option('--all', 'every key')
      .option('--no-wait', 'end at once, before every server has read it'),
  )
    .addHelpText('after', EXAMPLE)
    .action(async (keyId: string | undefined, options: RevokeOptions) => {
      const { config: file, json = false, color, wait } = options;
      const meant = checked(keyId, options);
      await withSettings(file, async ({ config }) => {
        const kept = new KeptRevocation();
        const codec = await open({ ...config, ring: recordedRing(config.ring, kept.see) }, MEMBER);
        try {
          const keys = await attempt('revoking', () => revoke(codec, meant));
          if (wait) await watch(codec, config, kept, keys);
          const status = await statusOf(codec, config);
          if (json) printJson({ revoked: keys.map(({ id }) => id), waited: wait, ...status });
          else process.stdout.write(statusText(status, paintFor(process.stdout, color)));
        } finally {
          await codec.close();
        }
      });
    });
}

const MEMBER = { role: 'member', create: 'never' } as const;

/** @returns the keys that are revoked now, and were not or were named. */
async function revoke(codec: KmsCodec, meant: string | Date): Promise<readonly RevokedKey[]> {
  const before = revokedIn(codec);
  await (typeof meant === 'string' ? revokeNamed(codec, meant) : codec.revokeAllBefore(meant));
  const known = new Set(before.map(({ id }) => id));
  return revokedIn(codec).filter(({ id }) => !known.has(id) || id === meant);
}

async function revokeNamed(codec: KmsCodec, id: string): Promise<void> {
  try {
    await codec.revoke(id);
  } catch (error) {
    if (error instanceof RangeError) throw new UsageError(`the ring has no key "${id.slice(0, 80)}"`);
    throw error;
  }
}

function revokedIn(codec: KmsCodec): readonly RevokedKey[] {
  return codec.health().keys.filter(({ state }) => state === 'revoked');
}

async function watch(
  codec: KmsCodec,
  config: SealringConfig,
  kept: KeptRevocation,
  keys: readonly RevokedKey[],
): Promise<void> {
  const stop = stopSignal();
  await kept.untilKept({
    keys,
    refreshEverySeconds: policyOf(config).refreshEverySeconds,
    look: () => codec.refresh(),
    proves: (document) => areRevokedIn(document, config, keys),
    time: { now: () => performance.now(), wait: (ms) => waits(ms, stop) },
    tell: (line) => process.stderr.write(`${line}\n`),
  });
}

/** Whether who starts on this document, without a pin of its own, takes the keys for revoked. */
async function areRevokedIn(document: string, config: SealringConfig, keys: readonly RevokedKey[]): Promise<boolean> {
  const { acceptKeysCreatedAfter: _, ...options } = codecOptionsOf(config);
  let codec: KmsCodec;
  try {
    codec = await createKmsCodec({ ...options, ring: staticRing(document), role: 'reader', create: 'never' });
  } catch (error) {
    if (kmsFailuresOf(error).some(({ kind }) => kind !== 'corrupt')) throw error;
    return false;
  }
  try {
    const revoked = new Set(revokedIn(codec).map(({ id }) => id));
    return keys.every(({ id }) => revoked.has(id));
  } finally {
    await codec.close();
  }
}

/** @throws {UsageError} unless exactly one of them is given, and the time is one. */
function checked(keyId: string | undefined, { before, all = false }: RevokeOptions): string | Date {
  const given = [
    ...(keyId === undefined ? [] : [`a key id "${keyId}"`]),
    ...(before === undefined ? [] : [`--before "${before}"`]),
    ...(all ? ['--all'] : []),
  ];
  if (given.length > 1) throw new UsageError(`${given.join(' and ')} are given: one of them`);
  if (keyId !== undefined) return keyId;
  if (all) return END_OF_TIME;
  if (before === undefined) throw new UsageError('which key? Give its id, --before a time, or --all');
  const time = new Date(before);
  if (!TIME.test(before) || Number.isNaN(time.getTime())) {
    throw new UsageError(`--before "${before}" must be a time with its zone, as 2026-11-21T20:00:00Z, or a date`);
  }
  return time;
}
