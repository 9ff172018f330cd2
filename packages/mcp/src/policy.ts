import type { ServerContext } from '@modelcontextprotocol/server';
import type { PreparedCodec } from './codec-option.ts';
import type { McpdRequestStateCodec } from './mcpd-request-state-codec.ts';
import { show } from './option-checks.ts';
import type { RejectEvent } from './refusal.ts';
import type { SingleUseStore } from './single-use.ts';
import { expectAttachment } from './unattached-warning.ts';

/** What happens when a token is refused; see {@link RequestStatePolicyOptions.onInvalid}. */
export type OnInvalid = 'reject' | 're-elicit' | 're-elicit-any';

/** What every validated policy has, whatever its tokens look like. */
interface CommonPolicy {
  readonly bindPrincipal: ((ctx: ServerContext) => unknown) | null;
  readonly requireSubject: boolean;
  readonly onInvalid: OnInvalid;
  readonly maxTokenLength: number;
  readonly onReject: ((event: RejectEvent) => unknown) | undefined;
}

/** The claims of the Python SDK in the tokens of a codec. */
export interface BoundaryPolicy extends CommonPolicy {
  readonly wire: 'claims';
  readonly codec: PreparedCodec;
  readonly ttlSeconds: number;
  readonly audience: string | undefined;
  readonly singleUse: SingleUseStore | undefined;
  readonly futureSkewSeconds: number;
  readonly nowSeconds: () => number;
}

/** The tokens of mcp.d, which name no audience. */
export interface McpdPolicy extends CommonPolicy {
  readonly wire: 'mcp.d';
  readonly states: McpdRequestStateCodec;
  /** The ring behind them, if there is one: it may be asked to look for a key. */
  readonly ring: Pick<PreparedCodec, 'prepare'> | undefined;
}

export type SecurityPolicy = BoundaryPolicy | McpdPolicy;

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
