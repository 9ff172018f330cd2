import type { KeyHealth, KmsCodec } from '@sealring/core';
import type { RingEntry } from '@sealring/core/ring';
import { unexpiredKeysOf, unusedKeysOf } from '../ring/document.ts';
import { keyNamed } from '../ring/key-name.ts';
import { UsageError } from '../usage-error.ts';
import type { DocumentLog } from './document-log.ts';

/** The keys to revoke: one by its name, id or fingerprint, or all that may have been created up to a time. */
export type RevocationTarget = { readonly key: string } | { readonly before: Date };

/** A time later than the creation of any key: a document has four digits for a year. */
const END_OF_TIME: Date = new Date('9999-12-31T23:59:59Z');
const TIME = /^(\d{4})-(\d\d)-(\d\d)(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d))?$/;

/** @throws {UsageError} unless exactly one target is given, and the time is valid. */
export function targetOf(
  key: string | undefined,
  { before, all = false }: { readonly before?: string; readonly all?: boolean },
): RevocationTarget {
  const given = [
    ...(key === undefined ? [] : [`the key "${key.slice(0, 80)}"`]),
    ...(before === undefined ? [] : [`--before "${before}"`]),
    ...(all ? ['--all'] : []),
  ];
  if (given.length > 1) throw new UsageError(`give only one of ${given.join(' and ')}`);
  if (key !== undefined) return { key };
  if (all) return { before: END_OF_TIME };
  if (before === undefined) throw new UsageError('revoke requires a key, --before <time> or --all');
  return { before: timeOf(before) };
}

function timeOf(text: string): Date {
  const time = new Date(text);
  const [, year, month, day] = TIME.exec(text) ?? [];
  // Date accepts the 31st of November as a day in December.
  const start = new Date(Date.UTC(Number(year), Number(month) - 1, Number(day)));
  if (Number.isNaN(time.getTime()) || start.getUTCDate() !== Number(day)) {
    throw new UsageError(`--before must be a date, or a time with a zone such as 2026-11-21T20:00:00Z; got "${text}"`);
  }
  return time;
}

/** The keys that a target selects. */
export interface Selected {
  /** Keys that can be revoked. A key that is already revoked is included only if it is named. */
  readonly keys: readonly KeyHealth[];
  /** Keys of the document that cannot be revoked with this configuration, which does not use them. */
  readonly unused: readonly RingEntry[];
}

/** What is known about a ring: the view of a codec, and the entries of the documents that were read. */
export interface KnownRing {
  readonly keys: readonly KeyHealth[];
  readonly listed: readonly RingEntry[];
  readonly nowMs: number;
  readonly clockSkewSeconds: number;
}

/** @throws {UsageError} if the ring has no such key. */
export function selectedKeys(target: RevocationTarget, ring: KnownRing): Selected {
  const others = unusedKeysOf({ entries: ring.listed }, ring.keys, ring.nowMs);
  const isOther = ({ id }: { readonly id: string }): boolean => others.some((other) => other.id === id);
  if ('key' in target) {
    const key = keyNamed(target.key, ring.keys);
    const other = keyNamed(target.key, others);
    if (key === undefined && other === undefined) {
      throw new UsageError(`the ring has no key "${target.key.slice(0, 80)}"`);
    }
    return other === undefined ? { keys: key === undefined ? [] : [key], unused: [] } : { keys: [], unused: [other] };
  }
  const latest = latestOf(target.before, ring);
  const keys = ring.keys.filter((key) => key.state !== 'revoked' && !isOther(key) && +key.created <= latest);
  return { keys, unused: others.filter(({ created }) => created <= latest) };
}

/** Revokes the keys. @returns the keys that this call revoked, and the named key in any case. */
export async function revoke(codec: KmsCodec, target: RevocationTarget): Promise<readonly KeyHealth[]> {
  const before = revokedIn(codec);
  const named = 'key' in target ? keyNamed(target.key, codec.health().keys)?.id : undefined;
  await ('before' in target ? codec.revokeAllBefore(target.before) : codec.revoke(named ?? ''));
  const known = new Set(before.map(({ id }) => id));
  return revokedIn(codec).filter(({ id }) => !known.has(id) || id === named);
}

/**
 * The selected keys that may not be revoked for every server: the codec does not know the revocation, the stored document
 * lacks it, or only keys certify it that some server with this key may be unable to unwrap.
 */
export function missedKeys(target: RevocationTarget, ring: KnownRing, log: DocumentLog): readonly RingEntry[] {
  const revoked = new Set(ring.keys.filter(({ state }) => state === 'revoked').map(({ id }) => id));
  const unexpired = unexpiredKeysOf({ entries: ring.listed }, ring.nowMs);
  const meant =
    'key' in target
      ? [keyNamed(target.key, unexpired)].filter((key) => key !== undefined)
      : unexpired.filter(({ created }) => created <= latestOf(target.before, ring));
  const isSure = (key: RingEntry): boolean =>
    log.certifiersOf(key.id).some((by) => by.id === key.id || isWrappedLike(by, key));
  return meant.filter((key) => !revoked.has(key.id) || !isSure(key));
}

/** Whether every server that can unwrap the second key can also unwrap the first one. */
function isWrappedLike({ wraps }: RingEntry, key: RingEntry): boolean {
  return key.wraps.every(({ provider, keyId }) =>
    wraps.some((wrap) => wrap.provider === provider && wrap.keyId === keyId),
  );
}

/** The clock of the server that created a key may have been fast. */
function latestOf(before: Date, { clockSkewSeconds }: KnownRing): number {
  return before.getTime() + clockSkewSeconds * 1_000;
}

/** The keys that a codec treats as revoked. */
export function revokedIn(codec: KmsCodec): readonly KeyHealth[] {
  return codec.health().keys.filter(({ state }) => state === 'revoked');
}
