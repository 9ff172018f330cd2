import { type Boundary, type BoundaryRequest, boundPrincipal, prepareFor, type Round } from '../boundary/boundary.ts';
import { Refusal } from '../boundary/refusal.ts';
import { type CarrierMethod, type RequestIdentity, requestTarget } from '../boundary/request-identity.ts';
import type { PreparedCodec } from '../shared/codec-option.ts';
import type { McpdRequester, McpdRequestStateCodec } from './request-state-codec.ts';

/** Settings of {@link McpdBoundary}. */
export interface McpdPolicy {
  readonly states: McpdRequestStateCodec;
  /** The codec of the ring whose keys `states` uses, if any: it may have to fetch a key. */
  readonly ring: Pick<PreparedCodec, 'prepare'> | undefined;
  readonly maxTokenLength: number;
}

/**
 * The boundary of mcp.d's dispatch, with its token formats: a token is bound to the subject and, with the binding
 * `authSubjectAndTool`, to method and name. An empty state is not sent, whereas mcp.d would send it in plaintext.
 */
export class McpdBoundary implements Boundary {
  readonly #policy: McpdPolicy;

  constructor(policy: McpdPolicy) {
    this.#policy = policy;
  }

  /** Leaves the digest empty: these token formats do not bind arguments. */
  identify(method: CarrierMethod, params: unknown): RequestIdentity {
    return { method, target: requestTarget(method, params), digest: '' };
  }

  async prepare(request: BoundaryRequest): Promise<void> {
    await prepareFor(request, this.#policy.ring, undefined);
  }

  async unseal(
    request: BoundaryRequest,
    wire: unknown,
  ): Promise<{ readonly state: string; readonly round: Round | undefined }> {
    if (typeof wire !== 'string') throw new Refusal('non-string requestState');
    const { states, ring } = this.#policy;
    await prepareFor(request, ring, wire);
    const state = states.decode(wire, requesterOf(request));
    if (state === null) throw new Refusal('authentication failed');
    return { state, round: undefined };
  }

  seal(request: BoundaryRequest, state: string): string | undefined {
    const { states, maxTokenLength } = this.#policy;
    if (state === '') return undefined;
    // A token is never shorter than its state, so encoding and encrypting this state would be wasted work.
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
