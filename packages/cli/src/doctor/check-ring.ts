import { type CodecHealth, createKmsCodec, type KmsCodec } from '@sealring/core';
import {
  MAX_KEYS_TO_ROTATE,
  MAX_RING_KEYS,
  type ResolvedPolicy,
  type RingDocument,
  type RingEntry,
} from '@sealring/core/ring';
import { kmsFailuresOf, lineOf, storeFailureOf } from '../foreign-error.ts';
import { isEnded, parsedDocument, unexpiredKeysOf, unverifiedRevocationsOf } from '../ring/document.ts';
import { keyName, withKeyNames } from '../ring/key-name.ts';
import { isLive } from '../ring/key-state.ts';
import { ROTATION_REMEDY, rotationOf } from '../ring/rotation.ts';
import { nearlyFull, unverifiedRevocation } from '../ring/status.ts';
import { codecOptionsOf, keyWrappersOf, ringNameOf, type SealringConfig } from '../settings/settings.ts';
import { type CurrentVersion, checkVersion, isOwn, refusedVersions, UnwrapRecorder } from './check-versions.ts';
import { error, type Finding, ok, warning } from './finding.ts';
import { kmsFinding } from './kms-findings.ts';

/** The longest time that the doctor's own codec may take to start, in seconds. */
const START_SECONDS = 10;

/** Checks the ring document: its name, its authenticity, its wraps, and the states of its keys. */
export async function checkRing(
  config: SealringConfig,
  document: string,
  versions: readonly CurrentVersion[],
  times: ResolvedPolicy,
  nowMs: number,
): Promise<readonly Finding[]> {
  const ring = parsedDocument(document);
  if ('refusal' in ring) {
    return [
      error(
        'ring-corrupt',
        `servers reject the stored document: ${ring.refusal}`,
        'Running members overwrite it. Find out who wrote it, and remove their write permission. If no member is running, use sealring import, or restore an older version (docs/terraform.md, "The drill").',
      ),
    ];
  }
  const name = ringNameOf(config);
  if (ring.ring !== name) {
    return [
      error(
        'ring-other-name',
        `the ring in the store is named "${ring.ring}", but this configuration has ringName "${name}"`,
        'Set ringName to the name of the stored ring on every server, or configure another place for this ring.',
      ),
    ];
  }
  if (ring.entries.length === 0) {
    return [
      warning(
        'ring-without-key',
        'a member is creating this ring, which has no key yet',
        'Wait a minute, or run sealring init.',
      ),
    ];
  }
  const unexpired = unexpiredKeysOf(ring, nowMs);
  if (unexpired.length === 0) return [ended(ring)];
  const checkVersions = (live: readonly RingEntry[]): readonly Finding[] =>
    versions.flatMap((current) => checkVersion(current, ring, live, times));
  const recorder = new UnwrapRecorder();
  const opened = await open(config, recorder);
  if ('failure' in opened) {
    // Without the keys, a revocation in the document cannot be verified.
    const live = unexpired.filter(({ revoked }) => revoked === undefined);
    return [
      ...failureFindings(config, ring, unexpired, opened.failure, nowMs),
      ...(keyWrappersOf(config).some(({ supports }) => supports.keyVersions) ? refusedVersions(live, recorder) : []),
      ...checkVersions(live),
      ...checkLive(config, ring, live, times, nowMs),
    ];
  }
  const { health } = opened;
  const usable = new Set(health.keys.filter(isLive).map(({ id }) => id));
  const live = unexpired.filter(({ id }) => usable.has(id));
  return [
    ok('ring', `the ring is authentic: ${live.length} of ${ring.entries.length} keys are live, all of them unwrapped`),
    ...checkEntries(config, ring, health, recorder, nowMs),
    ...(live.length === 0 ? [ended(ring)] : []),
    ...checkVersions(live),
    ...checkLive(config, ring, live, times, nowMs),
  ];
}

