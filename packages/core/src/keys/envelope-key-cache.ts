import { keyIdOf } from '../formats/derivation.ts';
import { DataKey } from './data-key.ts';
import type { RingAuthenticator } from './ring-authenticator.ts';

/** How many token keys one codec remembers, for all its data keys together; about 1.2 kB each. */
export const MAX_TOKEN_KEYS = 10_000;

/**
 * The envelope key cache, the only owner of key bytes: every unwrapped data key of a codec, and every ring
 * authenticator, is created, lent and overwritten here. References elsewhere stop working once the key that they refer
 * to is overwritten.
 *
 * The state of the ring decides which key is dropped, never how recently a key was used: after the eviction of a live
 * key, valid tokens would be refused until the next unwrap. That is why plain maps are used, not an LRU cache. The maps
 * stay small: a ring has at most 64 keys, and the authenticators of as many more are kept.
 */
export class EnvelopeKeyCache {
  readonly #ring: string;
  readonly #dataKeys = new Map<string, DataKey>();
  readonly #authenticators = new Map<string, RingAuthenticator>();

  constructor(ring: string) {
    this.#ring = ring;
  }

  /** Takes ownership of 32 bytes, overwrites them, and returns their data key: the same object while it is held. */
  take(bytes: Uint8Array): DataKey {
    const id = keyIdOf(bytes).toString('base64url');
    let key = this.#dataKeys.get(id);
    if (key === undefined) {
      key = new DataKey(bytes, this.#ring, this.#authenticators.get(id));
      this.#dataKeys.set(id, key);
      this.#authenticators.set(id, key.authenticator);
    }
    bytes.fill(0);
    return key;
  }

  get(id: string): DataKey | undefined {
    return this.#dataKeys.get(id);
  }

  /** Overwrites one key that was never published, and its authenticator. */
  drop(id: string): void {
    this.#dataKeys.get(id)?.destroy();
    this.#authenticators.get(id)?.destroy();
    this.#dataKeys.delete(id);
    this.#authenticators.delete(id);
  }

  /** Overwrites every data key whose id is not in `dataKeys`, and every authenticator whose id is in neither set. */
  retain(dataKeys: ReadonlySet<string>, authenticators: ReadonlySet<string>): void {
    for (const [id, key] of this.#dataKeys) {
      if (dataKeys.has(id)) continue;
      key.destroy();
      this.#dataKeys.delete(id);
    }
    for (const [id, authenticator] of this.#authenticators) {
      if (dataKeys.has(id) || authenticators.has(id)) continue;
      authenticator.destroy();
      this.#authenticators.delete(id);
    }
  }

  /** Overwrites everything. */
  clear(): void {
    const nothing: ReadonlySet<string> = new Set();
    this.retain(nothing, nothing);
  }

  /**
   * Makes room for one more token key: at the limit, drops the oldest one of the data key that has the most. Call it
   * before you remember a token key.
   */
  makeRoomForTokenKey(): void {
    let total = 0;
    let most: DataKey | undefined;
    for (const key of this.#dataKeys.values()) {
      total += key.tokenKeyCount;
      if (key.tokenKeyCount > (most?.tokenKeyCount ?? 0)) most = key;
    }
    if (total >= MAX_TOKEN_KEYS) most?.forgetOldestTokenKey();
  }

  /** The number of data keys that the cache holds. */
  get size(): number {
    return this.#dataKeys.size;
  }
}
