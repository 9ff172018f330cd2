import { createHash, createSecretKey, type KeyObject } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { canonicalJson } from './canonical-json.ts';
import type { Clock } from './clock.ts';
import { type DerivationLabel, keyIdOf, subKey } from './formats/derivation.ts';
import {
  type DecodedToken,
  deriveTokenKey,
  isSameHeader,
  openingTokenKey,
  type SealingTokenKey,
  saltWord,
  type TokenKey,
  type TokenKeyOptions,
  type TokenKeySource,
  tokenKeySource,
} from './formats/sealring.ts';
import type { WrappedKey } from './key-wrapper.ts';
import { unpooled } from './options.ts';

/** Headers whose token keys one codec remembers, over all its keys; about 1.2 kB each. */
export const MAX_TOKEN_KEYS = 10_000;

/**
 * One unwrapped data key and everything derived from it that is worth remembering. Token keys live in here, so that
 * whoever drops the key drops them along: a revoked or retired key takes its warm tokens with it.
 */
export class HeldKey {
  /** 12 characters, recomputed from the data key: never taken from a document. */
  readonly id: string;
  readonly #ring: string;
  readonly #dataKey: Buffer;
  // By the start of their salts, oldest first. A plain map: one that is dropped too early, or replaced by one whose salt
  // starts alike, is derived again, which costs ten microseconds.
  readonly #tokenKeys = new Map<number, TokenKey>();
  readonly #secrets = new Map<DerivationLabel, Buffer>();
  readonly #formatKeys = new Map<DerivationLabel, KeyObject>();
  #tokenKeySource: TokenKeySource | undefined;
  #overwritten = false;

  /** Takes over `dataKey`, 32 bytes: the caller overwrites its own copy. */
  constructor(dataKey: Uint8Array, ring: string) {
    this.#dataKey = unpooled(dataKey);
    this.#ring = ring;
    this.id = keyIdOf(dataKey).toString('base64url');
  }

  /** Whether this is the data key `dataKey`. */
  equals(dataKey: Uint8Array): boolean {
    return this.#live().equals(dataKey);
  }

