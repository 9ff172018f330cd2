import type { Moment } from '../base/clock.ts';
import { hmac } from '../base/hmac.ts';
import { InvalidRequestState } from '../contracts/codec.ts';
import { SealUnavailableError } from '../contracts/errors.ts';
import {
  derivePythonKey,
  maxPythonPayloadBytes,
  PYTHON_NONCE_BYTES,
  type PythonKey,
  parsePythonToken,
  sealPython,
  unsealPython,
} from '../formats/python.ts';
import { unsealSealring } from '../formats/sealring.ts';
import {
  type DecodedToken,
  decodeToken,
  isSameKeyId,
  keyIdText,
  maxPayloadBytes,
  SEALRING_PREFIX,
  withDecodedToken,
} from '../formats/sealring-token.ts';
import type { DataKey } from '../keys/data-key.ts';
import type { EnvelopeKeyCache } from '../keys/envelope-key-cache.ts';
import type { UsableKey } from '../ring/snapshot.ts';
import { mix, type SealingState, TokenSealer } from './token-sealer.ts';

/** The source of keys for tokens. Synchronous, and independent of formats. */
export interface KeySource {
  /** @throws {SealUnavailableError} */
  sealingKey(now: Moment): UsableKey;
  unsealingKey(id: string, now: Moment): UsableKey | undefined;
  /** Newest first. */
  unsealingKeys(now: Moment): readonly UsableKey[];
  noteUnknownKey(id: string | undefined, now: Moment): void;
}

/** A token format. Independent of the source of keys. */
export interface TokenFormat {
  seal(payload: Uint8Array, now: Moment): string;
  /** @throws {InvalidRequestState} */
  open(token: string, now: Moment): { readonly payload: Uint8Array; readonly key: UsableKey };
  /**
   * The id of the key that a token names, which need not be in `keys`; empty if the token has only a fingerprint of its
   * key and no key in `keys` matches.
   * @throws {InvalidRequestState} `malformed`.
   */
  keyIdOf(token: string, keys: readonly UsableKey[]): string;
}

export type TokenFormatName = 'sealring' | 'python';

/** The format that the prefix and the dots of a token indicate. The token is not decoded. */
export function formatOf(token: string): TokenFormatName | undefined {
  if (token.startsWith(SEALRING_PREFIX)) return 'sealring';
  return token.startsWith('v1.') && !token.includes('.', 3) ? 'python' : undefined;
}

/**
 * Sealring's own tokens, with keys from a key source. Each purpose has its own instance, because its token keys are
 * separate.
 */
export class SealringTokens implements TokenFormat {
  readonly #source: KeySource;
  readonly #state: SealingState;
  readonly #cache: EnvelopeKeyCache;
  readonly #purpose: string | undefined;
  readonly #maxPayload: number;
  /** Keyed by the lease of the data key. */
  readonly #sealers = new WeakMap<object, TokenSealer>();
  // The last unsealed token's key id: not secret. Consecutive tokens usually have the same key id, and comparing its
  // bytes costs less than extracting and hashing its text for every token.
  #lastWords: Int32Array | undefined;
  #lastKeyId = '';

  constructor(
    source: KeySource,
    state: SealingState,
    cache: EnvelopeKeyCache,
    options: { readonly purpose: string | undefined; readonly maxTokenLength: number },
  ) {
    this.#source = source;
    this.#state = state;
    this.#cache = cache;
    this.#purpose = options.purpose;
    this.#maxPayload = maxPayloadBytes(options.maxTokenLength);
  }

