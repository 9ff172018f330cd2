import { createHash } from 'node:crypto';
import { channel } from 'node:diagnostics_channel';
import type { ServerContext } from '@modelcontextprotocol/server';
import type { SecurityPolicy } from './policy.ts';
import { authenticatedPrincipal, subjectOf } from './principal.ts';

/** Clients remembered per policy as already told of; the oldest is forgotten, and told of again. */
const CLIENTS_BOUND = 1000;

const withoutSubject = channel('sealring:principal-without-subject');
const toldByPolicy = new WeakMap<SecurityPolicy, Set<string>>();

/**
 * Returns the policy's binding of a request to its principal. With the default binding, an access token without a
 * subject is told of once per client, on the diagnostics channel `sealring:principal-without-subject` with
 * `{ client }`, a hash of the client id; under `requireSubject` it throws instead.
 */
export function principalBinder(policy: SecurityPolicy): (ctx: ServerContext) => unknown {
  const { bindPrincipal, requireSubject } = policy;
  if (bindPrincipal === null) return () => null;
  if (bindPrincipal !== authenticatedPrincipal) return bindPrincipal;
  return (ctx) => {
    const principal = authenticatedPrincipal(ctx);
    if (principal === null || subjectOf(ctx) !== null) return principal;
    if (requireSubject) throw new TypeError('the access token has no subject');
    tell(policy, ctx.http?.authInfo?.clientId ?? '');
    return principal;
  };
}

function tell(policy: SecurityPolicy, clientId: string): void {
  if (!withoutSubject.hasSubscribers) return;
  const client = createHash('sha256').update(clientId).digest('base64url').slice(0, 16);
  const told = toldByPolicy.get(policy) ?? new Set<string>();
  toldByPolicy.set(policy, told);
  if (told.has(client)) return;
  told.add(client);
  if (told.size > CLIENTS_BOUND) {
    const [oldest] = told;
    if (oldest !== undefined) told.delete(oldest);
  }
  withoutSubject.publish(Object.freeze({ client }));
}
