import type { Moment } from '../base/clock.ts';
import { InvalidRequestState } from '../contracts/codec.ts';
import { KEY_ID_BYTES } from './derivation.ts';
import { isCanonicalBase64url } from './token.ts';

/*
 * The native token: "sr1." b64url(keyId[9] ‖ salt[18] ‖ commitment[18]) b64url(nonce[12] ‖ ciphertext ‖ tag[16]). The
 * length of the header, 45 bytes, is a multiple of 3, so its 60 characters are encoded separately: a sealer encodes
 * them once per salt, and an unsealer looks them up.
 */
export const SEALRING_PREFIX = 'sr1.';
export const SALT_BYTES = 18;
export const NONCE_BYTES = 12;
export const COMMITMENT_BYTES = 18;
export const TAG_BYTES = 16;
const KEY_ID_CHARS = 12;
const BODY_START = SEALRING_PREFIX.length + 60;

/** 28 bytes of nonce and tag around an empty payload are 38 characters. */
const SHORTEST_TOKEN = BODY_START + 38;
export const PREFIX_BYTES: Buffer = Buffer.from(SEALRING_PREFIX);
export const SALT_START: number = PREFIX_BYTES.length + KEY_ID_BYTES;
export const COMMITMENT_START: number = SALT_START + SALT_BYTES;
export const AAD_BYTES: number = COMMITMENT_START + COMMITMENT_BYTES;

/*
 * A token is decoded after three unused bytes, so that its header can be read as words: 3 words for the
 * last three bytes of the prefix and the key id, and 9 words for salt and commitment.
 */
const UNUSED_BYTES = 3;
const WORDS_START = 4;
const KEY_ID_WORDS = 3;
const HEADER_WORDS = 12;
const NONCE_START = UNUSED_BYTES + AAD_BYTES;
const CIPHERTEXT_START = NONCE_START + NONCE_BYTES;

/** The length of a token with 4 KiB of state. */
const SHORT_BYTES = CIPHERTEXT_START + 4_096 + TAG_BYTES;

/** The buffer that {@link withDecodedToken} lends: a new buffer for each token would slow an unseal by a tenth. */
const lent = Buffer.allocUnsafeSlow(SHORT_BYTES);
lent.set(PREFIX_BYTES, UNUSED_BYTES);
const lentHeader = headerOf(lent);

/** The parts of a token in {@link lent}, by its length. They are kept: views take longer to create than to fill. */
const lentTokens = Array.from<DecodedToken | undefined>({ length: SHORT_BYTES + 1 });
const FIRST_PREFIX_BYTE = PREFIX_BYTES[0] as number;

let isLent = false;

/** The parts of a token. None of them is authenticated. */
export interface DecodedToken {
  /** The data that all tokens of one token key share (key id, salt, commitment), as 12 words, which compare fastest. */
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

/** The length of the longest payload whose token has at most `maxTokenLength` characters, in bytes. */
export function maxPayloadBytes(maxTokenLength: number): number {
  return Math.floor(((maxTokenLength - BODY_START) * 3) / 4) - NONCE_BYTES - TAG_BYTES;
}

/** Extracts the key id of a token: 12 characters, not yet known to be canonical or authentic. */
export function keyIdText(token: string): string {
  return token.slice(SEALRING_PREFIX.length, SEALRING_PREFIX.length + KEY_ID_CHARS);
}

/** Whether two headers have the same key id. */
export function isSameKeyId(one: Int32Array, other: Int32Array): boolean {
  return isSame(one, other, KEY_ID_WORDS);
}

/** Whether two headers are the same. Headers are not secret, so the time that this takes may depend on them. */
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
 * Decodes a token that begins with the prefix, into a new buffer.
 * @throws {InvalidRequestState} `malformed`.
 */
export function decodeToken(token: string): DecodedToken {
  const end = endOf(token);
  const bytes = Buffer.allocUnsafeSlow(end);
  bytes.set(PREFIX_BYTES, UNUSED_BYTES);
  decodeInto(bytes, token);
  return partsOf(bytes, end, headerOf(bytes));
}

/**
 * Decodes a token that begins with the prefix, lends its parts to `use`, and returns the result of `use`. The parts are
 * valid until `use` returns, because they are views of one shared buffer. Parts that are kept longer cannot be
 * authenticated: the first authenticated byte is correct only while they are lent. A token that is decoded in the
 * meantime gets a separate buffer.
 * @throws {InvalidRequestState} `malformed`, and any error that `use` throws.
 */
export function withDecodedToken<Owner, Result>(
  token: string,
  use: (decoded: DecodedToken, token: string, owner: Owner, now: Moment) => Result,
  owner: Owner,
  now: Moment,
): Result {
  const end = endOf(token);
  if (isLent || end > SHORT_BYTES) return use(decodeToken(token), token, owner, now);
  decodeInto(lent, token);
  isLent = true;
  lent[UNUSED_BYTES] = FIRST_PREFIX_BYTE;
  try {
    return use((lentTokens[end] ??= partsOf(lent, end, lentHeader)), token, owner, now);
  } finally {
    lent[UNUSED_BYTES] = 0;
    isLent = false;
  }
}

/** The end of a token in the buffer that it is decoded into. */
function endOf(token: string): number {
  if (token.length < SHORTEST_TOKEN) throw new InvalidRequestState('malformed');
  return UNUSED_BYTES + PREFIX_BYTES.length + Math.floor(((token.length - SEALRING_PREFIX.length) * 3) / 4);
}

/** Decodes all but the prefix, which the buffer already has. */
function decodeInto(bytes: Buffer, token: string): void {
  const text = token.slice(SEALRING_PREFIX.length);
  const written = bytes.write(text, UNUSED_BYTES + PREFIX_BYTES.length, 'base64url');
  if (!isCanonicalBase64url(text, written)) throw new InvalidRequestState('malformed');
}

function headerOf(bytes: Buffer): Pick<DecodedToken, 'words' | 'aad' | 'salt' | 'commitment'> {
  return {
    words: new Int32Array(bytes.buffer, bytes.byteOffset + WORDS_START, HEADER_WORDS),
    aad: bytes.subarray(UNUSED_BYTES, NONCE_START),
    salt: bytes.subarray(UNUSED_BYTES + SALT_START, UNUSED_BYTES + COMMITMENT_START),
    commitment: bytes.subarray(UNUSED_BYTES + COMMITMENT_START, NONCE_START),
  };
}

function partsOf(bytes: Buffer, end: number, header: ReturnType<typeof headerOf>): DecodedToken {
  const tagStart = end - TAG_BYTES;
  return {
    ...header,
    nonce: bytes.subarray(NONCE_START, CIPHERTEXT_START),
    ciphertext: bytes.subarray(CIPHERTEXT_START, tagStart),
    tag: bytes.subarray(tagStart, end),
  };
}