  seal(payload: Uint8Array, now: Moment): string {
    checkLength(payload, this.#maxPayload);
    const { held } = this.#source.sealingKey(now);
    let sealer = this.#sealers.get(held.lease);
    if (sealer === undefined) {
      sealer = new TokenSealer(this.#state, (salt) =>
        held.deriveTokenKey(salt, { purpose: this.#purpose, hedge: this.#state.hedge }),
      );
      this.#sealers.set(held.lease, sealer);
    }
    return sealer.seal(payload, now);
  }

  open(token: string, now: Moment): { readonly payload: Uint8Array; readonly key: UsableKey } {
    return withDecodedToken(token, unsealDecoded, this, now);
  }

  unsealDecoded(
    decoded: DecodedToken,
    token: string,
    now: Moment,
  ): { readonly payload: Uint8Array; readonly key: UsableKey } {
    const isLast = this.#lastWords !== undefined && isSameKeyId(this.#lastWords, decoded.words);
    const id = isLast ? this.#lastKeyId : keyIdText(token);
    const key = this.#source.unsealingKey(id, now);
    if (key === undefined) {
      this.#source.noteUnknownKey(id, now);
      throw new InvalidRequestState('unknown key');
    }
    const known = key.held.knownTokenKey(decoded.words);
    const payload =
      known !== undefined && known.purpose === this.#purpose
        ? unsealSealring(known, decoded)
        : this.#unsealFirst(key.held, decoded);
    if (!isLast) {
      this.#lastWords = new Int32Array(decoded.words);
      this.#lastKeyId = id;
    }
    return { payload, key };
  }

  keyIdOf(token: string): string {
    decodeToken(token);
    return keyIdText(token);
  }

  /** Unseals the first token with a header. Remembers the token key only if the token is authentic. */
  #unsealFirst(held: DataKey, decoded: DecodedToken): Uint8Array {
    const tokenKey = held.unsealingTokenKey(decoded, this.#purpose);
    const payload = unsealSealring(tokenKey, decoded);
    this.#cache.makeRoomForTokenKey();
    held.rememberTokenKey(tokenKey);
    return payload;
  }
}

/** Passed to {@link withDecodedToken}: a function that is created once costs nothing per token. */
function unsealDecoded(
  decoded: DecodedToken,
  token: string,
  tokens: SealringTokens,
  now: Moment,
): { readonly payload: Uint8Array; readonly key: UsableKey } {
  return tokens.unsealDecoded(decoded, token, now);
}

/** Number of tokens that one data key may seal in the Python wire format, whose nonces are random (SP 800-38D 8.3). */
const PYTHON_TOKENS_PER_KEY = 2 ** 32;

const HEDGE_INFO = 'sealring/python/hedge';

/** The keys derived from one data key for the Python wire format. */
interface PythonUse {
  readonly key: PythonKey;
  /** The key for the payload hash in hedged nonces; undefined if hedging is off. */
  readonly hedgeKey: Buffer | undefined;
  sealed: number;
}

/** The Python SDK's tokens, with the secret that is derived from each data key for them. */
export class PythonTokens implements TokenFormat {
  readonly #source: KeySource;
  readonly #state: Pick<SealingState, 'random' | 'hedge'>;
  readonly #maxTokenLength: number;
  readonly #maxPayload: number;
  readonly #mostPerKey: number;
  /** Keyed by the lease of the data key. */
  readonly #keys = new WeakMap<object, PythonUse>();

  constructor(
    source: KeySource,
    state: Pick<SealingState, 'random' | 'hedge'>,
    maxTokenLength: number,
    mostPerKey: number = PYTHON_TOKENS_PER_KEY,
  ) {
    this.#source = source;
    this.#mostPerKey = mostPerKey;
    this.#state = state;
    this.#maxTokenLength = maxTokenLength;
    this.#maxPayload = maxPythonPayloadBytes(maxTokenLength);
  }

  seal(payload: Uint8Array, now: Moment): string {
    checkLength(payload, this.#maxPayload);
    const use = this.#keyOf(this.#source.sealingKey(now).held);
    if (use.sealed >= this.#mostPerKey) throw new SealUnavailableError('token limit of the key reached');
    use.sealed += 1;
    const nonce = new Uint8Array(PYTHON_NONCE_BYTES);
    this.#state.random(nonce);
    if (use.hedgeKey !== undefined) mix(nonce, hmac('sha256', use.hedgeKey).update(payload).digest());
    return sealPython(use.key, nonce, payload);
  }

  open(token: string, now: Moment): { readonly payload: Uint8Array; readonly key: UsableKey } {
    const parsed = parsePythonToken(token, this.#maxTokenLength);
    // Fingerprints of four bytes can collide within a ring, so every key with this fingerprint is tried.
    const matching = this.#source.unsealingKeys(now).filter((key) => this.#keyOf(key.held).key.kid === parsed.kid);
    for (const [i, key] of matching.entries()) {
      try {
        return { payload: unsealPython(this.#keyOf(key.held).key, parsed), key };
      } catch (error) {
        if (i === matching.length - 1) throw error;
      }
    }
    this.#source.noteUnknownKey(undefined, now);
    throw new InvalidRequestState('unknown key');
  }

  keyIdOf(token: string, keys: readonly UsableKey[]): string {
    const { kid } = parsePythonToken(token, this.#maxTokenLength);
    return keys.find(({ held }) => this.#keyOf(held).key.kid === kid)?.id ?? '';
  }

  #keyOf(held: DataKey): PythonUse {
    let use = this.#keys.get(held.lease);
    if (use === undefined) {
      const secret = held.secret('python');
      const hedgeKey = this.#state.hedge ? hmac('sha256', secret).update(HEDGE_INFO).digest() : undefined;
      use = { key: derivePythonKey(secret), hedgeKey, sealed: 0 };
      this.#keys.set(held.lease, use);
    }
    return use;
  }
}

/** A token that every server would reject because of its length must not be sealed. */
function checkLength(payload: Uint8Array, most: number): void {
  if (payload.length > most) {
    throw new RangeError(`payload must be at most ${most} bytes, got ${payload.length}: its token would be refused`);
  }
}
