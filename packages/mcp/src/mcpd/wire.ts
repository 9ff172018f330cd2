import { createCipheriv, createDecipheriv, createHmac, hkdfSync, type KeyObject, randomBytes } from 'node:crypto';
import { decodeBase64url } from '@sealring/core/format-secrets';
import { equalText } from '../shared/constant-time.ts';
import { ownMember } from '../shared/own-member.ts';
import { secretKey } from '../shared/secret-key.ts';

/*
 * The two token formats of mcp.d's secureRequestState, with the payload {"b":bindTagHex,"exp":unixSeconds,"s":state}:
 * signed     "v1."  b64url(payload) "." b64url(HMAC-SHA256(payload key, payload))
 * encrypted  "v1e." b64url(nonce[12] ‖ ciphertext ‖ tag[16]), AES-256-GCM, additional data = the bind tag's hex characters
 */
const SIGNED_PREFIX = 'v1.';
const ENCRYPTED_PREFIX = 'v1e.';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** RFC 5869, section 2.2: without a salt, HKDF uses as many zeros as the hash has bytes. */
const HKDF_SALT = new Uint8Array(32);
/** Without the length, Node 20 accepts tags of 4 bytes. */
const FULL_TAG = Object.freeze({ authTagLength: TAG_BYTES });

/** Which key signs a payload: see the option `revision` of the codec. */
export type McpdRevision = 'current' | '2026-06';
/** Whether the holder of a token can read its state: `signed` yes, `encrypted` no. */
export type McpdMode = 'signed' | 'encrypted';

/** The keys that are derived from one secret. */
export interface McpdKeys {
  readonly cipher: KeyObject;
  readonly bind: KeyObject;
  readonly payload: KeyObject;
  /**
   * Key for the HMAC of the payload that is mixed into each nonce: the nonces of different payloads then differ even if
   * the random generator repeats its output.
   */
  readonly nonce: KeyObject;
  readonly revision: McpdRevision;
}

export interface McpdClaims {
  readonly state: string;
  /** Unix time in whole seconds. */
  readonly exp: number;
}

/** Derives each key as HKDF-SHA256(secret, 32 zero bytes, info, 32). */
export function deriveMcpdKeys(secret: KeyObject, revision: McpdRevision): McpdKeys {
  const derive = (info: string): KeyObject =>
    secretKey(new Uint8Array(hkdfSync('sha256', secret, HKDF_SALT, `mcp.requestState ${info}`, 32)));
  return Object.freeze({
    cipher: derive('aes-256-gcm key'),
    bind: derive('bind-hmac key'),
    payload: derive('payload-hmac key'),
    nonce: derive('nonce-hmac key'),
    revision,
  });
}

export function mintMcpd(mode: McpdMode, keys: McpdKeys, claims: McpdClaims, material: string): string {
  const tag = bindTag(keys, material);
  // Members in the order in which mcp.d writes them; it reads them in any order.
  const payload = Buffer.from(JSON.stringify({ b: tag, exp: claims.exp, s: claims.state }));
  if (mode === 'signed') {
    const signer = keys.revision === 'current' ? keys.payload : keys.bind;
    return `${SIGNED_PREFIX}${payload.toString('base64url')}.${macOf(signer, payload)}`;
  }
  const hash = createHmac('sha256', keys.nonce).update(payload).digest();
  const nonce = randomBytes(NONCE_BYTES).map((byte, i) => byte ^ (hash[i] ?? 0));
  const cipher = createCipheriv('aes-256-gcm', keys.cipher, nonce, FULL_TAG);
  cipher.setAAD(Buffer.from(tag));
  const ciphertext = Buffer.concat([cipher.update(payload), cipher.final()]);
  return ENCRYPTED_PREFIX + Buffer.concat([nonce, ciphertext, cipher.getAuthTag()]).toString('base64url');
}

/** The claims of a token that one of `keys` made for `material`; undefined for any other token. Does not check the time. */
export function unsealMcpd(
  mode: McpdMode,
  keys: readonly McpdKeys[],
  token: string,
  material: string,
): McpdClaims | undefined {
  const open = mode === 'signed' ? signedOpener(token) : encryptedOpener(token, material);
  if (open === undefined) return undefined;
  for (const candidate of keys) {
    const payload = open(candidate);
    if (payload !== undefined) return readPayload(payload, bindTag(candidate, material));
  }
  return undefined;
}

type Opener = (keys: McpdKeys) => Buffer | undefined;

function signedOpener(token: string): Opener | undefined {
  const [prefix, body, mac, more] = token.split('.', 4);
  if (`${prefix}.` !== SIGNED_PREFIX || body === undefined || mac === undefined || more !== undefined) return undefined;
  const payload = decodeBase64url(body);
  if (payload === undefined) return undefined;
  return (keys) => {
    // The encoded MACs are compared, so that only one encoding of a MAC is accepted.
    const signers = keys.revision === 'current' ? [keys.payload] : [keys.payload, keys.bind];
    return signers.some((signer) => equalText(macOf(signer, payload), mac)) ? payload : undefined;
  };
}

function encryptedOpener(token: string, material: string): Opener | undefined {
  if (!token.startsWith(ENCRYPTED_PREFIX)) return undefined;
  const sealed = decodeBase64url(token.slice(ENCRYPTED_PREFIX.length));
  if (sealed === undefined || sealed.length < NONCE_BYTES + TAG_BYTES) return undefined;
  return (keys) => {
    const decipher = createDecipheriv('aes-256-gcm', keys.cipher, sealed.subarray(0, NONCE_BYTES), FULL_TAG);
    decipher.setAAD(Buffer.from(bindTag(keys, material)));
    decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
    const payload = decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES));
    try {
      decipher.final();
      return payload;
    } catch {
      payload.fill(0);
      return undefined;
    }
  };
}

function readPayload(payload: Buffer, tag: string): McpdClaims | undefined {
  let claims: unknown;
  try {
    claims = JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(payload));
  } catch {
    return undefined;
  }
  const [state, exp, b] = ['s', 'exp', 'b'].map((name) => ownMember(claims, name));
  if (typeof b !== 'string' || !equalText(b, tag)) return undefined;
  if (typeof state !== 'string' || typeof exp !== 'number' || !Number.isSafeInteger(exp)) return undefined;
  return { state, exp };
}

function bindTag(keys: McpdKeys, material: string): string {
  return createHmac('sha256', keys.bind).update(material).digest('hex');
}

function macOf(key: KeyObject, payload: Buffer): string {
  return createHmac('sha256', key).update(payload).digest('base64url');
}
