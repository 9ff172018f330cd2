import { isAscii } from 'node:buffer';
import { compactJson } from './compact-json.ts';
import { principalMatches } from './principal-claim.ts';
import { Refusal } from './refusal.ts';
import type { RequestIdentity } from './request-identity.ts';

const VERSION = 1;
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** What goes into an envelope. */
export interface ClaimsInput {
  /** Unix time in seconds, with fractions. */
  readonly nowSeconds: number;
  readonly ttlSeconds: number;
  readonly identity: RequestIdentity;
  /** The handler's plaintext. */
  readonly state: string;
  readonly audience: string | null;
  /** The finished principal claim, base64url, or null for none. */
  readonly principal: string | null;
  /** The single-use identifier, base64url, or null for none. Python's boundary ignores it. */
  readonly id: string | null;
}

/**
 * Prints the claims envelope, byte for byte as `RequestStateBoundary` of the MCP Python SDK 2.3.0 does: members in the
 * order v, iat, exp, m, t, a, s, aud, p, then our own j; times as Python floats; ASCII only.
 */
export function mintClaims(input: ClaimsInput): Uint8Array {
  const { nowSeconds, identity, audience, principal, id } = input;
  const times = `"iat":${pythonFloat(nowSeconds)},"exp":${pythonFloat(nowSeconds + input.ttlSeconds)}`;
  // A method's name, and base64url, are printed as they are.
  const bound = `"m":"${identity.method}","t":${compactJson(identity.target)},"a":"${identity.digest}"`;
  const audienceMember = audience === null ? '' : `,"aud":${compactJson(audience)}`;
  const principalMember = principal === null ? '' : `,"p":"${principal}"`;
  const idMember = id === null ? '' : `,"j":"${id}"`;
  return Buffer.from(
    `{"v":${VERSION},${times},${bound},"s":${compactJson(input.state)}${audienceMember}${principalMember}${idMember}}`,
    'latin1',
  );
}

// time.time() is a float, so an integral second prints as 1795000000.0.
function pythonFloat(seconds: number): string {
  if (!Number.isFinite(seconds)) throw new RangeError('the clock gave no finite time');
  return Number.isSafeInteger(seconds) ? `${seconds}.0` : compactJson(seconds);
}

/** What an envelope is checked against. */
export interface ClaimsExpected {
  readonly nowSeconds: number;
  readonly futureSkewSeconds: number;
  /** A refusal where the echoing request has none that could match. */
  readonly identity: RequestIdentity | Refusal;
  readonly audience: string | null;
}

/** An envelope that passed every check but the principal's, which needs the caller's. */
export interface OpenedClaims {
  readonly state: string;
  readonly expiresAtSeconds: number;
  readonly principal: unknown;
  readonly id: unknown;
}

/**
 * Parses and checks an unsealed payload, in the order and with the words of the MCP Python SDK.
 * @throws {Refusal} and nothing else, for any bytes.
 */
export function openClaims(payload: Uint8Array, expected: ClaimsExpected): OpenedClaims {
  const claims = parse(payload);
  const claim = (name: string): unknown => (Object.hasOwn(claims, name) ? (Reflect.get(claims, name) ?? null) : null);
  const [iat, exp, state] = [claim('iat'), claim('exp'), claim('s')];
  const complete = Object.hasOwn(claims, 'iat') && Object.hasOwn(claims, 'exp');
  if (!complete || claim('v') !== VERSION || typeof state !== 'string') throw new Refusal('malformed');
  // Stated positively, so that a NaN, on either side, fails the comparison and refuses.
  if (!(typeof iat === 'number' && iat <= expected.nowSeconds + expected.futureSkewSeconds)) {
    throw new Refusal('minted in the future');
  }
  if (!(typeof exp === 'number' && expected.nowSeconds < exp)) throw new Refusal('expired');
  const { identity } = expected;
  if (identity instanceof Refusal) throw identity;
  const bound = claim('m') === identity.method && claim('t') === identity.target && claim('a') === identity.digest;
  if (!bound) throw new Refusal('request binding');
  if (claim('aud') !== expected.audience) throw new Refusal('audience');
  return { state, expiresAtSeconds: exp, principal: claim('p'), id: claim('j') };
}

function parse(payload: Uint8Array): object {
  let value: unknown;
  try {
    value = JSON.parse(textOf(payload));
  } catch {
    throw new Refusal('malformed');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Refusal('malformed');
  return value;
}

/** What Python and this boundary print is ASCII; anything else is checked to be UTF-8. */
function textOf(payload: Uint8Array): string {
  if (!isAscii(payload)) return utf8.decode(payload);
  return Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength).toString('latin1');
}

/**
 * Compares the principal claim with who is signed in now; null is nobody, on either side.
 * @throws {Refusal} `principal drift` when only one of them is somebody, `principal` when they are not the same.
 */
export function checkPrincipal(claim: unknown, principal: string | null): void {
  if ((claim === null) !== (principal === null)) throw new Refusal('principal drift');
  if (principal === null) return;
  if (typeof claim !== 'string' || !principalMatches(claim, principal)) throw new Refusal('principal');
}