function ended(ring: RingDocument): Finding {
  // This is worse than an overdue rotation, because nothing seals or unseals.
  return error(
    'ring-ended',
    `every key of the ring has expired or was revoked (${ring.entries.length} in the document): nothing seals or unseals`,
    'A running member publishes a new key within minutes. If none is running, run sealring rotate. If members are running but none publishes a key, run the doctor on one of their machines: the cause is the clock, the KMS or the store.',
  );
}

/** The finding for a ring that servers refuse, although someone may have written it for them. */
function refused(config: SealringConfig, ring: RingDocument, detail: string, nowMs: number): Finding {
  if (isEnded(ring, nowMs)) return ended(ring);
  const { acceptKeysCreatedAfter: pin } = config;
  const used = unexpiredKeysOf(ring, nowMs).filter(({ revoked }) => revoked === undefined);
  if (pin !== undefined && used.every(({ created }) => created < pin.getTime())) {
    return error(
      'ring-ended',
      `acceptKeysCreatedAfter (${pin.toISOString()}) excludes every live key of the ring: nothing seals or unseals`,
      'Use the value that your servers have. If it is the same, run sealring rotate with a configuration without it.',
    );
  }
  return error(
    'ring-unauthentic',
    `servers cannot start with the stored ring: ${detail}`,
    'Running members overwrite it. Find out who wrote it, and remove their write permission. If no member is running, use sealring import, or a new ring name.',
  );
}

function checkLive(
  config: SealringConfig,
  ring: RingDocument,
  live: readonly RingEntry[],
  times: ResolvedPolicy,
  nowMs: number,
): readonly Finding[] {
  const newest = live.at(-1);
  return [
    ...checkWraps(config, live),
    ...(newest === undefined ? [] : [checkRotation(newest, times, nowMs)]),
    checkSize(ring),
  ];
}

/** Starts as a reader does: unwraps every live key, and checks that the keys vouch for each other. */
async function open(
  config: SealringConfig,
  recorder: UnwrapRecorder,
): Promise<{ readonly health: CodecHealth } | { readonly failure: unknown }> {
  let codec: KmsCodec;
  const { wrapQuorum: _, ...options } = codecOptionsOf(config);
  try {
    codec = await createKmsCodec({
      ...options,
      keyWrapper: keyWrappersOf(config).map((wrapper) => recorder.on(wrapper)),
      role: 'reader',
      create: 'never',
      policy: { ...config.policy, startTimeoutSeconds: START_SECONDS },
    });
  } catch (failure) {
    return { failure };
  }
  const health = codec.health();
  await codec.close();
  return { health };
}

/** The findings for keys and revocations in the document that the codec ignores, and for problems that it reports. */
function checkEntries(
  { acceptKeysCreatedAfter }: SealringConfig,
  ring: RingDocument,
  { keys, problems }: CodecHealth,
  recorder: UnwrapRecorder,
  nowMs: number,
): readonly Finding[] {
  const known = new Set(keys.map(({ id }) => id));
  const ids = [...keys, ...ring.entries].map(({ id }) => id);
  const pinnedBefore = acceptKeysCreatedAfter?.getTime() ?? Number.NEGATIVE_INFINITY;
  const unknown = unexpiredKeysOf(ring, nowMs).filter(({ id, created }) => !known.has(id) && created >= pinnedBefore);
  const ignored = unknown.filter((key) => recorder.refusalOf(key) === undefined);
  const unverified = unverifiedRevocationsOf({ entries: ring.entries.filter(({ id }) => known.has(id)) }, keys, nowMs);
  return [
    // A revoked key need not be unwrapped.
    ...refusedVersions(
      unknown.filter(({ revoked }) => revoked === undefined),
      recorder,
    ),
    ...(ignored.length === 0
      ? []
      : [
          warning(
            'ring-keys-ignored',
            `${ignored.length} of ${ring.entries.length} keys in the document cannot be unwrapped with this configuration: servers with the same configuration ignore them`,
            'If your servers have further key wrappers, run the doctor with all of them. Otherwise, find out who wrote these keys: their author can write to the store.',
          ),
        ]),
    ...unverified.map((id) => {
      const { detail, remedy } = unverifiedRevocation(keyName(id));
      return warning('ring-revocation-unverified', detail, remedy);
    }),
    // The size has a separate finding.
    ...problems
      .filter(({ kind }) => kind !== 'nearly-full')
      .map(({ detail, remedy }) => warning('ring-problem', withKeyNames(detail, ids), remedy)),
  ];
}

