import { createKmsCodec, type KeyHealth, type KmsCodec, staticRing } from '@sealring/core';
import type { Command } from 'commander';
import { Failure } from '../failure.ts';
import { kmsFailuresOf } from '../foreign-error.ts';
import { DocumentLog } from '../revocation/document-log.ts';
import { KeptRevocation, waitSecondsFor } from '../revocation/kept-revocation.ts';
import { type Observation, recordedRing } from '../revocation/recorded-ring.ts';
import {
  type KnownRing,
  missedKeys,
  type RevocationTarget,
  revoke,
  revokedIn,
  type Selected,
  selectedKeys,
  targetOf,
} from '../revocation/target.ts';
import { keyName } from '../ring/key-name.ts';
import { attempt, open } from '../ring/open.ts';
import { policyOf } from '../ring/policy.ts';
import { publishedKeys, publishedText } from '../ring/published.ts';
import { statusOf } from '../ring/status.ts';
import { statusText } from '../ring/status-text.ts';
import { codecOptionsOf, nowOf, ringNameOf, type SealringConfig } from '../settings/settings.ts';
import { canAsk, confirm } from '../terminal/confirm.ts';
import { paintFor } from '../terminal/paint.ts';
import { stopSignal, waits } from '../terminal/until-stopped.ts';
import { visibleLine } from '../terminal/visible.ts';
import { UsageError } from '../usage-error.ts';
import { withSettings } from './connect.ts';
import { KeepProgressLine } from './kept-progress.ts';
import { addCommonOptions, type CommonOptions, printJson } from './options.ts';

const EXAMPLE = `
Every server permanently rejects the tokens of a revoked key. The same write
publishes a successor that seals at once. If the KMS does not answer or the ring
is full, the key is revoked without a successor, and members publish one as soon
as they can.

<key> is the name that "status", "inspect", an event, a span or the dashboard
shows; the id in a token and the fingerprint in the metric also work. Put a key
that begins with "-" after "--".

On a terminal the command asks before it revokes. Anywhere else it requires
--yes. --dry-run lists the keys and changes nothing.

Servers read the revocation within refreshEverySeconds. The command waits until
the store has kept it for that time plus a minute, ${waitSecondsFor(300)} s by default. If an
older copy of the ring comes back, the command writes the revocation again.
--no-wait skips the wait.

--before also revokes keys that were created up to clockSkewSeconds later: the
clock of the server that created them may have been fast.

A key that this configuration cannot unwrap may stay in use on some servers: the
command revokes the others, names that key, and exits with code 1.

Exit codes: 0 revoked and kept; 1 not written, not kept or interrupted, or a key
was not revoked; 2 wrong command line or configuration.

Example that revokes every key:
  $ npx sealring init --local
  $ npx sealring revoke --all --yes
`;

interface RevokeOptions extends CommonOptions {
  readonly before?: string;
  readonly all?: boolean;
  readonly yes?: boolean;
  readonly dryRun?: boolean;
  readonly wait: boolean;
}

export function addRevokeCommand(program: Command): void {
  addCommonOptions(
    program
      .command('revoke')
      .summary('revoke one key, the keys created before a time, or all keys')
      .description('Permanently revokes data keys of the ring.')
      .argument('[key]', 'the key to revoke')
      .option('--before <time>', 'revoke every key created before this time, such as 2026-11-21T20:00:00Z')
      .option('--all', 'revoke every key')
      .option('--dry-run', 'list the keys, and change nothing')
      .option('-y, --yes', 'do not ask for confirmation')
      .option('--no-wait', 'do not wait until every server has read the revocation'),
  )
    .addHelpText('after', EXAMPLE)
    .action(async (key: string | undefined, options: RevokeOptions) => {
      const { config: file, json = false, color, wait, yes = false, dryRun = false } = options;
      const target = targetOf(key, options);
      if (!yes && !dryRun && !canAsk()) {
        throw new UsageError('revoke asks for confirmation, but there is no terminal: add --yes, or --dry-run');
      }
      await withSettings(file, async ({ config }) => {
        if (dryRun || !yes) {
          const selected = await affectedKeys(config, target);
          if (dryRun) return printAffected(selected, config, json);
          await ask(selected, config);
        }
        await revokeNow(config, target, { wait, json, color });
      });
    });
}

async function revokeNow(
  config: SealringConfig,
  target: RevocationTarget,
  { wait, json, color }: { readonly wait: boolean; readonly json: boolean; readonly color: boolean },
): Promise<void> {
  const [kept, log] = [new KeptRevocation(), new DocumentLog()];
  const observe = (observation: Observation): void => {
    log.observe(observation);
    kept.observe(observation);
  };
  const codec = await open({ ...config, ring: recordedRing(config.ring, observe) }, MEMBER);
  try {
    const { listed } = log;
    const before = codec.health().keys;
    checkNamed(selectedKeys(target, knownRing(codec, config, listed)), target);
    const keys = await attempt('revoking', () => revoke(codec, target));
    const missed = missedKeys(target, knownRing(codec, config, listed), log);
    const revoked = namesOf(keys.filter(({ id }) => missed.every((other) => other.id !== id)));
    const failure = missed.length === 0 ? undefined : notRevoked(revoked, namesOf(missed));
    // An operator must learn this before the wait, which takes minutes.
    if (failure !== undefined && wait) process.stderr.write(`WARNING: ${failure.message}\n`);
    const published = publishedKeys([...before, ...listed], codec.health().keys);
    if (wait) await waitUntilKept(codec, config, kept, keys);
    if (failure !== undefined) throw failure;
    const status = await statusOf(codec, config);
    if (json) printJson({ revoked, published: namesOf(published), waited: wait, ...status });
    else {
      const line = `revoked ${listOf(revoked)}; ${publishedText(published)}\n`;
      process.stdout.write(`${line}${statusText(status, paintFor(process.stdout, color))}`);
    }
  } finally {
    await codec.close();
  }
}

