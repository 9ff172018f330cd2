import { createHmac, type KeyObject } from 'node:crypto';
import { decodeBase64url } from '@sealring/core/format-secrets';
import { equalText } from '../shared/constant-time.ts';

/*
 * The wire of createRequestStateCodec in the MCP TypeScript SDK 2.4.0:
 * "v1." b64url({"p":payload,"exp":unixSeconds[,"b":bindTag]}) "." b64url(HMAC-SHA256(key, all before the second dot))
 */
const PREFIX = 'v1.';
const BIND_LABEL = 'mcp.requestState.bind:';
const BIND_TAG_BYTES = 16;

/** Why a token was refused, in the SDK's words. A key that is not held and a broken seal are both `mac`. */
export type TypescriptReason = 'malformed' | 'mac' | 'expired' | 'bind';

/** The SDK throws a plain Error whose message is the reason, and its users read just that. */
export function refusal(reason: TypescriptReason): Error {
  return new Error(reason);
}

/** Whether a token has the shape of this wire: the Python SDK's has the same prefix and no second dot. */
export function hasSignedShape(token: string): boolean {
  return token.startsWith(PREFIX) && token.indexOf('.', PREFIX.length) !== -1;
}

export function signToken(key: KeyObject, envelope: string): string {
  const signed = PREFIX + Buffer.from(envelope, 'utf8').toString('base64url');
  return `${signed}.${macOf(key, signed)}`;
}

/** How the bound text stands in an envelope: under the key, so that it is never on the wire itself. */
export function bindTag(key: KeyObject, bound: string): string {
  const mac = createHmac('sha256', key).update(BIND_LABEL + bound, 'utf8');
  return mac.digest().subarray(0, BIND_TAG_BYTES).toString('base64url');
}

/**
 * The envelope of a token, and the one of `keys` that signed it; undefined when none did.
 * @throws {Error} `malformed`.
 */
export function openToken(
  keys: readonly KeyObject[],
  token: string,
): { readonly envelope: Uint8Array; readonly key: KeyObject } | undefined {
  const dot = token.lastIndexOf('.');
  if (!token.startsWith(PREFIX) || dot <= PREFIX.length) throw refusal('malformed');
  const [signed, mac] = [token.slice(0, dot), token.slice(dot + 1)];
  if (!isForgivingBase64url(mac)) throw refusal('malformed');
  // The whole text is compared, so a MAC has one spelling only; and with every key, so that time tells nothing of which.
  const [key] = keys.filter((candidate) => equalText(macOf(candidate, signed), mac));
  if (key === undefined) return undefined;
  const envelope = decodeBase64url(signed.slice(PREFIX.length));
  if (envelope === undefined) throw refusal('malformed');
  return { envelope, key };
}

function macOf(key: KeyObject, signed: string): string {
  return createHmac('sha256', key).update(signed, 'utf8').digest('base64url');
}

/** What the SDK's decoder takes at all: what it does not is `malformed` there, and everything else a wrong MAC. */
function isForgivingBase64url(text: string): boolean {
  try {
    atob(text.replaceAll('-', '+').replaceAll('_', '/'));
    return true;
  } catch {
    return false;
  }
}
