import { type CodecHealth, createKmsCodec, type KmsCodec } from '@sealring/core';
import {
  MAX_KEYS_TO_ROTATE,
  MAX_RING_KEYS,
  type ResolvedPolicy,
  type RingDocument,
  type RingEntry,
  rotateAt,
} from '@sealring/core/ring';
import { kmsFailuresOf, lineOf, storeFailureOf } from '../foreign-error.ts';
import { parsedDocument, unendedKeysOf, unprovedRevocationsOf } from '../ring/document.ts';
import { CLAIM_REMEDY, claimText, manyKeys } from '../ring/status.ts';
import { keyWrappersOf, ringNameOf, type SealringConfig } from '../settings/settings.ts';
import { type CurrentVersion, checkVersion, isOwn, refusedVersions, UnwrapNotes } from './check-versions.ts';
import { error, type Finding, ok, warning } from './finding.ts';
import { kmsFinding } from './kms-findings.ts';

/** Longest start of the doctor's own codec, seconds. */
const START_SECONDS = 10;

/** The ring document: whose it is, what of it proves itself, and what state its keys are in. */
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
        `what is stored is no ring document that servers accept: ${ring.refusal}`,
        'Members that run write theirs over it. Find out who wrote this one, and take that right away. Without any member: sealring import, or an older version (docs/terraform.md, "The drill").',
      ),
    ];
  }
  const name = ringNameOf(config);
  if (ring.ring !== name) {
    return [
      error(
        'ring-other-name',
        `the ring that is stored there was founded as "${ring.ring}", and this configuration says "${name}"`,
        'Set ringName to the name it was founded under, on every server; or give this ring a place of its own.',
      ),
    ];
  }
  if (ring.entries.length === 0) {
    return [
      warning(
        'ring-unfounded',
        'somebody has begun to found this ring, and it has no key yet',
        'Wait, or run sealring init.',
      ),
    ];
  }
  const unended = unendedKeysOf(ring, nowMs);
  if (unended.length === 0) return [ended(ring)];
  const checkVersions = (live: readonly RingEntry[]): readonly Finding[] =>
    versions.flatMap((current) => checkVersion(current, ring, live, times));
  const notes = new UnwrapNotes();
  const opened = await open(config, notes);
  if ('failure' in opened) {
    // Who could not open it knows of a revocation only what is claimed.
    const live = unended.filter(({ revoked }) => revoked === undefined);
    return [
      ...refusalOf(config, unended, opened.failure),
      ...(keyWrappersOf(config).some(({ supports }) => supports.keyVersions) ? refusedVersions(live, notes) : []),
      ...checkVersions(live),
      ...checkLive(config, ring, live, times, nowMs),
    ];
  }
  const { health } = opened;
  const usable = new Set(health.keys.filter(isUsable).map(({ id }) => id));
  const live = unended.filter(({ id }) => usable.has(id));
  return [
    ok('ring', `the keys of the ring prove themselves: ${live.length} live of ${ring.entries.length}, all unwrapped`),
    ...checkEntries(config, ring, health, notes, nowMs),
    ...(live.length === 0 ? [ended(ring)] : []),
    ...checkVersions(live),
    ...checkLive(config, ring, live, times, nowMs),
  ];
}

function isUsable({ state }: CodecHealth['keys'][number]): boolean {
  return state !== 'revoked' && state !== 'retired';
}

function ended(ring: RingDocument): Finding {
  return warning(
    'ring-ended',
    `all ${ring.entries.length} keys of the ring have ended or were revoked`,
    'A member makes a new one. If members run, look at why none of them does.',
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
    ...(newest === undefined ? [] : [checkAge(newest, times, nowMs)]),
    checkSize(ring),
  ];
}

