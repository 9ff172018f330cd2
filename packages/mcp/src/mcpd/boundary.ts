import { type Boundary, type BoundaryRequest, boundPrincipal, prepareFor, type Round } from '../boundary/boundary.ts';
import { Refusal } from '../boundary/refusal.ts';
import { type CarrierMethod, type RequestIdentity, requestTarget } from '../boundary/request-identity.ts';
import type { PreparedCodec } from '../shared/codec-option.ts';
import type { McpdRequester, McpdRequestStateCodec } from './request-state-codec.ts';

/** What the boundary of mcp.d goes by. */
export interface McpdPolicy {
  readonly states: McpdRequestStateCodec;
  /** The ring behind them, if there is one: it may be asked to look for a key. */
  readonly ring: Pick<PreparedCodec, 'prepare'> | undefined;
  readonly maxTokenLength: number;
}

/**
 * What mcp.d's dispatch does with `requestState`, on its wires: a token is bound to the subject, and to method and name
 * where the binding says so. An empty state is not sent at all, where mcp.d would send it in plaintext.
 */
export class McpdBoundary implements Boundary {
  readonly #policy: McpdPolicy;

  constructor(policy: McpdPolicy) {
    this.#policy = policy;
  }

  /** The target alone: arguments are not bound on these wires. */
  identify(method: CarrierMethod, params: unknown): RequestIdentity {
    return { method, target: requestTarget(method, params), digest: '' };
  }

  async prepare(request: BoundaryRequest): Promise<void> {
    if (this.#policy.ring !== undefined) await prepareFor(request, this.#policy.ring, undefined);
  }

  async open(
    request: BoundaryRequest,
    wire: unknown,
  ): Promise<{ readonly state: string; readonly round: Round | undefined }> {
    if (typeof wire !== 'string') throw new Refusal('non-string requestState');
    const { states, ring } = this.#policy;
    if (ring !== undefined) await prepareFor(request, ring, wire);
    const state = states.decode(wire, requesterOf(request));
    if (state === null) throw new Refusal('seal');
    return { state, round: undefined };
  }

  seal(request: BoundaryRequest, state: string): string | undefined {
    const { states, maxTokenLength } = this.#policy;
    if (state === '') return undefined;
    // No token is shorter than its state: not worth printing and encrypting.
    if (state.length > maxTokenLength) throw new Refusal('state too large');
    const token = states.encode(state, requesterOf(request));
    if (token.length > maxTokenLength) throw new Refusal('state too large');
    return token;
  }
}

function requesterOf(request: BoundaryRequest): McpdRequester {
  const { identity } = request;
  if (identity instanceof Refusal) throw identity;
  return { subject: boundPrincipal(request) ?? '', target: `${identity.method}\0${identity.target}` };
}
