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
