import { createHmac, type KeyObject } from 'node:crypto';
import { decodeBase64url } from '@sealring/core/format-secrets';
import { equalText } from '../shared/constant-time.ts';

/*
 * The token format of createRequestStateCodec in the MCP TypeScript SDK 2.4.0:
 * "v1." b64url({"p":payload,"exp":unixSeconds[,"b":bindTag]}) "." b64url(HMAC-SHA256(key, all before the second dot))
 */
const PREFIX = 'v1.';
const BIND_LABEL = 'mcp.requestState.bind:';
const BIND_TAG_BYTES = 16;

/** Why a token was refused, as the SDK names it. `mac` means an unknown key or a failed authentication. */
export type TypescriptReason = 'malformed' | 'mac' | 'expired' | 'bind';

/** The error for a refused token. As in the SDK, its message is the reason, because callers compare the message. */
export function refusal(reason: TypescriptReason): Error {
  return new Error(reason);
}

/** Whether a token has the shape of this format: tokens of the Python SDK have the same prefix, but no second dot. */
export function hasSignedShape(token: string): boolean {
  return token.startsWith(PREFIX) && token.indexOf('.', PREFIX.length) !== -1;
}

export function signToken(key: KeyObject, envelope: string): string {
  const signed = PREFIX + Buffer.from(envelope).toString('base64url');
  return `${signed}.${macOf(key, signed)}`;
}

/** The keyed hash of the bound text in an envelope: the text itself is not in the token. */
export function bindTag(key: KeyObject, bound: string): string {
  const mac = createHmac('sha256', key).update(BIND_LABEL + bound);
  return mac.digest().subarray(0, BIND_TAG_BYTES).toString('base64url');
}

/**
 * Returns the envelope of a token and the key that signed it; undefined if none of `keys` did.
 * @throws {Error} `malformed`.
 */
export function verifyToken(
  keys: readonly KeyObject[],
  token: string,
): { readonly envelope: Uint8Array; readonly key: KeyObject } | undefined {
  const dot = token.lastIndexOf('.');
  if (!token.startsWith(PREFIX) || dot <= PREFIX.length) throw refusal('malformed');
  const [signed, mac] = [token.slice(0, dot), token.slice(dot + 1)];
  if (!isForgivingBase64url(mac)) throw refusal('malformed');
  // Compares the encoded MACs, so that only one encoding is accepted, and tries every key, so that the time does not
  // reveal which one matched.
  const [key] = keys.filter((candidate) => equalText(macOf(candidate, signed), mac));
  if (key === undefined) return undefined;
  const envelope = decodeBase64url(signed.slice(PREFIX.length));
  if (envelope === undefined) throw refusal('malformed');
  return { envelope, key };
}

function macOf(key: KeyObject, signed: string): string {
  return createHmac('sha256', key).update(signed).digest('base64url');
}

/** Whether the SDK's decoder accepts the text. If not, the SDK gives the reason `malformed`, not `mac`. */
function isForgivingBase64url(text: string): boolean {
  try {
    atob(text.replaceAll('-', '+').replaceAll('_', '/'));
    return true;
  } catch {
    return false;
  }
}