  /** To seal with. */
  deriveTokenKey(salt: Uint8Array, options: TokenKeyOptions = {}): SealingTokenKey {
    return deriveTokenKey(this.#source(), salt, options);
  }

  /**
   * To open with, for a token whose key id is that of this key.
   * @throws {InvalidRequestState} `seal`: the header commits to another key.
   */
  openingTokenKey(token: DecodedToken, purpose: string | undefined): TokenKey {
    return openingTokenKey(this.#source(), token, purpose);
  }

  #source(): TokenKeySource {
    this.#tokenKeySource ??= tokenKeySource(this.#live(), this.#ring);
    return this.#tokenKeySource;
  }

  /** The token key of a header, if a token with that header authenticated before. */
  knownTokenKey(words: Int32Array): TokenKey | undefined {
    const known = this.#tokenKeys.get(saltWord(words));
    return known !== undefined && isSameHeader(known.words, words) ? known : undefined;
  }

  /** Remembers a token key. Only for headers of which a token authenticated: others are attacker-chosen. */
  rememberTokenKey(tokenKey: TokenKey): void {
    this.#tokenKeys.set(saltWord(tokenKey.words), tokenKey);
  }

  get tokenKeyCount(): number {
    return this.#tokenKeys.size;
  }

  forgetOldestTokenKey(): void {
    for (const word of this.#tokenKeys.keys()) {
      this.#tokenKeys.delete(word);
      return;
    }
  }

  /** The first 32 bytes of sub(label): the secret that a format, or the ring's MAC, starts from. Not to be kept. */
  secret(label: Exclude<DerivationLabel, 'token'>): Buffer {
    let secret = this.#secrets.get(label);
    if (secret === undefined) {
      const block = subKey(this.#live(), label, this.#ring);
      secret = unpooled(block.subarray(0, 32));
      block.fill(0);
      this.#secrets.set(label, secret);
    }
    return secret;
  }

  /** {@link secret} of a token format as a KeyObject, imported once. */
  formatKey(label: 'python' | 'typescript' | 'mcp.d'): KeyObject {
    let key = this.#formatKeys.get(label);
    if (key === undefined) {
      key = createSecretKey(this.secret(label));
      this.#formatKeys.set(label, key);
    }
    return key;
  }

  /** The data key for a further wrap; the caller overwrites the copy when done. */
  copyDataKey(): Buffer {
    return unpooled(this.#live());
  }

  /**
   * Overwrites the data key and drops all that could seal or open a token; what is left can only sign and check ring
   * documents. For a revoked key: a member that missed the revocation knows the ring by this key alone.
   */
  limitToRing(): void {
    if (this.#overwritten) return;
    this.secret('ring-mac');
    this.#overwritten = true;
    this.#dataKey.fill(0);
    this.#forgetTokenKeys();
    this.#formatKeys.clear();
    for (const [label, secret] of this.#secrets) {
      if (label === 'ring-mac') continue;
      secret.fill(0);
      this.#secrets.delete(label);
    }
  }

  /** A copy that can only sign and check ring documents: what is remembered of a key that has ended. */
  asRingSigner(): HeldKey {
    const copy = new HeldKey(this.#live(), this.#ring);
    copy.limitToRing();
    return copy;
  }

  /** Overwrites what can be overwritten. KeyObjects cannot be: they go with the garbage collector. */
  destroy(): void {
    this.#overwritten = true;
    this.#dataKey.fill(0);
    for (const secret of this.#secrets.values()) secret.fill(0);
    this.#secrets.clear();
    this.#formatKeys.clear();
    this.#forgetTokenKeys();
  }

  #forgetTokenKeys(): void {
    this.#tokenKeys.clear();
    this.#tokenKeySource = undefined;
  }

  /** An overwritten data key is 32 zeros: deriving from it would seal with a key that everybody knows. */
  #live(): Buffer {
    if (this.#overwritten) throw new Error(`data key ${this.id} was overwritten`);
    return this.#dataKey;
  }

  toJSON(): object {
    return { id: this.id };
  }
}

/**
 * What an unwrapped key is remembered under: everything that the unwrap depended on, so that the same ciphertext under
 * another KMS key version or context is asked for anew, and refused there.
 */
export function wrapIdentity(wrapped: WrappedKey, context: Readonly<Record<string, string>>): string {
  const question = canonicalJson([wrapped.provider, wrapped.keyId, context], { sortKeys: true });
  return createHash('sha256').update(question).update('\0').update(wrapped.wrapped).digest('base64url');
}

/** Twice the keys a ring may have: keys that a damaged document lacks stay held beside those it names. */
const MAX_HELD_KEYS = 128;

/**
 * The envelope key cache: unwrapped data keys by {@link wrapIdentity}, bounded, expiring at the end of the key's life
 * and overwritten when they leave.
 */
export class EnvelopeKeyCache {
  readonly #keys: LRUCache<string, HeldKey>;
  readonly #clock: Clock;
  #tokenKeysAtMost = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#keys = new LRUCache<string, HeldKey>({
      max: MAX_HELD_KEYS,
      ttlResolution: 0,
      perf: { now: () => clock.wallMs() },
      // Not `dispose`, which runs while the entry is still listed: every key would look as if it were held elsewhere too.
      disposeAfter: (key, _identity, reason) => {
        if (reason !== 'set' && ![...this.#keys.values()].includes(key)) key.destroy();
      },
    });
  }

  get(identity: string): HeldKey | undefined {
    return this.#keys.get(identity);
  }

  /** Keeps `key` until `opensUntilMs` (wall clock). */
  set(identity: string, key: HeldKey, opensUntilMs: number): void {
    const ttl = Math.ceil(opensUntilMs - this.#clock.wallMs());
    if (ttl > 0) this.#keys.set(identity, key, { ttl });
  }

  /** Drops and overwrites every key whose life is over, and every one that `keep` refuses. */
  prune(keep: (key: HeldKey) => boolean): void {
    this.#keys.purgeStale();
    for (const [identity, key] of Array.from(this.#keys)) {
      if (!keep(key)) this.#keys.delete(identity);
    }
  }

  /** Makes room for one more token key, taking from the key that has most. To be called before each is remembered. */
  boundTokenKeys(): void {
    // Counted up in between: keys that left since then only make the true number smaller.
    if (this.#tokenKeysAtMost < MAX_TOKEN_KEYS) {
      this.#tokenKeysAtMost += 1;
      return;
    }
    const held = [...new Set(this.#keys.values())];
    let total = held.reduce((sum, key) => sum + key.tokenKeyCount, 0);
    for (; total >= MAX_TOKEN_KEYS; total--) {
      held.reduce((most, key) => (key.tokenKeyCount > most.tokenKeyCount ? key : most)).forgetOldestTokenKey();
    }
    this.#tokenKeysAtMost = total + 1;
  }

  get size(): number {
    return this.#keys.size;
  }

  clear(): void {
    this.#keys.clear();
  }
}
