import { createHash } from 'node:crypto';
import { channel } from 'node:diagnostics_channel';
import type { ServerContext } from '@modelcontextprotocol/server';
import { warnOnce } from '../shared/warn-once.ts';
import type { SecurityPolicy } from './policy.ts';
import { authenticatedPrincipal, subjectOf } from './principal.ts';

/** Clients remembered per policy as already told of; the oldest is forgotten, and told of again. */
const CLIENTS_BOUND = 1000;

const withoutSubject = channel('sealring:principal-without-subject');
const toldByPolicy = new WeakMap<SecurityPolicy, Set<string>>();

/**
 * Returns the policy's binding of a request to its principal. With the default binding, an access token without a
 * subject is told of once per client, on the diagnostics channel `sealring:principal-without-subject` with
 * `{ client }`, a hash of the client id. Under `requireSubject` it throws instead, also where nobody is signed in.
 */
export function principalBinder(policy: SecurityPolicy): (ctx: ServerContext) => unknown {
  const { bindPrincipal, requireSubject } = policy;
  if (bindPrincipal === null) return () => null;
  if (bindPrincipal !== authenticatedPrincipal) return bindPrincipal;
  return (ctx) => {
    const principal = authenticatedPrincipal(ctx);
    // An empty subject names nobody either.
    if ((subjectOf(ctx) ?? '') !== '') return principal;
    if (requireSubject) {
      warnNoSubject();
      throw new TypeError('the request names no subject');
    }
    if (principal === null) return null;
    tell(policy, ctx.http?.authInfo?.clientId ?? '');
    return principal;
  };
}

/** Says once per process what is missing. Nobody else would see why every state is refused. */
function warnNoSubject(): void {
  warnOnce(
    'SEALRING_NO_SUBJECT',
    'requireSubject refused a requestState: the request names no user. Set request.auth (authInfo of handler.fetch) to ' +
      'what your token verifier returns, with the user in extra.sub: see docs/guides/wire-a-verifier.md. ' +
      'bindPrincipal: null is for servers without users',
  );
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
