import { createKmsCodec, type KeyWrapper, type KmsCodec, type WrappedKey } from '@sealring/core';
import { kmsFailuresOf, lineOf, storeFailureOf } from '../foreign-error.ts';
import { type PolicyTimes, rotateAt } from '../policy-times.ts';
import { liveKeysOf, type RingText, readRingText } from '../ring-text.ts';
import { keyWrappersOf, ringNameOf, type SealringConfig } from '../settings/settings.ts';
import { error, type Finding, ok, warning } from './finding.ts';
import { kmsFinding } from './kms-findings.ts';

/** Of 64; from here on somebody should ask why so many live. */
const MANY_KEYS = 48;
/** Longest start of the doctor's own codec, seconds. */
const START_SECONDS = 10;

/** The ring document: whose it is, whether it is authentic, and what state its keys are in. */
export async function checkRing(
  config: SealringConfig,
  document: string,
  times: PolicyTimes,
  nowMs: number,
): Promise<readonly Finding[]> {
  const ring = readRingText(document);
  if (ring === undefined) {
    return [
      error(
        'ring-corrupt',
        'what is stored is no ring document',
        'Restore an older version (docs/terraform.md, "The drill"), or delete it and let a running member write it again.',
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
  if (ring.keys.length === 0) {
    return [
      warning(
        'ring-unfounded',
        'somebody has begun to found this ring, and it has no key yet',
        'Wait, or run sealring init.',
      ),
    ];
  }
  const live = liveKeysOf(ring, nowMs);
  if (live.length === 0) {
    return [
      warning(
        'ring-ended',
        `all ${ring.keys.length} keys of the ring have ended or were revoked`,
        'A member that starts makes a new one. If members run, look at why none of them rotates.',
      ),
    ];
  }
  return [
    ...(await checkAuthenticity(config, ring, nowMs)),
    ...checkWraps(config, ring, nowMs),
    checkAge(live, times, nowMs),
    checkSize(ring),
  ];
}

/** Starts as a reader does, on the very document: every live key is unwrapped, and the newest must have signed it. */
async function checkAuthenticity(config: SealringConfig, ring: RingText, nowMs: number): Promise<readonly Finding[]> {
  let codec: KmsCodec;
  const { probe: _, wrapQuorum: _quorum, ...options } = config;
  try {
    codec = await createKmsCodec({
      ...options,
      role: 'reader',
      create: 'never',
      policy: { ...config.policy, startTimeoutSeconds: START_SECONDS },
    });
  } catch (thrown) {
    return refusalOf(config, ring, nowMs, thrown);
  }
  await codec.close();
  const live = liveKeysOf(ring, nowMs).length;
  return [
    ok('ring', `the ring is authentic: epoch ${ring.epoch}, ${live} live of ${ring.keys.length} keys, all unwrapped`),
  ];
}

function refusalOf(config: SealringConfig, ring: RingText, nowMs: number, thrown: unknown): readonly Finding[] {
  const store = storeFailureOf(thrown);
  if (store?.kind === 'corrupt') {
    return [
      error(
        'ring-unauthentic',
        `the ring is not to be trusted: ${store.detail}`,
        'Restore an older version of it, find out who wrote this one, and take that right away. Running members refuse it.',
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
  const foreign = foreignKeys(config, ring, nowMs);
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
      'Restore an older version of the ring, and find out who wrote this one: ring name, times and bytes are bound together.',
    );
  });
}

/** KMS keys of live entries that none of the key wrappers has. */
function foreignKeys(config: SealringConfig, ring: RingText, nowMs: number): readonly string[] {
  const wrappers = keyWrappersOf(config);
  const unopened = liveKeysOf(ring, nowMs).filter(({ wraps }) =>
    wraps.every((wrap) => wrappers.every((wrapper) => !isOwn(wrapper, wrap))),
  );
  return [...new Set(unopened.flatMap(({ wraps }) => wraps.map(({ provider, keyId }) => `${provider} ${keyId}`)))];
}

/** Every live key should be wrapped by every key wrapper: else one of them is no help in an outage of the others. */
function checkWraps(config: SealringConfig, ring: RingText, nowMs: number): readonly Finding[] {
  const live = liveKeysOf(ring, nowMs);
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

function isOwn(
  wrapper: KeyWrapper,
  { provider, keyId }: { readonly provider: string; readonly keyId: string },
): boolean {
  const wrap: WrappedKey = { provider, keyId, wrapped: new Uint8Array(1) };
  return provider === wrapper.provider && wrapper.owns?.(wrap) !== false;
}

function keyIdFor(config: SealringConfig, provider: string): string {
  return keyWrappersOf(config).find((wrapper) => wrapper.provider === provider)?.keyId ?? '';
}

/** Whether the successor of the newest key is late. */
function checkAge(live: ReturnType<typeof liveKeysOf>, times: PolicyTimes, nowMs: number): Finding {
  const newest = live.at(-1);
  if (newest === undefined) throw new Error('a ring without live keys has no age');
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

function checkSize({ keys }: RingText): Finding {
  if (keys.length < MANY_KEYS) return ok('ring-size', `${keys.length} of at most 64 keys`);
  return warning(
    'ring-size',
    `${keys.length} of at most 64 keys: a full ring cannot be rotated`,
    'Find out who rotates so often. Keys leave the ring when their last tokens have ended.',
  );
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}