/** @throws {Failure} if the key that was named cannot be revoked: then nothing is written. */
function checkNamed({ unused }: Selected, target: RevocationTarget): void {
  if ('key' in target && unused.length > 0) throw notRevoked([], namesOf(unused));
}

function notRevoked(revoked: readonly string[], missed: readonly string[]): Failure {
  const list =
    revoked.length === 0 ? `did not revoke ${listOf(missed)}` : `revoked ${listOf(revoked)}, but not ${listOf(missed)}`;
  return new Failure(
    'not-revoked',
    `${list}. Servers may still use a key that was not revoked: this configuration cannot unwrap it, or excludes it with ` +
      'acceptKeysCreatedAfter. Revoke again with the configuration of your servers, or call revokeAllBefore on a running server',
  );
}

function knownRing(codec: KmsCodec, config: SealringConfig, listed: KnownRing['listed']): KnownRing {
  const { clockSkewSeconds } = policyOf(config);
  return { keys: codec.health().keys, listed, nowMs: nowOf(config), clockSkewSeconds };
}

const MEMBER = { role: 'member', create: 'never' } as const;
const READER = { role: 'reader', create: 'never' } as const;

function namesOf(keys: readonly { readonly id: string }[]): readonly string[] {
  return keys.map(({ id }) => keyName(id));
}

/** The number and the names of keys: `no key`, `1 key: A` or `2 keys: A, B`. `more` is inserted before the colon. */
function listOf(names: readonly string[], more = ''): string {
  if (names.length === 0) return `no key${more}`;
  return `${names.length === 1 ? '1 key' : `${names.length} keys`}${more}: ${names.join(', ')}`;
}

/** Determines, as a reader, which keys would be revoked. A reader writes nothing. */
async function affectedKeys(config: SealringConfig, target: RevocationTarget): Promise<Selected> {
  const log = new DocumentLog();
  const codec = await open({ ...config, ring: recordedRing(config.ring, log.observe) }, READER);
  try {
    return selectedKeys(target, knownRing(codec, config, log.listed));
  } finally {
    await codec.close();
  }
}

function printAffected({ keys, unused }: Selected, config: SealringConfig, json: boolean): void {
  const ring = ringNameOf(config);
  const [names, others] = [namesOf(keys), namesOf(unused)];
  if (json) return printJson({ dryRun: true, ring, wouldRevoke: names, cannotRevoke: others });
  const line = `nothing was written; would revoke ${listOf(names, ` of ring "${visibleLine(ring)}"`)}\n`;
  process.stdout.write(`${line}${cannotRevoke(others)}`);
}

/** One line; empty if there are no such keys. */
function cannotRevoke(names: readonly string[]): string {
  return names.length === 0
    ? ''
    : `cannot revoke ${listOf(names)}: this configuration cannot unwrap ${names.length === 1 ? 'it' : 'them'}\n`;
}

async function ask({ keys, unused }: Selected, config: SealringConfig): Promise<void> {
  const list = listOf(namesOf(keys), ` of ring "${visibleLine(ringNameOf(config))}"`);
  const question =
    `Revoke ${list}\n${cannotRevoke(namesOf(unused))}Every server will permanently reject their tokens. ` +
    'Type yes to revoke: ';
  if (!(await confirm(question))) throw new Failure('not-confirmed', 'not confirmed: nothing was revoked');
}

async function waitUntilKept(
  codec: KmsCodec,
  config: SealringConfig,
  kept: KeptRevocation,
  keys: readonly KeyHealth[],
): Promise<void> {
  const stop = stopSignal();
  const progress = new KeepProgressLine();
  try {
    await kept.untilKept({
      keys,
      refreshEverySeconds: policyOf(config).refreshEverySeconds,
      refresh: () => codec.refresh(),
      verifies: (document) => areRevokedIn(document, config, keys),
      time: { now: () => performance.now(), wait: (ms) => waits(ms, stop) },
      onProgress: (now) => progress.update(now),
    });
  } finally {
    progress.clear();
  }
}

/**
 * Whether a server that starts with this document treats the keys as revoked. The pin of this process does not count,
 * because other servers have no pin.
 */
async function areRevokedIn(document: string, config: SealringConfig, keys: readonly KeyHealth[]): Promise<boolean> {
  const { acceptKeysCreatedAfter: _, ...options } = codecOptionsOf(config);
  let codec: KmsCodec;
  try {
    codec = await createKmsCodec({ ...options, ring: staticRing(document), ...READER });
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
