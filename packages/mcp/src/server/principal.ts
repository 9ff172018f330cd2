import type { ServerContext } from '@modelcontextprotocol/server';
import { compactJson } from '../boundary/compact-json.ts';
import { ownMember } from '../shared/own-member.ts';

/**
 * The default principal: who is signed in, as (OAuth client, issuer, subject). Null where nobody is.
 *
 * The text is that of `authenticated_principal` in the MCP Python SDK: `compactJson([clientId, issuer, subject])`, null
 * for what is absent. `AuthInfo` of the TypeScript SDK has no issuer and subject, so they are read from `extra.iss` and
 * `extra.sub`, which your token verifier must fill. Without a subject it binds the OAuth client, which all users of one
 * application share. The access token itself is never used: a refresh changes it.
 *
 * @throws {TypeError} for a client id, or an `extra.sub`, that is present but no string: the state is then refused.
 *
 * @example
 * ```ts
 * new RequestStateSecurity({ codec, bindPrincipal: authenticatedPrincipal, requireSubject: true });
 * ```
 */
export function authenticatedPrincipal(ctx: ServerContext): string | null {
  const auth = ctx.http?.authInfo;
  if (auth === undefined || auth === null) return null;
  const clientId: unknown = auth.clientId;
  if (typeof clientId !== 'string') throw new TypeError('authInfo.clientId is no string');
  const issuer = ownMember(auth.extra, 'iss');
  return `[${compactJson(clientId)},${compactJson(typeof issuer === 'string' ? issuer : null)},${compactJson(subjectOf(ctx))}]`;
}

/** The subject of the access token, or null. @throws {TypeError} for one that is no string. */
export function subjectOf(ctx: ServerContext): string | null {
  const subject = ownMember(ctx.http?.authInfo?.extra, 'sub') ?? null;
  if (subject !== null && typeof subject !== 'string') throw new TypeError('authInfo.extra.sub is no string');
  return subject;
}
