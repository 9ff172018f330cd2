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
import { isCanonicalBase64url } from './token.ts';

/*
 * The native token: "sr1." b64url(keyId[9] ‖ salt[18] ‖ commitment[18]) b64url(nonce[12] ‖ ciphertext ‖ tag[16]).
 * The 45 header bytes are a multiple of 3, so the header is 60 characters that stand by themselves: a sealer encodes
 * them once per salt, an opener looks them up.
 */
export const SEALRING_PREFIX = 'sr1.';
export const SALT_BYTES = 18;
export const NONCE_BYTES = 12;
const COMMITMENT_BYTES = 18;
const TAG_BYTES = 16;
const KEY_ID_CHARS = 12;
const BODY_START = SEALRING_PREFIX.length + 60;
/** 28 bytes of nonce and tag around an empty payload are 38 characters. */
const SHORTEST_TOKEN = BODY_START + 38;
/** Node 20 takes tags of 4 bytes for whole ones unless it is told the length. */
const FULL_TAG = Object.freeze({ authTagLength: TAG_BYTES });
const PREFIX_BYTES = Buffer.from(SEALRING_PREFIX, 'ascii');
const SALT_START = PREFIX_BYTES.length + KEY_ID_BYTES;
const COMMITMENT_START = SALT_START + SALT_BYTES;
const AAD_BYTES = COMMITMENT_START + COMMITMENT_BYTES;
const AES_KEY_BYTES = 32;
const HEDGE_KEY_START = AES_KEY_BYTES + COMMITMENT_BYTES;

/*
 * A token of up to 4 KiB of state is decoded in place, behind three bytes that nothing uses, so that its header can be
 * read as words: the last three bytes of the prefix and the key id are 3 of them, salt and commitment 9.
 */
const UNUSED_BYTES = 3;
const WORDS_START = 4;
const KEY_ID_WORDS = 3;
const HEADER_WORDS = 12;
const NONCE_START = UNUSED_BYTES + AAD_BYTES;
const CIPHERTEXT_START = NONCE_START + NONCE_BYTES;
const SCRATCH_BYTES = CIPHERTEXT_START + 4_096 + TAG_BYTES;
const scratch = Buffer.allocUnsafeSlow(SCRATCH_BYTES);
scratch.set(PREFIX_BYTES, UNUSED_BYTES);
const scratchHeader = {
  words: new Int32Array(scratch.buffer, scratch.byteOffset + WORDS_START, HEADER_WORDS),
  aad: scratch.subarray(UNUSED_BYTES, NONCE_START),
  salt: scratch.subarray(UNUSED_BYTES + SALT_START, UNUSED_BYTES + COMMITMENT_START),
  commitment: scratch.subarray(UNUSED_BYTES + COMMITMENT_START, NONCE_START),
};
/** Where the body of a new token is put together. */
const scratchBody = scratch.subarray(NONCE_START);
/** The parts of a token of so many bytes in {@link scratch}: views cost more than the bytes that they show. */
const scratchTokens = Array.from<DecodedToken | undefined>({ length: SCRATCH_BYTES + 1 });

/** The AES-256-GCM key of one data key and one salt, to open with. */
export interface TokenKey {
  /** The header of its tokens, as {@link DecodedToken.words}. */
  readonly words: Int32Array;
  readonly key: KeyObject;
  /** What the key was derived for: a token of one purpose must not open for another, warm or not. */
  readonly purpose: string | undefined;
}

/** One to seal with. */
export interface SealingTokenKey {
  /** The prefix and the 60 characters of the header: what its tokens begin with. */
  readonly start: string;
  /** "sr1." ‖ keyId ‖ salt ‖ commitment, 49 bytes. */
  readonly aad: Uint8Array;
  readonly key: KeyObject;
  /** 14 bytes that nothing else uses; they key the payload hash of hedged nonces. Only where those were asked for. */
  readonly hedgeKey: Buffer | undefined;
}

