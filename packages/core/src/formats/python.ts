import { createCipheriv, createDecipheriv, createHash, createSecretKey, hkdfSync, type KeyObject } from 'node:crypto';
import { InvalidRequestState } from '../contracts/codec.ts';
import { decodeBase64url, MAX_TOKEN_LENGTH } from './token.ts';

const PREFIX = 'v1.';
const KEY_INFO = 'mcp/request-state/v1/aes-256-gcm';
const KID_LABEL = 'mcp/request-state/v1/kid:';
const KEY_BYTES = 32;
const KID_BYTES = 4;
const TAG_BYTES = 16;
const HEADER_BYTES = KID_BYTES + 12;

/** Length of a nonce in this format, in bytes. */
export const PYTHON_NONCE_BYTES = 12;

/** The longest payload whose token stays within {@link MAX_TOKEN_LENGTH}: 196 573 bytes. */
export const PYTHON_MAX_PAYLOAD_BYTES: number = maxPythonPayloadBytes(MAX_TOKEN_LENGTH);

/** The length of the longest payload whose token has at most `maxTokenLength` characters, in bytes. */
export function maxPythonPayloadBytes(maxTokenLength: number): number {
  return Math.floor(((maxTokenLength - PREFIX.length) * 3) / 4) - HEADER_BYTES - TAG_BYTES;
}

/** The key that this format derives from one secret, and its fingerprint. */
export interface PythonKey {
  /** Fingerprint of the derived key: 4 bytes as 8 lower-case hexadecimal digits. */
  readonly kid: string;
  /** The derived AES-256 key, imported once, because a raw Buffer makes every seal about four times slower on Node 24. */
  readonly key: KeyObject;
  /** `v1.` and the fingerprint: 7 bytes. */
  readonly additionalData: Uint8Array;
}

/** The parts of a token, none of them authenticated. */
export interface PythonToken {
  /** The fingerprint of the key, as in {@link PythonKey}. */
  readonly kid: string;
  /** 12 bytes. */
  readonly nonce: Uint8Array;
  /** As many bytes as the payload has. */
  readonly ciphertext: Uint8Array;
  /** 16 bytes. */
  readonly tag: Uint8Array;
}

/**
 * Derives the key and its fingerprint as `AESGCMRequestStateCodec` of the MCP Python SDK 2.3.0 does: HKDF-SHA256
 * (RFC 5869) with an empty salt. `secret` is neither kept nor changed.
 */
export function derivePythonKey(secret: Uint8Array): PythonKey {
  const derived = Buffer.from(hkdfSync('sha256', secret, '', KEY_INFO, KEY_BYTES));
  const kid = createHash('sha256').update(KID_LABEL).update(derived).digest().subarray(0, KID_BYTES);
  const key = createSecretKey(derived);
  derived.fill(0);
  return Object.freeze({ kid: kid.toString('hex'), key, additionalData: Buffer.concat([Buffer.from(PREFIX), kid]) });
}

/**
 * Seals `payload` under a nonce of 12 bytes that must never have been used with this key (SP 800-38D section 8).
 * @throws {TypeError} for a nonce of the wrong length.
 * @throws {RangeError} for a payload over {@link PYTHON_MAX_PAYLOAD_BYTES}, because every server would reject its
 * token.
 */
export function sealPython(key: PythonKey, nonce: Uint8Array, payload: Uint8Array): string {
  if (nonce.length !== PYTHON_NONCE_BYTES) throw new TypeError(`a nonce must have ${PYTHON_NONCE_BYTES} bytes`);
  if (payload.length > PYTHON_MAX_PAYLOAD_BYTES) {
    throw new RangeError(`payload must be at most ${PYTHON_MAX_PAYLOAD_BYTES} bytes, got ${payload.length}`);
  }
  const cipher = createCipheriv('aes-256-gcm', key.key, nonce);
  cipher.setAAD(key.additionalData);
  const ciphertext = cipher.update(payload);
  cipher.final();
  const body = Buffer.concat([key.additionalData.subarray(PREFIX.length), nonce, ciphertext, cipher.getAuthTag()]);
  return PREFIX + body.toString('base64url');
}

/**
 * Parses a token.
 * @throws {InvalidRequestState} `malformed` unless the token is the canonical encoding of at least 32 bytes and has at
 * most `maxTokenLength` characters.
 */
export function parsePythonToken(token: string, maxTokenLength: number = MAX_TOKEN_LENGTH): PythonToken {
  if (typeof token !== 'string' || token.length > maxTokenLength || !token.startsWith(PREFIX)) {
    throw new InvalidRequestState('malformed');
  }
  const body = decodeBase64url(token.slice(PREFIX.length));
  if (body === undefined || body.length < HEADER_BYTES + TAG_BYTES) throw new InvalidRequestState('malformed');
  return {
    kid: body.toString('hex', 0, KID_BYTES),
    nonce: body.subarray(KID_BYTES, HEADER_BYTES),
    ciphertext: body.subarray(HEADER_BYTES, -TAG_BYTES),
    tag: body.subarray(-TAG_BYTES),
  };
}

/**
 * Unseals a token with the key that has its fingerprint. The result is a new array.
 * @throws {InvalidRequestState} `authentication failed`.
 */
export function unsealPython(key: PythonKey, token: PythonToken): Uint8Array {
  const decipher = createDecipheriv('aes-256-gcm', key.key, token.nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(key.additionalData);
  decipher.setAuthTag(token.tag);
  const payload = decipher.update(token.ciphertext);
  try {
    decipher.final();
  } catch {
    payload.fill(0);
    throw new InvalidRequestState('authentication failed');
  }
  return new Uint8Array(payload.buffer, payload.byteOffset, payload.length);
}
