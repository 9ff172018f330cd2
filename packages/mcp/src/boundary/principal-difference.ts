import { compactJson } from './compact-json.ts';
import { principalMatches } from './principal-claim.ts';

type Part = string | null;
/** The parts of a principal that comes from an access token: OAuth client, issuer, subject. */
type Parts = readonly [client: string, issuer: Part, subject: Part];

/**
 * How the principal of a state differs from the principal of the request. For the log only: it does not reveal the
 * parts.
 */
export type PrincipalDifference =
  | `the state was sealed ${Sealed}`
  | 'the issuers differ in a trailing slash'
  | 'issuer and subject are swapped'
  | `the client, the issuer or the user differs${'' | '; the request has no issuer'}`
  | `the client, the issuer or the user differs; the request has ${'no subject' | 'neither issuer nor subject'}`
  | 'the state has a principal, but the request has none'
  | 'the request has a principal, but the state has none';

type Sealed =
  | `without ${'an issuer' | 'a subject' | 'an issuer or subject'}`
  | `with the subject as client id${'' | ' and without an issuer'}`;

/** The principals that a state of the same user can have if another server determines the parts differently. */
function variantsOf([client, issuer, subject]: Parts): readonly (readonly [PrincipalDifference, Parts])[] {
  const id = subject ?? client;
  return [
    ['the state was sealed without an issuer', [client, null, subject]],
    ['the state was sealed without a subject', [client, issuer, null]],
    ['the state was sealed without an issuer or subject', [client, null, null]],
    ['the issuers differ in a trailing slash', [client, otherSlash(issuer), subject]],
    ['the state was sealed with the subject as client id', [id, issuer, subject]],
    ['the state was sealed with the subject as client id and without an issuer', [id, null, subject]],
    ['issuer and subject are swapped', [client, subject, issuer]],
  ];
}

/**
 * Returns how `principal` differs from the one that `claim` was made for, or undefined when `principal` does not come
 * from an access token. Always computes the hash of every variant, seven at most, so that the time does not depend on
 * the match.
 */
export function principalDifference(claim: string, principal: string): PrincipalDifference | undefined {
  const parts = partsOf(principal);
  if (parts === undefined) return undefined;
  const matches = variantsOf(parts).filter(([, variant]) => principalMatches(claim, compactJson(variant)));
  return matches[0]?.[0] ?? unknownDifference(parts);
}

/** The difference if no variant matches: the parts that the request lacks. Nothing is known about the state. */
function unknownDifference([, issuer, subject]: Parts): PrincipalDifference {
  const differs = 'the client, the issuer or the user differs';
  if (issuer !== null) return subject === null ? `${differs}; the request has no subject` : differs;
  return subject === null
    ? `${differs}; the request has neither issuer nor subject`
    : `${differs}; the request has no issuer`;
}

function otherSlash(issuer: Part): Part {
  if (issuer === null) return null;
  return issuer.endsWith('/') ? issuer.slice(0, -1) : `${issuer}/`;
}

function partsOf(principal: string): Parts | undefined {
  let value: unknown;
  try {
    value = JSON.parse(principal);
  } catch {
    // The text comes from the user's own `bindPrincipal`, so its parts are unknown.
  }
  return isParts(value) ? value : undefined;
}

function isParts(value: unknown): value is Parts {
  if (!Array.isArray(value) || value.length !== 3 || typeof value[0] !== 'string') return false;
  return value.every((part) => part === null || typeof part === 'string');
}