/** Starts as a reader does, on the very document: every live key is unwrapped, and they vouch for each other. */
async function open(
  config: SealringConfig,
  notes: UnwrapNotes,
): Promise<{ readonly health: CodecHealth } | { readonly failure: unknown }> {
  let codec: KmsCodec;
  const { probe: _, wrapQuorum: _quorum, ...options } = config;
  try {
    codec = await createKmsCodec({
      ...options,
      keyWrapper: keyWrappersOf(config).map((wrapper) => notes.on(wrapper)),
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

/** What the document holds and does not prove, and what the codec says of itself. */
function checkEntries(
  { acceptKeysCreatedAfter }: SealringConfig,
  ring: RingDocument,
  { keys, problems }: CodecHealth,
  notes: UnwrapNotes,
  nowMs: number,
): readonly Finding[] {
  const known = new Set(keys.map(({ id }) => id));
  const pinnedBefore = acceptKeysCreatedAfter?.getTime() ?? Number.NEGATIVE_INFINITY;
  const unknown = unendedKeysOf(ring, nowMs).filter(({ id, created }) => !known.has(id) && created >= pinnedBefore);
  const unproved = unknown.filter((key) => notes.refusalOf(key) === undefined);
  const claims = unprovedRevocationsOf({ entries: ring.entries.filter(({ id }) => known.has(id)) }, keys, nowMs);
  return [
    // A revoked key opens nothing anyway.
    ...refusedVersions(
      unknown.filter(({ revoked }) => revoked === undefined),
      notes,
    ),
    ...(unproved.length === 0
      ? []
      : [
          warning(
            'ring-unproved',
            `${unproved.length} of ${ring.entries.length} keys in the document cannot be unwrapped: servers ignore them`,
            'Find out who wrote them: he may write the store.',
          ),
        ]),
    ...claims.map((id) => warning('ring-claim', claimText(id), CLAIM_REMEDY)),
    // Its size is a finding of its own.
    ...problems
      .filter(({ kind }) => kind !== 'nearly-full')
      .map(({ detail, remedy }) => warning('ring-problem', detail, remedy)),
  ];
}

function refusalOf(config: SealringConfig, unended: readonly RingEntry[], thrown: unknown): readonly Finding[] {
  const store = storeFailureOf(thrown);
  if (store?.kind === 'corrupt') {
    return [
      error(
        'ring-unauthentic',
        `the ring cannot be used as it is: ${store.detail}`,
        'Members that run write what they know over it. Find out who wrote this one, and take that right away. Without any: sealring import, or a new ring name.',
      ),
    ];
  }
  if (store !== undefined) {
    return [
      error('ring-unread', `the ring could not be read again: ${store.kind}: ${store.detail}`, 'Run the doctor again.'),
    ];
  }
  const failures = kmsFailuresOf(thrown);
  if (failures.length === 0) return [error('ring-error', lineOf(thrown), 'Mend the named option.')];
  const foreign = foreignKeys(config, unended);
  return failures.map((failure) => {
    if (failure.kind !== 'corrupt') return kmsFinding(failure, keyIdFor(config, failure.provider));
    if (foreign.length > 0) {
      return error(
        'ring-foreign-key',
        `the ring is wrapped by ${foreign.join(', ')}, and that is not configured here`,
        'Configure that KMS key (keyId, or alsoUnwrap beside a new one), or found this ring under another name.',
      );
    }
    return error(
      'ring-wrap-corrupt',
      `a wrapped key of the ring cannot be opened: ${failure.hint ?? failure.code ?? 'it or its times were changed'}`,
      'Members that run write theirs over it. Without any, restore an older version; and find out who wrote this one: ring name, times and bytes are bound together.',
    );
  });
}

/** KMS keys of live entries that none of the key wrappers has. */
function foreignKeys(config: SealringConfig, unended: readonly RingEntry[]): readonly string[] {
  const wrappers = keyWrappersOf(config);
  const unopened = unended.filter(({ wraps }) =>
    wraps.every((wrap) => wrappers.every((wrapper) => !isOwn(wrapper, wrap))),
  );
  return [...new Set(unopened.flatMap(({ wraps }) => wraps.map(({ provider, keyId }) => `${provider} ${keyId}`)))];
}

/** Every live key should be wrapped by every key wrapper: else one of them is no help in an outage of the others. */
function checkWraps(config: SealringConfig, live: readonly RingEntry[]): readonly Finding[] {
  return keyWrappersOf(config).flatMap((wrapper) => {
    const missing = live.filter(({ wraps }) => !wraps.some((wrap) => isOwn(wrapper, wrap))).length;
    if (missing === 0) return [];
    return [
      warning(
        'ring-missing-wraps',
        `${missing} of ${live.length} live keys are not wrapped by ${wrapper.provider} ${wrapper.keyId}`,
        'Members add what is missing when they publish next: sealring rotate, once every server has this key wrapper.',
      ),
    ];
  });
}

function keyIdFor(config: SealringConfig, provider: string): string {
  return keyWrappersOf(config).find((wrapper) => wrapper.provider === provider)?.keyId ?? '';
}

/** Whether the successor of the newest key is late. */
function checkAge(newest: RingEntry, times: ResolvedPolicy, nowMs: number): Finding {
  const dueMs = rotateAt(newest, times);
  const due = new Date(dueMs).toISOString();
  const remedy =
    'See that at least one member runs and can write the ring and use the KMS key; then, or at once: sealring rotate.';
  if (nowMs >= newest.sealsUntil) {
    return error(
      'rotation-overdue',
      `nothing may seal: the newest key ended sealing on ${timeOf(newest.sealsUntil)}`,
      remedy,
    );
  }
  const lateMs = nowMs - dueMs;
  if (lateMs > times.propagationSeconds * 1_000) {
    return error('rotation-overdue', `a rotation was due on ${due}: the newest key seals for too long`, remedy);
  }
  // Members wait up to refreshEvery, and an attempt that failed for a while.
  if (lateMs > 2 * times.refreshEverySeconds * 1_000) {
    return warning('rotation-overdue', `a rotation was due on ${due}, and nobody has made it yet`, remedy);
  }
  return ok('rotation', `the next rotation is due on ${due}`);
}

function checkSize({ entries }: RingDocument): Finding {
  if (entries.length < MAX_KEYS_TO_ROTATE) return ok('ring-size', `${entries.length} of at most ${MAX_RING_KEYS} keys`);
  const { detail, remedy } = manyKeys(entries.length);
  return warning('ring-size', detail, remedy);
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}
