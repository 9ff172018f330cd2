import { createKmsCodec, type KeyHealth, type KmsCodec, staticRing } from '@sealring/core';
import type { Command } from 'commander';
import { Failure } from '../failure.ts';
import { kmsFailuresOf } from '../foreign-error.ts';
import { type KeepProgress, KeptRevocation, waitSecondsFor } from '../revocation/kept-revocation.ts';
import { recordedRing } from '../revocation/recorded-ring.ts';
import { END_OF_TIME, keysToRevoke, type RevocationTarget, revoke, revokedIn } from '../revocation/target.ts';
import { keyName } from '../ring/key-name.ts';
import { attempt, open } from '../ring/open.ts';
import { policyOf } from '../ring/policy.ts';
import { publishedKeys, publishedText } from '../ring/published.ts';
import { statusOf } from '../ring/status.ts';
import { statusText } from '../ring/status-text.ts';
import { codecOptionsOf, ringNameOf, type SealringConfig } from '../settings/settings.ts';
import { canAsk, confirm } from '../terminal/confirm.ts';
import { paintFor } from '../terminal/paint.ts';
import { ProgressLine, progressBar } from '../terminal/progress.ts';
import { stopSignal, waits } from '../terminal/until-stopped.ts';
import { visibleLine } from '../terminal/visible.ts';
import { UsageError } from '../usage-error.ts';
import { withSettings } from './connect.ts';
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

Exit codes: 0 revoked and kept; 1 not written, not kept, or interrupted;
2 wrong command line or configuration.

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

const TIME = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d))?$/;

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
          const keys = await affectedKeys(config, target);
          if (dryRun) return printAffected(keys, config, json);
          await ask(keys, config);
        }
        const kept = new KeptRevocation();
        const codec = await open({ ...config, ring: recordedRing(config.ring, kept.observe) }, MEMBER);
        try {
          const before = codec.health().keys;
          const keys = await attempt('revoking', () => revoke(codec, target));
          const published = publishedKeys(before, codec.health().keys);
          if (wait) await waitUntilKept(codec, config, kept, keys);
          const status = await statusOf(codec, config);
          const revoked = namesOf(keys);
          if (json) printJson({ revoked, published: namesOf(published), waited: wait, ...status });
          else {
            const line = `revoked ${listOf(revoked)}; ${publishedText(published)}\n`;
            process.stdout.write(`${line}${statusText(status, paintFor(process.stdout, color))}`);
          }
        } finally {
          await codec.close();
        }
      });
    });
}

const MEMBER = { role: 'member', create: 'never' } as const;
const READER = { role: 'reader', create: 'never' } as const;

function namesOf(keys: readonly KeyHealth[]): readonly string[] {
  return keys.map(({ id }) => keyName(id));
}

/** The number and the names of keys: `no key`, `1 key: A` or `2 keys: A, B`. `more` is inserted before the colon. */
function listOf(names: readonly string[], more = ''): string {
  if (names.length === 0) return `no key${more}`;
  return `${names.length === 1 ? '1 key' : `${names.length} keys`}${more}: ${names.join(', ')}`;
}

/** Determines, as a reader, which keys would be revoked. A reader writes nothing. */
async function affectedKeys(config: SealringConfig, target: RevocationTarget): Promise<readonly KeyHealth[]> {
  const codec = await open(config, READER);
  try {
    return keysToRevoke(target, codec.health().keys, policyOf(config).clockSkewSeconds);
  } finally {
    await codec.close();
  }
}

function printAffected(keys: readonly KeyHealth[], config: SealringConfig, json: boolean): void {
  const ring = ringNameOf(config);
  const names = namesOf(keys);
  if (json) printJson({ dryRun: true, ring, wouldRevoke: names });
  else process.stdout.write(`nothing was written; would revoke ${listOf(names, ` of ring "${visibleLine(ring)}"`)}\n`);
}

async function ask(keys: readonly KeyHealth[], config: SealringConfig): Promise<void> {
  const list = listOf(namesOf(keys), ` of ring "${visibleLine(ringNameOf(config))}"`);
  const question = `Revoke ${list}\nEvery server will permanently reject their tokens. Type yes to revoke: `;
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

/** The interval between lines where standard error is not a terminal, after the first two seconds. */
const REPEAT_MS = 15_000;
const SILENT_MS = 2_000;

class KeepProgressLine {
  readonly #line = new ProgressLine();
  #nextMs = performance.now() + SILENT_MS;
  #losses = 0;

  update({ keptSeconds, waitSeconds, losses }: KeepProgress): void {
    if (losses > this.#losses) {
      this.#line.clear();
      process.stderr.write('the store lost the revocation: writing it again, and starting the wait over\n');
    }
    this.#losses = losses;
    if (!this.#line.isInPlace && performance.now() < this.#nextMs) return;
    this.#nextMs = performance.now() + REPEAT_MS;
    const bar = this.#line.isInPlace ? `${progressBar(keptSeconds / waitSeconds)} ` : '';
    this.#line.update(`${bar}revoked; waiting until the store has kept it: ${keptSeconds} of ${waitSeconds} s`);
  }

  clear(): void {
    this.#line.clear();
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

/** @throws {UsageError} unless exactly one target is given, and the time is valid. */
function targetOf(key: string | undefined, { before, all = false }: RevokeOptions): RevocationTarget {
  const given = [
    ...(key === undefined ? [] : [`the key "${key.slice(0, 80)}"`]),
    ...(before === undefined ? [] : [`--before "${before}"`]),
    ...(all ? ['--all'] : []),
  ];
  if (given.length > 1) throw new UsageError(`give only one of ${given.join(' and ')}`);
  if (key !== undefined) return { key };
  if (all) return { before: END_OF_TIME };
  if (before === undefined) throw new UsageError('revoke requires a key, --before <time> or --all');
  const time = new Date(before);
  if (!TIME.test(before) || Number.isNaN(time.getTime())) {
    throw new UsageError(
      `--before must be a date, or a time with a zone such as 2026-11-21T20:00:00Z; got "${before}"`,
    );
  }
  return { before: time };
}
