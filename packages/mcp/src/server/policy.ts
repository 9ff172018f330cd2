import type { ServerContext } from '@modelcontextprotocol/server';
import { option } from '@sealring/core/adapter';
import type { Boundary } from '../boundary/boundary.ts';
import type { RejectEvent } from '../boundary/refusal.ts';
import { expectAttachment } from './unattached-warning.ts';

/** What the server does when a token is refused; see {@link RequestStatePolicyOptions.onInvalid}. */
export type OnInvalid = 'reject' | 're-elicit' | 're-elicit-any';

/** The members that all checked policies share, whatever their token format. */
export interface SecurityPolicy {
  readonly bindPrincipal: ((ctx: ServerContext) => unknown) | null;
  readonly requireSubject: boolean;
  readonly onInvalid: OnInvalid;
  readonly onReject: ((event: RejectEvent) => unknown) | undefined;
  /** The audience of the tokens: undefined to use the server's, null for tokens without one. */
  readonly audience: string | null | undefined;
  /** Returns the boundary that seals and verifies the tokens of one server. */
  boundaryFor(audience: string | null): Boundary;
}

/** A checked policy for another token format: `RequestStateSecurity` is constructed from it instead of from options. */
export class CheckedPolicy {
  readonly policy: SecurityPolicy;

  constructor(policy: SecurityPolicy) {
    this.policy = policy;
  }
}

// The policy is not a property of the object, so that console.log(security) shows neither a codec nor a callback.
const policies = new WeakMap<object, SecurityPolicy>();

export function rememberPolicy(security: object, policy: SecurityPolicy): void {
  policies.set(security, Object.freeze(policy));
  expectAttachment(security);
}

/** @throws {TypeError} for a value that is not a `RequestStateSecurity`. */
export function policyOf(security: unknown): SecurityPolicy {
  const policy = policies.get(Object(security));
  if (policy === undefined)
    throw option.typeError(
      `security must be a RequestStateSecurity, such as new RequestStateSecurity({ codec }), got ${option.show(security)}`,
    );
  return policy;
}

/** The effective audience. @throws {TypeError} if neither the policy nor the option `name` specifies one. */
export function resolveAudience(
  owner: string,
  name: string,
  { audience: ofPolicy }: SecurityPolicy,
  fallback: unknown,
): string | null {
  if (fallback !== undefined && fallback !== null && typeof fallback !== 'string') {
    throw option.wrongType(owner, name, 'a string or null', fallback);
  }
  const audience = ofPolicy === undefined ? fallback : ofPolicy;
  if (audience === undefined) {
    throw option.typeError(
      `${owner}: an audience is required, in the policy or in ${name}; pass null for tokens without one`,
    );
  }
  return audience;
}
