import type { AuthInfo } from '@modelcontextprotocol/server';
import { compactJson } from '../boundary/compact-json.ts';
import { ownMember } from '../shared/own-member.ts';

/** The part of a `ServerContext` that identifies the sender of a request. */
export interface AuthenticatedContext {
  readonly http?: { readonly authInfo?: AuthInfo | undefined } | undefined;
}

/**
 * The default principal: OAuth client, issuer and subject of the access token; null for a request without one.
 *
 * The text is the same as that of `authenticated_principal` in the MCP Python SDK: `compactJson([clientId, issuer,
 * subject])`, with null for each part that is absent. `AuthInfo` of the TypeScript SDK has no issuer and no subject, so
 * they are read from `extra.iss` and `extra.sub`, which your token verifier must set. Without a subject the principal
 * is the OAuth client, which all users of an application share. The access token itself is never used, because a
 * refresh changes it.
 *
 * @throws {TypeError} for a client id or an `extra.sub` that is present but not a string: the state is then refused.
 *
 * @example
 * ```ts
 * new RequestStateSecurity({ codec, bindPrincipal: authenticatedPrincipal, requireSubject: true });
 * ```
 */
export function authenticatedPrincipal(ctx: AuthenticatedContext): string | null {
  const auth = ctx.http?.authInfo;
  if (auth === undefined || auth === null) return null;
  const clientId: unknown = auth.clientId;
  if (typeof clientId !== 'string') throw new TypeError('authInfo.clientId must be a string');
  const issuer = ownMember(auth.extra, 'iss');
  return `[${compactJson(clientId)},${compactJson(typeof issuer === 'string' ? issuer : null)},${compactJson(subjectOf(ctx))}]`;
}

/** The subject of the access token, or null. @throws {TypeError} for a subject that is not a string. */
export function subjectOf(ctx: AuthenticatedContext): string | null {
  const subject = ownMember(ctx.http?.authInfo?.extra, 'sub') ?? null;
  if (subject !== null && typeof subject !== 'string') throw new TypeError('authInfo.extra.sub must be a string');
  return subject;
}
