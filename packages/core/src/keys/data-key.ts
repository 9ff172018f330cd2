import { createSecretKey, type KeyObject } from 'node:crypto';
import { unpooled } from '../base/options.ts';
import { keyIdOf, subKey } from '../formats/derivation.ts';
import {
  deriveTokenKey,
  type SealingTokenKey,
  type TokenKey,
  type TokenKeyOptions,
  type TokenKeySource,
  tokenKeySource,
  unsealingTokenKey,
} from '../formats/sealring.ts';
import { type DecodedToken, isSameHeader, saltWord } from '../formats/sealring-token.ts';
import { RingAuthenticator } from './ring-authenticator.ts';

/** The formats that derive their keys from their own secret, the first 32 bytes of sub(label). */
export type SecretFormat = 'typescript' | 'mcp.d' | 'python';

/**
 * One unwrapped data key, and the derived keys that are kept with it. Token keys are kept here so that they are dropped
 * with their data key, when it expires or is revoked. Its owner, the {@link EnvelopeKeyCache}, creates and overwrites
 * it.
 */
export class DataKey {
  /** 12 characters, computed from the data key: never taken from a document. */
  readonly id: string;
  /** All that remains of this key after it is overwritten. */
  readonly authenticator: RingAuthenticator;
  readonly #ring: string;
  readonly #bytes: Buffer;
  // Token keys by the start of their salts, oldest first. This is a plain map, not an LRU cache: every token is looked
  // up here, and moving an entry to the front would cost more than it saves. A token key that is dropped too early, or
  // replaced by one whose salt starts with the same bytes, is derived again, which takes ten microseconds.
  readonly #tokenKeys = new Map<number, TokenKey>();
  readonly #secrets = new Map<SecretFormat, Buffer>();
  readonly #formatKeys = new Map<SecretFormat, KeyObject>();
  #tokenKeySource: TokenKeySource | undefined;
  #lease: object = {};
  #isOverwritten = false;

  /** Copies the 32 bytes. `authenticator` is that of the same data key, if it is already known. */
  constructor(bytes: Uint8Array, ring: string, authenticator?: RingAuthenticator) {
    this.#bytes = unpooled(bytes);
    this.#ring = ring;
    this.id = keyIdOf(bytes).toString('base64url');
    this.authenticator = authenticator ?? new RingAuthenticator(this.id, bytes, ring);
  }

  /**
   * The key of WeakMaps with derived values: replaced when the data key is overwritten, so that derived values are
   * neither found nor kept any longer.
   */
  get lease(): object {
    return this.#lease;
  }

  /** Whether it was overwritten, and can no longer be used. */
  get isOverwritten(): boolean {
    return this.#isOverwritten;
  }

  /** Whether these are the bytes of this data key. */
  equals(bytes: Uint8Array): boolean {
    return this.#live().equals(bytes);
  }

  /** A token key to seal with. */
  deriveTokenKey(salt: Uint8Array, options: TokenKeyOptions = {}): SealingTokenKey {
    return deriveTokenKey(this.#source(), salt, options);
  }

  /**
   * The token key of a token that names this key.
   * @throws {InvalidRequestState} `authentication failed` if the header commits to another key.
   */
  unsealingTokenKey(token: DecodedToken, purpose: string | undefined): TokenKey {
    return unsealingTokenKey(this.#source(), token, purpose);
  }

  #source(): TokenKeySource {
    this.#tokenKeySource ??= tokenKeySource(this.#live(), this.#ring);
    return this.#tokenKeySource;
  }

  /** The token key of a header, if a token with that header was authenticated before. */
  knownTokenKey(words: Int32Array): TokenKey | undefined {
    const known = this.#tokenKeys.get(saltWord(words));
    return known !== undefined && isSameHeader(known.words, words) ? known : undefined;
  }

  /** Remembers a token key. Call it only for the header of an authenticated token: an attacker may choose any other. */
  rememberTokenKey(tokenKey: TokenKey): void {
    this.#tokenKeys.set(saltWord(tokenKey.words), tokenKey);
  }

  get tokenKeyCount(): number {
    return this.#tokenKeys.size;
  }

  forgetOldestTokenKey(): void {
    this.#tokenKeys.delete(this.#tokenKeys.keys().next().value as number);
  }

  /** The first 32 bytes of sub(label): the secret from which a token format derives its keys. Do not keep it. */
  secret(label: SecretFormat): Buffer {
    let secret = this.#secrets.get(label);
    if (secret === undefined) {
      const block = subKey(this.#live(), label, this.#ring);
      secret = unpooled(block.subarray(0, 32));
      block.fill(0);
      this.#secrets.set(label, secret);
    }
    return secret;
  }

  /** {@link secret} as a KeyObject, imported once. */
  formatKey(label: SecretFormat): KeyObject {
    let key = this.#formatKeys.get(label);
    if (key === undefined) {
      key = createSecretKey(this.secret(label));
      this.#formatKeys.set(label, key);
    }
    return key;
  }

  /** The 32 bytes, to be wrapped; the caller overwrites the copy when done. */
  copyBytes(): Buffer {
    return unpooled(this.#live());
  }

  /**
   * Overwrites the data key, and drops every derived key that could seal or unseal a token; the authenticator is kept.
   * KeyObjects cannot be overwritten: the garbage collector frees them. Every later use throws.
   */
  destroy(): void {
    this.#isOverwritten = true;
    this.#bytes.fill(0);
    for (const secret of this.#secrets.values()) secret.fill(0);
    this.#secrets.clear();
    this.#formatKeys.clear();
    this.#tokenKeys.clear();
    this.#tokenKeySource = undefined;
    this.#lease = {};
  }

  /** An overwritten data key is 32 zeros: sealing with a key derived from it would use a publicly known key. */
  #live(): Buffer {
    if (this.#isOverwritten) throw new Error(`data key ${this.id} was overwritten`);
    return this.#bytes;
  }

  toJSON(): object {
    return { id: this.id };
  }
}
