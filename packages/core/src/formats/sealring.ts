import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  type KeyObject,
  timingSafeEqual,
} from 'node:crypto';
import { InvalidRequestState } from '../codec.ts';
import { unpooled } from '../options.ts';
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
const HEADER_CHARS = 60;
const BODY_START = SEALRING_PREFIX.length + HEADER_CHARS;
/** 28 bytes of nonce and tag around an empty payload are 38 characters. */
const SHORTEST_TOKEN = BODY_START + 38;
/** Node 20 takes tags of 4 bytes for whole ones unless it is told the length. */
const FULL_TAG = Object.freeze({ authTagLength: TAG_BYTES });
/** Bytes of a body that is encoded and decoded in place: 4 KiB of state. */
const SCRATCH_BYTES = 4_096 + NONCE_BYTES + TAG_BYTES;
const scratch = Buffer.allocUnsafeSlow(SCRATCH_BYTES);
/** The parts of a body of so many bytes in {@link scratch}: views cost more than the bytes that they show. */
const scratchBodies = Array.from<SealedBody | undefined>({ length: SCRATCH_BYTES + 1 });
const PREFIX_BYTES = Buffer.from(SEALRING_PREFIX, 'ascii');
const SALT_START = PREFIX_BYTES.length + KEY_ID_BYTES;
const COMMITMENT_START = SALT_START + SALT_BYTES;
const AAD_BYTES = COMMITMENT_START + COMMITMENT_BYTES;
const AES_KEY_BYTES = 32;
const HEDGE_KEY_START = AES_KEY_BYTES + COMMITMENT_BYTES;
/** The prefix, and behind it the header that was decoded last. */
const decoded = Buffer.allocUnsafeSlow(AAD_BYTES);
decoded.set(PREFIX_BYTES);
const decodedHeader: DecodedHeader = Object.freeze({
  salt: decoded.subarray(SALT_START, COMMITMENT_START),
  commitment: decoded.subarray(COMMITMENT_START),
  aad: decoded,
});

/** The AES-256-GCM key of one data key and one salt, with what its tokens have in common. */
export interface TokenKey {
  /** The 60 characters after the prefix. */
  readonly header: string;
  /** "sr1." ‖ keyId ‖ salt ‖ commitment. */
  readonly aad: Uint8Array;
  readonly key: KeyObject;
  /** What the key was derived for: a token of one purpose must not open for another, warm or not. */
  readonly purpose: string | undefined;
}

/** One to seal with. */
export interface SealingTokenKey extends TokenKey {
  /** The prefix and {@link TokenKey.header}: what its tokens begin with. */
  readonly start: string;
  /** 14 bytes that nothing else uses; they key the payload hash of hedged nonces. Only where those were asked for. */
  readonly hedgeKey: Buffer | undefined;
}

/** What 60 characters of header name. None of it is authenticated. */
export interface DecodedHeader {
  /** 18 bytes. */
  readonly salt: Uint8Array;
  /** 18 bytes. */
  readonly commitment: Uint8Array;
  /** As that of the token key, 49 bytes. */
  readonly aad: Buffer;
}

/** What follows the header of a token. None of it is authenticated. */
export interface SealedBody {
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
  const header = aad.toString('base64url', PREFIX_BYTES.length);
  const key = createSecretKey(block.subarray(0, AES_KEY_BYTES));
  const hedgeKey = hedge ? unpooled(block.subarray(HEDGE_KEY_START)) : undefined;
  block.fill(0);
  return { header, start: SEALRING_PREFIX + header, aad, key, purpose, hedgeKey };
}

/**
 * Derives the token key that a header names, to open with; the key id in it is that of `source`.
 * The commitment is compared in constant time: whoever sent the token chose it.
 * @throws {InvalidRequestState} `seal`: the header commits to another key.
 */
export function openingTokenKey(
  source: TokenKeySource,
  { salt, commitment, aad }: DecodedHeader,
  purpose: string | undefined,
): TokenKey {
  const block = deriveBlock(source, salt, purpose);
  const isOurs = timingSafeEqual(block.subarray(AES_KEY_BYTES, HEDGE_KEY_START), commitment);
  const key = isOurs ? createSecretKey(block.subarray(0, AES_KEY_BYTES)) : undefined;
  block.fill(0);
  if (key === undefined) throw new InvalidRequestState('seal');
  // Copies, both: the bytes are overwritten by the next header, and a text cut out of a token would keep all of the token.
  const header = aad.toString('base64url', PREFIX_BYTES.length);
  return { header, aad: new Uint8Array(aad), key, purpose };
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
  const body = length <= SCRATCH_BYTES ? scratch : Buffer.allocUnsafeSlow(length);
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

/** Cuts the header out of a token: 60 characters, the key under which its token key is looked up. */
export function headerText(token: string): string {
  return token.slice(SEALRING_PREFIX.length, BODY_START);
}

/**
 * Decodes the 60 characters of a header; the result is good until the next call.
 * @throws {InvalidRequestState} `malformed`.
 */
export function decodeHeader(text: string): DecodedHeader {
  const isCanonical =
    text.length === HEADER_CHARS && isCanonicalBase64url(text, decoded.write(text, PREFIX_BYTES.length, 'base64url'));
  if (!isCanonical) throw new InvalidRequestState('malformed');
  return decodedHeader;
}

/**
 * Opens the body of a token whose header is the token key's; the result is an array of its own.
 * @throws {InvalidRequestState} `malformed`, or `seal`.
 */
export function openSealring(tokenKey: TokenKey, token: string): Uint8Array {
  return openBody(tokenKey, decodeBody(token));
}

/** Opens what {@link decodeBody} returned last. @throws {InvalidRequestState} `seal`. */
export function openBody(tokenKey: TokenKey, { nonce, ciphertext, tag }: SealedBody): Uint8Array {
  const decipher = createDecipheriv('aes-256-gcm', tokenKey.key, nonce, FULL_TAG);
  decipher.setAAD(tokenKey.aad);
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

/**
 * Decodes the body of a token; the result is good until the next call. Short bodies, which is nearly all, go into one
 * buffer: a new one for each costs a tenth of an unseal.
 * @throws {InvalidRequestState} `malformed`.
 */
export function decodeBody(token: string): SealedBody {
  if (token.length < SHORTEST_TOKEN) throw new InvalidRequestState('malformed');
  const text = token.slice(BODY_START);
  const length = Math.floor((text.length * 3) / 4);
  const isShort = length <= SCRATCH_BYTES;
  const bytes = isShort ? scratch : Buffer.allocUnsafeSlow(length);
  if (!isCanonicalBase64url(text, bytes.write(text, 0, 'base64url'))) throw new InvalidRequestState('malformed');
  if (!isShort) return partsOf(bytes, length);
  return (scratchBodies[length] ??= partsOf(scratch, length));
}

function partsOf(bytes: Buffer, length: number): SealedBody {
  const end = length - TAG_BYTES;
  return {
    nonce: bytes.subarray(0, NONCE_BYTES),
    ciphertext: bytes.subarray(NONCE_BYTES, end),
    tag: bytes.subarray(end, length),
  };
}
