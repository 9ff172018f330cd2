import type { ServerContext } from '@modelcontextprotocol/server';
import { show } from '@sealring/core/adapter';
import type { Boundary } from '../boundary/boundary.ts';
import type { RejectEvent } from '../boundary/refusal.ts';
import { expectAttachment } from './unattached-warning.ts';

/** What happens when a token is refused; see {@link RequestStatePolicyOptions.onInvalid}. */
export type OnInvalid = 'reject' | 're-elicit' | 're-elicit-any';

/** What every checked policy has, whatever its tokens look like. */
export interface SecurityPolicy {
  readonly bindPrincipal: ((ctx: ServerContext) => unknown) | null;
  readonly requireSubject: boolean;
  readonly onInvalid: OnInvalid;
  readonly onReject: ((event: RejectEvent) => unknown) | undefined;
  /** Whom the tokens are for: undefined where the server says it, null where the tokens name nobody. */
  readonly audience: string | null | undefined;
  /** What opens and seals the tokens of one server. */
  boundaryFor(audience: string | null): Boundary;
}

/** A policy that another wire has checked by itself: what a security is made of in place of options. */
export class CheckedPolicy {
  readonly policy: SecurityPolicy;

  constructor(policy: SecurityPolicy) {
    this.policy = policy;
  }
}

// Beside the object, not on it: console.log(security) shows neither a codec nor a callback.
const policies = new WeakMap<object, SecurityPolicy>();

export function rememberPolicy(security: object, policy: SecurityPolicy): void {
  policies.set(security, Object.freeze(policy));
  expectAttachment(security);
}

/** @throws {TypeError} for anything that is no `RequestStateSecurity`. */
export function policyOf(security: unknown): SecurityPolicy {
  const policy = typeof security === 'object' && security !== null ? policies.get(security) : undefined;
  if (policy === undefined) throw new TypeError(`security must be a RequestStateSecurity, got ${show(security)}`);
  return policy;
}
