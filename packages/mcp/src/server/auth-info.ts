import type { AuthInfo } from '@modelcontextprotocol/server';
import { type AccessTokenClaim, InvalidClaimError } from '../shared/errors.ts';
import { ownMember } from '../shared/own-member.ts';

/** The input of {@link authInfoOf}. */
export interface VerifiedAccessToken {
  readonly token: string;
  /** The claims of the access token, after you have verified its signature, issuer and audience. */
  readonly claims: Readonly<Record<string, unknown>>;
}

/**
 * Returns the `AuthInfo` for an access token, with the members that `JWTVerifier` of FastMCP (PyPI `fastmcp` 4.1.2)
 * chooses, so that {@link authenticatedPrincipal} gives the same principal as on a FastMCP server.
 *
 * `clientId` is the first of `client_id`, `azp` and `sub` that is present and not empty, else `unknown`. `extra` has `iss`
 * and `sub`. Scopes are read from `scope`, or else from `scp`. Verifies nothing: pass claims that you have verified.
 *
 * @throws {InvalidClaimError} if one of these claims does not have the type that RFC 9068 defines.
 *
 * @example
 * ```ts
 * const { payload } = await jwtVerify(token, keys, { issuer, audience }); // from jose
 * return authInfoOf({ token, claims: payload });
 * ```
 */
export function authInfoOf({ token, claims }: VerifiedAccessToken): AuthInfo {
  const subject = textOf(claims, 'sub');
  const issuer = textOf(claims, 'iss');
  const expiresAt = expiryOf(claims);
  return {
    token,
    // As with Python's `or`, an empty string counts as absent, and a later claim is read only if it is needed.
    clientId: textOf(claims, 'client_id') || textOf(claims, 'azp') || subject || 'unknown',
    scopes: scopesOf(claims),
    ...(expiresAt === undefined ? {} : { expiresAt }),
    extra: {
      ...(issuer === undefined ? {} : { iss: issuer }),
      ...(subject === undefined ? {} : { sub: subject }),
    },
  };
}

function textOf(claims: unknown, claim: AccessTokenClaim): string | undefined {
  const value = ownMember(claims, claim) ?? undefined;
  if (value !== undefined && typeof value !== 'string') throw new InvalidClaimError(claim, 'a string');
  return value;
}

function expiryOf(claims: unknown): number | undefined {
  const value = ownMember(claims, 'exp') ?? undefined;
  if (value === undefined) return undefined;
  if (!Number.isFinite(value)) throw new InvalidClaimError('exp', 'a number');
  return Math.trunc(Number(value));
}

function scopesOf(claims: unknown): string[] {
  for (const claim of ['scope', 'scp'] as const) {
    const value = ownMember(claims, claim) ?? undefined;
    if (typeof value === 'string') return value.split(/\s/).filter((scope) => scope !== '');
    if (Array.isArray(value) && value.every((scope) => typeof scope === 'string')) return [...value];
    if (value !== undefined) throw new InvalidClaimError(claim, 'a string or an array of strings');
  }
  return [];
}
