import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import { unpooled } from '../base/options.ts';
import { type DerivationLabel, keyIdOf, subKey } from '../formats/derivation.ts';
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
} from '../formats/sealring.ts';

/** Headers whose token keys one codec remembers, over all its keys; about 1.2 kB each. */
export const MAX_TOKEN_KEYS = 10_000;
/** MACs that one key remembers: of a full ring's keys, its wraps and revocations. About 300 bytes each. */
const MAX_CERTIFIED = 128;

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
  // The same few facts are checked at every read of the ring.
  readonly #certified = new Map<string, Buffer>();
  #tokenKeySource: TokenKeySource | undefined;
  #lease: object = {};
  #overwritten = false;

  /** Takes over `dataKey`, 32 bytes: the caller overwrites its own copy. */
  constructor(dataKey: Uint8Array, ring: string) {
    this.#dataKey = unpooled(dataKey);
    this.#ring = ring;
    this.id = keyIdOf(dataKey).toString('base64url');
  }

  /** Another one once the data key is overwritten: what is derived elsewhere is kept weakly by it, and goes along. */
  get lease(): object {
    return this.#lease;
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

  /** HMAC-SHA-256 of an ASCII text under the sub-key that certifies facts of the ring, 32 bytes; not to be changed. */
  certify(text: string): Buffer {
    let mac = this.#certified.get(text);
    if (mac === undefined) {
      mac = createHmac('sha256', this.secret('ring-mac')).update(text, 'ascii').digest();
      if (this.#certified.size >= MAX_CERTIFIED) this.#certified.clear();
      this.#certified.set(text, mac);
    }
    return mac;
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
   * Overwrites the data key and drops all that could seal or open a token; what is left can only certify
   * facts of the ring. For a revoked or ended key: a member that missed much may know the ring by this key alone.
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

  /** Overwrites what can be overwritten. KeyObjects cannot be: they go with the garbage collector. */
  destroy(): void {
    this.#overwritten = true;
    this.#dataKey.fill(0);
    for (const secret of this.#secrets.values()) secret.fill(0);
    this.#secrets.clear();
    this.#formatKeys.clear();
    this.#certified.clear();
    this.#forgetTokenKeys();
  }

  #forgetTokenKeys(): void {
    this.#tokenKeys.clear();
    this.#tokenKeySource = undefined;
    this.#lease = {};
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
 * The envelope key cache: every unwrapped data key of one codec by its id, overwritten when it leaves. What may leave,
 * and when, is decided by who knows the ring: no more stay than a full ring has, and as many ended ones that certify.
 */
export class EnvelopeKeyCache {
  readonly #keys = new Map<string, HeldKey>();
  #tokenKeysAtMost = 0;

  get(id: string): HeldKey | undefined {
    return this.#keys.get(id);
  }

  /** Takes over `key`, or, where its data key is here already, overwrites it and returns the one that is. */
  hold(key: HeldKey): HeldKey {
    const known = this.#keys.get(key.id);
    if (known !== undefined) {
      if (known !== key) key.destroy();
      return known;
    }
    this.#keys.set(key.id, key);
    return key;
  }

  /** Drops and overwrites every key that `keep` refuses. */
  prune(keep: (key: HeldKey) => boolean): void {
    for (const [id, key] of this.#keys) {
      if (keep(key)) continue;
      this.#keys.delete(id);
      key.destroy();
    }
  }

  /** Makes room for one more token key, taking from the key that has most. To be called before each is remembered. */
  boundTokenKeys(): void {
    // Counted up in between: keys that left since then only make the true number smaller.
    if (this.#tokenKeysAtMost < MAX_TOKEN_KEYS) {
      this.#tokenKeysAtMost += 1;
      return;
    }
    const held = [...this.#keys.values()];
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
    this.prune(() => false);
  }
}
