import { createHash } from 'node:crypto';
import type { ServerContext } from '@modelcontextprotocol/server';
import { warnOnce } from '../shared/warn-once.ts';
import { principalWithoutSubject } from './events.ts';
import type { SecurityPolicy } from './policy.ts';
import { type AuthenticatedContext, authenticatedPrincipal, subjectOf } from './principal.ts';

/** The number of reported clients that each policy remembers. Older ones are forgotten, and can be reported again. */
const MAX_CLIENTS = 1000;

const reportedByPolicy = new WeakMap<SecurityPolicy, Set<string>>();

/**
 * Returns the function that determines the principal of a request. With the default `bindPrincipal`, an access token
 * without a subject is reported once for each client, on the channel `sealring:principal-without-subject`, and a
 * process warning reports a request whose access token did not reach the SDK. With `requireSubject`, the function
 * throws instead; it also throws for a request without an access token.
 */
export function principalBinder(policy: SecurityPolicy): (ctx: ServerContext) => unknown {
  const { bindPrincipal } = policy;
  if (bindPrincipal === null) return () => null;
  if (bindPrincipal !== authenticatedPrincipal) return bindPrincipal;
  return (ctx) => {
    const principal = accessTokenPrincipal(policy, ctx);
    // Either the verified user is in a place that the SDK does not read, such as `request.user`, or no user was
    // verified.
    if (principal === null && ctx.http?.req?.headers.has('authorization') === true) {
      warnNoSubject('a requestState is bound to no user, although its request has an Authorization header');
    }
    return principal;
  };
}

/** The principal according to the default `bindPrincipal`. @throws {TypeError} when `requireSubject` refuses it. */
export function accessTokenPrincipal(policy: SecurityPolicy, ctx: AuthenticatedContext): string | null {
  const principal = authenticatedPrincipal(ctx);
  // An empty subject counts as none.
  if ((subjectOf(ctx) ?? '') !== '') return principal;
  refuseNoSubject(policy);
  if (principal !== null) report(policy, String(ctx.http?.authInfo?.clientId));
  return principal;
}

/** @throws {TypeError} under `requireSubject`, for a request that has no subject. */
export function refuseNoSubject(policy: SecurityPolicy): void {
  if (!policy.requireSubject) return;
  warnNoSubject('requireSubject refused a requestState, because the request has no subject');
  throw new TypeError('the request has no subject');
}

/** Warns once per process, because nothing else shows why states are refused, or are accepted from any user. */
function warnNoSubject(what: string): void {
  warnOnce(
    'SEALRING_NO_SUBJECT',
    `${what}. Set request.auth (authInfo of handler.fetch) to the result of your token verifier, with the user in extra.sub; with protectFetch, return that result from bindPrincipal. See docs/guides/wire-a-verifier.md. If your server has no users, set bindPrincipal: null`,
  );
}

function report(policy: SecurityPolicy, clientId: string): void {
  if (!principalWithoutSubject.isHeard) return;
  const client = createHash('sha256').update(clientId).digest('base64url').slice(0, 16);
  const reported = reportedByPolicy.get(policy) ?? new Set<string>();
  reportedByPolicy.set(policy, reported);
  if (reported.has(client)) return;
  reported.add(client);
  for (const oldest of reported) if (reported.size > MAX_CLIENTS) reported.delete(oldest);
  principalWithoutSubject.emit({ client });
}