/** What a token says. None of it is authenticated. */
export interface DecodedToken {
  /** What tokens of one token key have in common, key id, salt and commitment, as 12 words: they compare quickest. */
  readonly words: Int32Array;
  /** "sr1." ‖ keyId ‖ salt ‖ commitment, 49 bytes. */
  readonly aad: Uint8Array;
  /** 18 bytes. */
  readonly salt: Uint8Array;
  /** 18 bytes. */
  readonly commitment: Uint8Array;
  /** 12 bytes. */
  readonly nonce: Uint8Array;
  /** As many bytes as the payload has. */
  readonly ciphertext: Uint8Array;
  /** 16 bytes. */
  readonly tag: Uint8Array;
}

/** What the token keys of one data key are derived from. */
export interface TokenKeySource {
  /** 9 bytes. */
  readonly keyId: Buffer;
  /** The data key. As a raw buffer it would cost more than the whole derivation does: measured on Node 24. */
  readonly key: KeyObject;
  /** What its HMAC is computed over; the last 18 bytes are overwritten with the salt. */
  readonly input: Buffer;
}

export function tokenKeySource(dataKey: Uint8Array, ring: string): TokenKeySource {
  const input = Buffer.concat([subKeyInput('token', ring), Buffer.alloc(SALT_BYTES)]);
  return { keyId: keyIdOf(dataKey), key: createSecretKey(dataKey), input };
}

