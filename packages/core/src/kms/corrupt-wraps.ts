import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { canonicalJson } from '../base/canonical-json.ts';
import { ageMs, type Clock, type Moment, momentOf } from '../base/clock.ts';
import { KeyWrapperError } from '../contracts/key-wrapper.ts';
import { base64url, type RingWrap, timesOf } from '../ring/document.ts';
import type { KeyTimes } from '../ring/schedule.ts';

/** How long a wrap that the KMS reported as corrupt is not unwrapped again, and how many such wraps are remembered. */
const CORRUPT_FOR_MS = 3_600_000;
const MAX_CORRUPT = 4_096;

/** The wraps of a stored entry or of a known key, for the KMS to unwrap. */
export type WrappedEntry = KeyTimes & { readonly id: string; readonly wraps: readonly RingWrap[] };

/**
 * Remembers the wraps that the KMS reported as corrupt. An attacker who can write to the store can invent any number of
 * such wraps, so the memory is bounded. It drops the least recently used wrap first, because a wrap that is still in the
 * document is looked up at every read, whereas one that has left the document is not.
 */
export class CorruptWraps {
  readonly #clock: Clock;
  /** Keyed by {@link identityOf}: a wrap is corrupt for one entry, not for a key id. */
  readonly #since = new LRUCache<string, Moment>({ max: MAX_CORRUPT });

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  note(entry: WrappedEntry, wrap: RingWrap): void {
    this.#since.set(identityOf(entry, wrap), momentOf(this.#clock));
  }

  has(entry: WrappedEntry, wrap: RingWrap): boolean {
    const since = this.#since.get(identityOf(entry, wrap));
    return since !== undefined && ageMs(since, momentOf(this.#clock)) < CORRUPT_FOR_MS;
  }
}

function identityOf(entry: WrappedEntry, { provider, keyId, wrapped, signature }: RingWrap): string {
  const signed = signature === undefined ? null : base64url(signature);
  const facts = [entry.id, ...timesOf(entry), provider, keyId, base64url(wrapped), signed];
  return createHash('sha256').update(canonicalJson(facts)).digest('base64url');
}

/** Whether a wrap or an entry is corrupt. */
export function isCorrupt(failure: unknown): boolean {
  return failure instanceof KeyWrapperError && failure.kind === 'corrupt';
}
