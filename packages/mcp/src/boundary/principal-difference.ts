import { compactJson } from './compact-json.ts';
import { principalMatches } from './principal-claim.ts';

type Part = string | null;
/** The parts of a principal of an access token: OAuth client, issuer, subject. */
type Parts = readonly [client: string, issuer: Part, subject: Part];

/** How the principal of a state differs from that of the request. For the log only: it does not reveal the parts. */
export type PrincipalDifference = VariantDifference | UnknownDifference | MissingDifference;

type VariantDifference =
  | 'the state was sealed without an issuer'
  | 'the state was sealed without a subject'
  | 'the state was sealed without an issuer and a subject'
  | 'the issuers differ in a trailing slash'
  | 'the state was sealed with the subject as client id'
  | 'the state was sealed with the subject as client id and without an issuer'
  | 'issuer and subject are swapped';

type UnknownDifference =
  | 'the client, the issuer or the user differs'
  | 'the client, the issuer or the user differs; the request has no issuer'
  | 'the client, the issuer or the user differs; the request has no subject'
  | 'the client, the issuer or the user differs; the request has neither issuer nor subject';

type MissingDifference =
  | 'the state has a principal, but the request has none'
  | 'the request has a principal, but the state has none';

/** The principals that a state of the same user has when another server determines the parts in another way. */
const VARIANTS: readonly (readonly [VariantDifference, (parts: Parts) => Parts])[] = [
  ['the state was sealed without an issuer', ([client, , subject]) => [client, null, subject]],
  ['the state was sealed without a subject', ([client, issuer]) => [client, issuer, null]],
  ['the state was sealed without an issuer and a subject', ([client]) => [client, null, null]],
  ['the issuers differ in a trailing slash', ([client, issuer, subject]) => [client, otherSlash(issuer), subject]],
  [
    'the state was sealed with the subject as client id',
    ([client, issuer, subject]) => [subject ?? client, issuer, subject],
  ],
  [
    'the state was sealed with the subject as client id and without an issuer',
    ([client, , subject]) => [subject ?? client, null, subject],
  ],
  ['issuer and subject are swapped', ([client, issuer, subject]) => [client, subject, issuer]],
];

/**
 * Returns how `principal` differs from the one that `claim` was made for, or undefined when `principal` is not that of an
 * access token. Always computes the hash of every variant, seven at most, so that the time does not depend on the match.
 */
export function principalDifference(claim: string, principal: string): PrincipalDifference | undefined {
  const parts = partsOf(principal);
  if (parts === undefined) return undefined;
  const matches = VARIANTS.filter(([, variant]) => principalMatches(claim, compactJson(variant(parts))));
  return matches[0]?.[0] ?? unknownDifference(parts);
}

/** By what the request lacks: a part that only the state has cannot be guessed. */
function unknownDifference([, issuer, subject]: Parts): UnknownDifference {
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
    // The text of a `bindPrincipal` of the user's own, whose parts are unknown.
    return undefined;
  }
  return isParts(value) ? value : undefined;
}

function isParts(value: unknown): value is Parts {
  if (!Array.isArray(value) || value.length !== 3 || typeof value[0] !== 'string') return false;
  return value.every((part) => part === null || typeof part === 'string');
}