/** The findings for a ring on which no codec could start. */
function failureFindings(
  config: SealringConfig,
  ring: RingDocument,
  unexpired: readonly RingEntry[],
  thrown: unknown,
  nowMs: number,
): readonly Finding[] {
  const store = storeFailureOf(thrown);
  if (store?.kind === 'corrupt') return [refused(config, ring, store.detail, nowMs)];
  if (store !== undefined) {
    return [
      error(
        'ring-unread',
        `the ring could not be read a second time: ${store.kind}: ${store.detail}`,
        'Run the doctor again.',
      ),
    ];
  }
  const failures = kmsFailuresOf(thrown);
  if (failures.length === 0) return [error('ring-error', lineOf(thrown), 'Correct the named option.')];
  const foreign = foreignKeys(config, unexpired);
  return failures.map((failure) => {
    if (failure.kind !== 'corrupt') return kmsFinding(failure, keyIdFor(config, failure.provider));
    if (foreign.length > 0) {
      return error(
        'ring-foreign-key',
        `keys of the ring are wrapped by ${foreign.join(', ')}, which is not configured here`,
        'Configure that KMS key (as keyId, or in alsoUnwrap along with a new keyId), or create a ring with another name.',
      );
    }
    return error(
      'ring-wrap-corrupt',
      `a key of the ring cannot be unwrapped: ${failure.hint ?? failure.code ?? 'the wrapped key or its times were changed'}`,
      'Running members overwrite the ring. If none is running, restore an older version. Find out who changed the key: its ring name, its times and the wrapped key are bound together.',
    );
  });
}

/** The KMS keys of entries that no configured key wrapper can unwrap. */
function foreignKeys(config: SealringConfig, unexpired: readonly RingEntry[]): readonly string[] {
  const wrappers = keyWrappersOf(config);
  const foreign = unexpired.filter(({ wraps }) =>
    wraps.every((wrap) => wrappers.every((wrapper) => !isOwn(wrapper, wrap))),
  );
  return [...new Set(foreign.flatMap(({ wraps }) => wraps.map(({ provider, keyId }) => `${provider} ${keyId}`)))];
}

/** Checks that every key wrapper has wrapped every live key: otherwise, it cannot replace the others in an outage. */
function checkWraps(config: SealringConfig, live: readonly RingEntry[]): readonly Finding[] {
  return keyWrappersOf(config).flatMap((wrapper) => {
    const missing = live.filter(({ wraps }) => !wraps.some((wrap) => isOwn(wrapper, wrap))).length;
    if (missing === 0) return [];
    return [
      warning(
        'ring-missing-wraps',
        `${missing} of ${live.length} live keys are not wrapped by ${wrapper.provider} ${wrapper.keyId}`,
        'Members add the missing wraps when they next publish a key. To add them now, run sealring rotate once every server has this key wrapper.',
      ),
    ];
  });
}

function keyIdFor(config: SealringConfig, provider: string): string {
  return keyWrappersOf(config).find((wrapper) => wrapper.provider === provider)?.keyId ?? '';
}

/** Checks whether the successor of the newest key is late. */
function checkRotation(newest: RingEntry, times: ResolvedPolicy, nowMs: number): Finding {
  const { state, detail } = rotationOf(newest, times, nowMs);
  if (state === 'due-later') return ok('rotation', detail);
  if (state === 'late') return warning('rotation-overdue', detail, ROTATION_REMEDY);
  return error('rotation-overdue', detail, ROTATION_REMEDY);
}

function checkSize({ entries }: RingDocument): Finding {
  if (entries.length < MAX_KEYS_TO_ROTATE) return ok('ring-size', `${entries.length} of at most ${MAX_RING_KEYS} keys`);
  const { detail, remedy } = nearlyFull(entries.length);
  return warning('ring-size', detail, remedy);
}
