import { compareAge, parseDocument, type RingDocument, type RingEntry } from '@sealring/core/ring';
import { storeFailureOf } from '../foreign-error.ts';

/** The parsed ring document, whatever its ring name, or the reason why members reject it. */
export function parsedDocument(text: string): RingDocument | { readonly refusal: string } {
  try {
    return parseDocument(text);
  } catch (error) {
    const failure = storeFailureOf(error);
    if (failure !== undefined) return { refusal: failure.detail };
    throw error;
  }
}

/** The parsed ring document; undefined if members reject it. */
export function readDocument(text: string): RingDocument | undefined {
  const document = parsedDocument(text);
  return 'refusal' in document ? undefined : document;
}

/** The keys that have not expired, revoked or not, oldest first. */
export function unexpiredKeysOf({ entries }: Pick<RingDocument, 'entries'>, nowMs: number): readonly RingEntry[] {
  return entries.filter(({ opensUntil }) => nowMs < opensUntil).toSorted(compareAge);
}

/**
 * Whether every key of the document has expired or is listed as revoked. A document without any key belongs to a member
 * that is creating the ring.
 */
export function isEnded(document: Pick<RingDocument, 'entries'>, nowMs: number): boolean {
  return document.entries.length > 0 && unexpiredKeysOf(document, nowMs).every(({ revoked }) => revoked !== undefined);
}

/**
 * The keys in use that a codec does not use: it cannot unwrap them, or no key of the ring vouches for them. Keys from
 * before `acceptKeysCreatedAfter` are left out on purpose.
 */
export function unusedKeysOf(
  document: Pick<RingDocument, 'entries'>,
  keys: readonly { readonly id: string; readonly state: string; readonly held: boolean }[],
  nowMs: number,
  acceptKeysCreatedAfter: Date = new Date(0),
): readonly RingEntry[] {
  const known = new Set(keys.filter(({ held, state }) => held || state === 'revoked').map(({ id }) => id));
  return unexpiredKeysOf(document, nowMs).filter(
    ({ id, created, revoked }) =>
      revoked === undefined && !known.has(id) && created >= acceptKeysCreatedAfter.getTime(),
  );
}

/**
 * Ids of the keys that the document lists as revoked without a valid certificate, so that a codec ignores their
 * revocation.
 */
export function unverifiedRevocationsOf(
  document: Pick<RingDocument, 'entries'>,
  keys: readonly { readonly id: string; readonly state: string }[],
  nowMs: number,
): readonly string[] {
  const verified = new Set(keys.filter(({ state }) => state === 'revoked').map(({ id }) => id));
  return unexpiredKeysOf(document, nowMs)
    .filter(({ id, revoked }) => revoked !== undefined && !verified.has(id))
    .map(({ id }) => id);
}
