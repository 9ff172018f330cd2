import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  type KeyObject,
  timingSafeEqual,
} from 'node:crypto';
import { unpooled } from '../base/options.ts';
import { InvalidRequestState } from '../contracts/codec.ts';
import { KEY_ID_BYTES, keyIdOf, subKeyInput } from './derivation.ts';
import {
  AAD_BYTES,
  COMMITMENT_BYTES,
  COMMITMENT_START,
  type DecodedToken,
  NONCE_BYTES,
  PREFIX_BYTES,
  SALT_BYTES,
  SALT_START,
  SEALRING_PREFIX,
  TAG_BYTES,
} from './sealring-token.ts';

/** Node 20 accepts tags of 4 bytes unless the length is given. */
const FULL_TAG = Object.freeze({ authTagLength: TAG_BYTES });
const AES_KEY_BYTES = 32;
const HEDGE_KEY_START = AES_KEY_BYTES + COMMITMENT_BYTES;

const SHORT_BODY_BYTES = NONCE_BYTES + 4_096 + TAG_BYTES;
/**
 * The buffer in which {@link sealSealring} assembles the bodies of tokens with up to 4 KiB of state: a new buffer for
 * each would take a tenth of the time of a call.
 */
const shortBody = Buffer.allocUnsafeSlow(SHORT_BODY_BYTES);

/** The AES-256-GCM key of one data key and one salt, for unsealing. */
export interface TokenKey {
  /** The header of its tokens, as {@link DecodedToken.words}. */
  readonly words: Int32Array;
  readonly key: KeyObject;
  /** The purpose of the key: a token of one purpose must never be unsealed for another, even with a remembered key. */
  readonly purpose: string | undefined;
}

/** A token key to seal with. */
export interface SealingTokenKey {
  /** The prefix and the 60 characters of the header, with which its tokens begin. */
  readonly start: string;
  /** "sr1." ‖ keyId ‖ salt ‖ commitment, 49 bytes. */
  readonly aad: Uint8Array;
  readonly key: KeyObject;
  /** 14 bytes that nothing else uses; they key the payload hash of hedged nonces. Present only if hedging is on. */
  readonly hedgeKey: Buffer | undefined;
}

/** The inputs from which the token keys of one data key are derived. */
export interface TokenKeySource {
  /** 9 bytes. */
  readonly keyId: Buffer;
  /** The data key: `base/hmac.ts` explains why it is not a raw buffer. */
  readonly key: KeyObject;
  /** The input of its HMAC; the last 18 bytes are overwritten with the salt. */
  readonly input: Buffer;
}

export function tokenKeySource(dataKey: Uint8Array, ring: string): TokenKeySource {
  const input = Buffer.concat([subKeyInput('token', ring), Buffer.alloc(SALT_BYTES)]);
  return { keyId: keyIdOf(dataKey), key: createSecretKey(dataKey), input };
}

export interface TokenKeyOptions {
  readonly purpose?: string | undefined;
  /** Whether its tokens have hedged nonces. Default: false. */
  readonly hedge?: boolean;
}

/** Derives the token key of a salt, to seal with. */
export function deriveTokenKey(
  source: TokenKeySource,
  salt: Uint8Array,
  { purpose, hedge = false }: TokenKeyOptions = {},
): SealingTokenKey {
  const block = deriveBlock(source, salt, purpose);
  const aad = Buffer.allocUnsafe(AAD_BYTES);
  aad.set(PREFIX_BYTES);
  aad.set(source.keyId, SALT_START - KEY_ID_BYTES);
  aad.set(salt, SALT_START);
  block.copy(aad, COMMITMENT_START, AES_KEY_BYTES, HEDGE_KEY_START);
  const start = SEALRING_PREFIX + aad.toString('base64url', PREFIX_BYTES.length);
  const key = createSecretKey(block.subarray(0, AES_KEY_BYTES));
  const hedgeKey = hedge ? unpooled(block.subarray(HEDGE_KEY_START)) : undefined;
  block.fill(0);
  return { start, aad, key, hedgeKey };
}

/**
 * Derives the key with which to unseal a token; the key id in the token must be that of `source`. The commitment is
 * compared in constant time, because the sender of the token may have chosen it.
 * @throws {InvalidRequestState} `authentication failed` if the header commits to another key.
 */
export function unsealingTokenKey(
  source: TokenKeySource,
  { words, salt, commitment }: DecodedToken,
  purpose: string | undefined,
): TokenKey {
  const block = deriveBlock(source, salt, purpose);
  const isOurs = timingSafeEqual(block.subarray(AES_KEY_BYTES, HEDGE_KEY_START), commitment);
  const key = isOurs ? createSecretKey(block.subarray(0, AES_KEY_BYTES)) : undefined;
  block.fill(0);
  if (key === undefined) throw new InvalidRequestState('authentication failed');
  // Copied, because the buffer of a lent token is reused for the next token.
  return { words: new Int32Array(words), key, purpose };
}

/**
 * sub(token, salt ‖ 0x00 ‖ purpose): the first 32 bytes are the AES key, the next 18 commit to it, and the last 14 are
 * {@link SealingTokenKey.hedgeKey}. Without a purpose, the tail is only the salt. The caller overwrites the result.
 */
function deriveBlock({ key, input }: TokenKeySource, salt: Uint8Array, purpose: string | undefined): Buffer {
  input.set(salt, input.length - SALT_BYTES);
  const mac = createHmac('sha512', key).update(input);
  if (purpose !== undefined) mac.update(`\0${purpose}`);
  return mac.digest();
}

/** Seals `payload`; the caller must never repeat a nonce under `tokenKey`. Fills `tagOut` with the tag. */
export function sealSealring(
  tokenKey: SealingTokenKey,
  nonce: Uint8Array,
  payload: Uint8Array,
  tagOut: Uint8Array,
): string {
  const cipher = createCipheriv('aes-256-gcm', tokenKey.key, nonce);
  cipher.setAAD(tokenKey.aad);
  const ciphertext = cipher.update(payload);
  cipher.final();
  const tag = cipher.getAuthTag();
  const end = NONCE_BYTES + ciphertext.length;
  const length = end + TAG_BYTES;
  const body = length <= SHORT_BODY_BYTES ? shortBody : Buffer.allocUnsafeSlow(length);
  // For so few bytes, a loop is faster than a call.
  for (let i = NONCE_BYTES - 1; i >= 0; i--) body[i] = nonce[i] as number;
  body.set(ciphertext, NONCE_BYTES);
  for (let i = TAG_BYTES - 1; i >= 0; i--) {
    const byte = tag[i] as number;
    body[end + i] = byte;
    tagOut[i] = byte;
  }
  return tokenKey.start + body.toString('base64url', 0, length);
}

/**
 * Decrypts a token whose header matches the token key; the result is a new array.
 * @throws {InvalidRequestState} `authentication failed`.
 */
export function unsealSealring({ key }: TokenKey, { aad, nonce, ciphertext, tag }: DecodedToken): Uint8Array {
  const decipher = createDecipheriv('aes-256-gcm', key, nonce, FULL_TAG);
  decipher.setAAD(aad);
  decipher.setAuthTag(tag);
  const payload = decipher.update(ciphertext);
  try {
    decipher.final();
  } catch {
    payload.fill(0);
    throw new InvalidRequestState('authentication failed');
  }
  return new Uint8Array(payload.buffer, payload.byteOffset, payload.length);
}
