import { compareAge, parseDocument, type RingDocument, type RingEntry } from '@sealring/core/ring';
import { storeFailureOf } from '../foreign-error.ts';

/** A ring document, of whatever name; or why it is none, and members refuse it too. */
export function parsedDocument(text: string): RingDocument | { readonly refusal: string } {
  try {
    return parseDocument(text);
  } catch (error) {
    const failure = storeFailureOf(error);
    if (failure !== undefined) return { refusal: failure.detail };
    throw error;
  }
}

/** The same where it does not matter why. */
export function readDocument(text: string): RingDocument | undefined {
  const document = parsedDocument(text);
  return 'refusal' in document ? undefined : document;
}

/** The keys whose own times let them open a token, revoked or not, oldest first. */
export function unendedKeysOf({ entries }: Pick<RingDocument, 'entries'>, nowMs: number): readonly RingEntry[] {
  return entries.filter(({ opensUntil }) => nowMs < opensUntil).toSorted(compareAge);
}

/** Ids of the keys that the document calls revoked, and that who has opened the ring does not: nothing proves it. */
export function unprovedRevocationsOf(
  document: Pick<RingDocument, 'entries'>,
  keys: readonly { readonly id: string; readonly state: string }[],
  nowMs: number,
): readonly string[] {
  const proved = new Set(keys.filter(({ state }) => state === 'revoked').map(({ id }) => id));
  return unendedKeysOf(document, nowMs)
    .filter(({ id, revoked }) => revoked !== undefined && !proved.has(id))
    .map(({ id }) => id);
}
