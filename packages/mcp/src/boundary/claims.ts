import { compactJson } from './compact-json.ts';
import { principalMatches } from './principal-claim.ts';
import { principalDifference } from './principal-difference.ts';
import { Refusal } from './refusal.ts';
import type { RequestIdentity } from './request-identity.ts';

const VERSION = 1;
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The input of {@link mintClaims}. */
export interface ClaimsInput {
  /** Unix time in seconds, with fractions. */
  readonly nowSeconds: number;
  readonly ttlSeconds: number;
  readonly identity: RequestIdentity;
  /** The handler's plaintext. */
  readonly state: string;
  readonly audience: string | null;
  /** The encoded principal claim, base64url, or null for none. */
  readonly principal: string | null;
  /** The single-use identifier, base64url, or null for none. The Python SDK ignores it. */
  readonly id: string | null;
}

/**
 * Encodes the claims, byte for byte as `RequestStateBoundary` of the MCP Python SDK 2.3.0 does: members in the order v,
 * iat, exp, m, t, a, s, aud, p, then Sealring's own j; times as Python floats; ASCII only.
 */
export function mintClaims(input: ClaimsInput): Uint8Array {
  const { nowSeconds, identity, audience, principal, id } = input;
  const times = `"iat":${pythonFloat(nowSeconds)},"exp":${pythonFloat(nowSeconds + input.ttlSeconds)}`;
  // Method names and base64url need no escaping.
  const bound = `"m":"${identity.method}","t":${compactJson(identity.target)},"a":"${identity.digest}"`;
  const optional = member('aud', audience) + member('p', principal) + member('j', id);
  return Buffer.from(`{"v":${VERSION},${times},${bound},"s":${compactJson(input.state)}${optional}}`);
}

function member(name: string, text: string | null): string {
  return text === null ? '' : `,"${name}":${compactJson(text)}`;
}

// Python's time.time() is a float, so a whole second is written as 1795000000.0.
function pythonFloat(seconds: number): string {
  if (!Number.isFinite(seconds)) throw new RangeError('the clock did not return a finite time');
  return Number.isSafeInteger(seconds) ? `${seconds}.0` : compactJson(seconds);
}

/** The values that claims are checked against. */
export interface ClaimsExpected {
  readonly nowSeconds: number;
  readonly futureSkewSeconds: number;
  /** The parts of the request that a token is bound to, or a refusal if the request cannot be bound. */
  readonly identity: RequestIdentity | Refusal;
  readonly audience: string | null;
}

/** Claims that passed every check except the check of the principal, which needs the caller's principal. */
export interface ReadClaims {
  readonly state: string;
  readonly expiresAtSeconds: number;
  readonly principal: unknown;
  readonly id: unknown;
}

/**
 * Parses and checks an unsealed payload, in the order and with the reasons of the MCP Python SDK.
 * @throws {Refusal} if a check fails. No payload causes any other error.
 */
export function readClaims(payload: Uint8Array, expected: ClaimsExpected): ReadClaims {
  const claims = parse(payload);
  const claim = (name: string): unknown => (Object.hasOwn(claims, name) ? (Reflect.get(claims, name) ?? null) : null);
  const [iat, exp, state] = [claim('iat'), claim('exp'), claim('s')];
  const complete = Object.hasOwn(claims, 'iat') && Object.hasOwn(claims, 'exp');
  if (!complete || claim('v') !== VERSION || typeof state !== 'string') throw new Refusal('malformed');
  // Written as positive conditions, so that NaN on either side is refused.
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
  try {
    // JSON that is not an object becomes an object without claims.
    return Object(JSON.parse(utf8.decode(payload)));
  } catch {
    throw new Refusal('malformed');
  }
}

/**
 * Compares the principal claim with the principal of the request; null means no principal, on either side.
 * @throws {Refusal} `principal drift` when only one of them is null, `principal` when they differ. The refusal states
 *   the difference, for the log.
 */
export function checkPrincipal(claim: unknown, principal: string | null): void {
  if (claim !== null && principal === null) {
    throw new Refusal('principal drift', undefined, 'the state has a principal, but the request has none');
  }
  if (principal === null) return;
  if (claim === null) {
    throw new Refusal('principal drift', undefined, 'the request has a principal, but the state has none');
  }
  if (typeof claim !== 'string') throw new Refusal('principal');
  if (!principalMatches(claim, principal)) {
    throw new Refusal('principal', undefined, principalDifference(claim, principal));
  }
}