export interface TokenKeyOptions {
  readonly purpose?: string | undefined;
  /** Whether its tokens are to have hedged nonces. Default: false. */
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
 * Derives the token key that a token names, to open it with; the key id in it is that of `source`.
 * The commitment is compared in constant time: whoever sent the token chose it.
 * @throws {InvalidRequestState} `seal`: the header commits to another key.
 */
export function openingTokenKey(
  source: TokenKeySource,
  { words, salt, commitment }: DecodedToken,
  purpose: string | undefined,
): TokenKey {
  const block = deriveBlock(source, salt, purpose);
  const isOurs = timingSafeEqual(block.subarray(AES_KEY_BYTES, HEDGE_KEY_START), commitment);
  const key = isOurs ? createSecretKey(block.subarray(0, AES_KEY_BYTES)) : undefined;
  block.fill(0);
  if (key === undefined) throw new InvalidRequestState('seal');
  // A copy: these are overwritten by the next token.
  return { words: new Int32Array(words), key, purpose };
}

/**
 * sub(token, salt ‖ 0x00 ‖ purpose): the first 32 bytes are the AES key, the next 18 commit to it, the last 14 are
 * {@link SealingTokenKey.hedgeKey}. Without a purpose the tail is the salt alone. To be overwritten by who asked for it.
 */
function deriveBlock({ key, input }: TokenKeySource, salt: Uint8Array, purpose: string | undefined): Buffer {
  input.set(salt, input.length - SALT_BYTES);
  const mac = createHmac('sha512', key).update(input);
  if (purpose !== undefined) mac.update(`\0${purpose}`, 'ascii');
  return mac.digest();
}

/** Seals `payload`; the caller answers for a nonce that never repeats under `tokenKey`. Fills `tagOut` with the tag. */
export function sealSealring(
  tokenKey: SealingTokenKey,
  nonce: Uint8Array,
  payload: Uint8Array,
  tagOut: Uint8Array,
): string {
  const cipher = createCipheriv('aes-256-gcm', tokenKey.key, nonce, FULL_TAG);
  cipher.setAAD(tokenKey.aad);
  const ciphertext = cipher.update(payload);
  cipher.final();
  const tag = cipher.getAuthTag();
  const end = NONCE_BYTES + ciphertext.length;
  const length = end + TAG_BYTES;
  const body = length <= SCRATCH_BYTES - NONCE_START ? scratchBody : Buffer.allocUnsafeSlow(length);
  // Few bytes are copied sooner than a copy is called.
  for (let i = 0; i < NONCE_BYTES; i++) body[i] = nonce[i] as number;
  body.set(ciphertext, NONCE_BYTES);
  for (let i = 0; i < TAG_BYTES; i++) {
    const byte = tag[i] as number;
    body[end + i] = byte;
    tagOut[i] = byte;
  }
  return tokenKey.start + body.toString('base64url', 0, length);
}

/** Bytes a payload may have so that its token has at most `maxTokenLength` characters. */
export function maxPayloadBytes(maxTokenLength: number): number {
  return Math.floor(((maxTokenLength - BODY_START) * 3) / 4) - NONCE_BYTES - TAG_BYTES;
}

/** Cuts the key id out of a token: 12 characters, not yet known to be canonical or authentic. */
export function keyIdText(token: string): string {
  return token.slice(SEALRING_PREFIX.length, SEALRING_PREFIX.length + KEY_ID_CHARS);
}

/** Whether two headers have the key id in common. */
export function isSameKeyId(one: Int32Array, other: Int32Array): boolean {
  return isSame(one, other, KEY_ID_WORDS);
}

/** Whether two headers are the same. Nothing of them is secret. */
export function isSameHeader(one: Int32Array, other: Int32Array): boolean {
  return isSame(one, other, HEADER_WORDS);
}

function isSame(one: Int32Array, other: Int32Array, count: number): boolean {
  for (let i = 0; i < count; i++) if (one[i] !== other[i]) return false;
  return true;
}

/** The first 4 bytes of the salt, by which token keys are looked up. */
export function saltWord(words: Int32Array): number {
  return words[KEY_ID_WORDS] as number;
}

/**
 * Decodes a token that begins with the prefix; the result is good until the next call. Short tokens, which is nearly
 * all, go into one buffer: a new one for each costs a tenth of an unseal.
 * @throws {InvalidRequestState} `malformed`.
 */
export function decodeToken(token: string): DecodedToken {
  if (token.length < SHORTEST_TOKEN) throw new InvalidRequestState('malformed');
  const text = token.slice(SEALRING_PREFIX.length);
  const start = UNUSED_BYTES + PREFIX_BYTES.length;
  const end = start + Math.floor((text.length * 3) / 4);
  const isShort = end <= SCRATCH_BYTES;
  const bytes = isShort ? scratch : Buffer.allocUnsafeSlow(end);
  if (!isCanonicalBase64url(text, bytes.write(text, start, 'base64url'))) throw new InvalidRequestState('malformed');
  if (isShort) return (scratchTokens[end] ??= partsOf(scratch, end));
  bytes.copy(scratch, start, start, NONCE_START);
  return partsOf(bytes, end);
}

/** The header is always in {@link scratch}. */
function partsOf(bytes: Buffer, end: number): DecodedToken {
  const tagStart = end - TAG_BYTES;
  return {
    ...scratchHeader,
    nonce: bytes.subarray(NONCE_START, CIPHERTEXT_START),
    ciphertext: bytes.subarray(CIPHERTEXT_START, tagStart),
    tag: bytes.subarray(tagStart, end),
  };
}

/**
 * Opens what {@link decodeToken} returned last, whose header is the token key's; the result is an array of its own.
 * @throws {InvalidRequestState} `seal`.
 */
export function openSealring({ key }: TokenKey, { aad, nonce, ciphertext, tag }: DecodedToken): Uint8Array {
  const decipher = createDecipheriv('aes-256-gcm', key, nonce, FULL_TAG);
  decipher.setAAD(aad);
  decipher.setAuthTag(tag);
  const payload = decipher.update(ciphertext);
  try {
    decipher.final();
  } catch {
    payload.fill(0);
    throw new InvalidRequestState('seal');
  }
  return new Uint8Array(payload.buffer, payload.byteOffset, payload.length);
}
