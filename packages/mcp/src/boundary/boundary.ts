import { createHash, randomBytes } from 'node:crypto';
import { types } from 'node:util';
import type { SingleUseStore } from '@sealring/core';
import { decodeBase64url, MAX_TOKEN_LENGTH } from '@sealring/core/format-secrets';
import { codecReason, type PreparedCodec, swallow } from '../shared/codec-option.ts';
import { checkPrincipal, mintClaims, type ReadClaims, readClaims } from './claims.ts';
import { PRINCIPAL_SALT_BYTES, principalClaim } from './principal-claim.ts';
import { saltSource } from './random-salt.ts';
import { asRefusal, errorName, Refusal } from './refusal.ts';
import { type CarrierMethod, type RequestIdentity, requestIdentity } from './request-identity.ts';

const ID_BYTES = 16;
// The salt only hides that two principals are equal, so a repeat on a cloned machine does no harm.
const drawSalt = saltSource(PRINCIPAL_SALT_BYTES);
/** The last instant that a `Date` can represent, in milliseconds since the epoch. */
const LATEST_MS = 8.64e15;

/** One request, independent of the SDK. */
export interface BoundaryRequest {
  readonly method: CarrierMethod;
  /** The binding of a token, from the parameters as the client sent them; or the reason why there is none. */
  readonly identity: RequestIdentity | Refusal;
  readonly signal: AbortSignal;
  /** Calls the policy's `bindPrincipal` with this request. The result is not checked. */
  bindPrincipal(): unknown;
  /** Reports a failure on the server's side that is not a refusal. */
  warn(message: string): void;
}

/** The principal of a request: determined once, and used again when the same round seals a state. */
export interface Round {
  readonly principal: string | null;
}

/** Verifies incoming tokens and seals outgoing states. Independent of transport and SDK. */
export interface Boundary {
  /**
   * Reads the binding of a token of this request, before a handler can change the parameters.
   * @throws {Refusal} `arguments too large`. @throws {TypeError | RangeError} for parameters that cannot be bound.
   */
  identify(method: CarrierMethod, params: unknown): RequestIdentity;
  /**
   * Returns the plaintext of a token that a client sent back.
   * @throws {Refusal} when the token is refused; the signal's reason when the client has disconnected.
   */
  unseal(
    request: BoundaryRequest,
    wire: unknown,
  ): Promise<{ readonly state: string; readonly round: Round | undefined }>;
  /**
   * Returns the token for a state, or undefined for a state that must not be sent. `round` is the result of
   * {@link unseal} in the same request, if it was called.
   * @throws {Refusal} when the state must not be sealed.
   */
  seal(request: BoundaryRequest, state: string, round: Round | undefined): string | undefined;
  /** Prepares the codec before {@link seal} is tried again. @throws the signal's reason when the client has disconnected. */
  prepare(request: BoundaryRequest): Promise<unknown>;
}

/** Settings of {@link RequestStateBoundary}. */
export interface BoundaryPolicy {
  readonly codec: PreparedCodec;
  readonly ttlSeconds: number;
  readonly singleUse: SingleUseStore | undefined;
  readonly maxTokenLength: number;
  readonly futureSkewSeconds: number;
  readonly nowSeconds: () => number;
}

/** The boundary of the MCP Python SDK, for one policy and one audience. */
export class RequestStateBoundary implements Boundary {
  readonly #policy: BoundaryPolicy;
  readonly #audience: string | null;

  constructor(policy: BoundaryPolicy, audience: string | null) {
    this.#policy = policy;
    this.#audience = audience;
  }

  identify(method: CarrierMethod, params: unknown): RequestIdentity {
    return requestIdentity(method, params);
  }

  async prepare(request: BoundaryRequest): Promise<void> {
    await prepareFor(request, this.#policy.codec, undefined);
  }

  async unseal(request: BoundaryRequest, wire: unknown): Promise<{ readonly state: string; readonly round: Round }> {
    if (typeof wire !== 'string') throw new Refusal('non-string requestState');
    // An attacker can choose the token, so one that is too long for every codec is not even decoded.
    if (wire.length > MAX_TOKEN_LENGTH) throw new Refusal('malformed');
    const prepared = await prepareFor(request, this.#policy.codec, wire);
    const payload = this.#unseal(wire, prepared);
    const claims = readClaims(payload, {
      nowSeconds: this.#policy.nowSeconds(),
      futureSkewSeconds: this.#policy.futureSkewSeconds,
      identity: request.identity,
      audience: this.#audience,
    });
    const principal = boundPrincipal(request);
    checkPrincipal(claims.principal, principal);
    request.signal.throwIfAborted();
    const { singleUse } = this.#policy;
    if (singleUse !== undefined) await this.#claim(request, claims, singleUse);
    return { state: claims.state, round: { principal } };
  }

  seal(request: BoundaryRequest, state: string, round: Round | undefined): string {
    const { codec, maxTokenLength, singleUse } = this.#policy;
    // A token is never shorter than its state, so encoding and encrypting this state would be wasted work.
    if (state.length > maxTokenLength) throw new Refusal('state too large');
    const { identity } = request;
    if (identity instanceof Refusal) throw identity;
    const { principal } = round ?? { principal: boundPrincipal(request) };
    const payload = mintClaims({
      nowSeconds: this.#policy.nowSeconds(),
      ttlSeconds: this.#policy.ttlSeconds,
      identity,
      state,
      audience: this.#audience,
      principal: principal === null ? null : principalClaim(principal, drawSalt()),
      id: singleUse === undefined ? null : randomBytes(ID_BYTES).toString('base64url'),
    });
    let token: unknown;
    try {
      token = codec.seal(payload);
    } catch (error) {
      const unavailable = asRefusal(error);
      if (unavailable.reason === 'seal unavailable') throw unavailable;
      // A codec may have its own size limit, and throw if a payload exceeds it.
      throw new Refusal(payload.length > (maxTokenLength * 3) / 4 ? 'state too large' : 'codec error', error);
    }
    if (typeof token !== 'string' || token === '') {
      swallow(token);
      throw new Refusal('codec error');
    }
    if (token.length > maxTokenLength) throw new Refusal('state too large');
    return token;
  }

  #unseal(token: string, prepared: boolean): Uint8Array {
    const { codec } = this.#policy;
    let payload: unknown;
    try {
      payload = codec.unseal(token);
    } catch (error) {
      const reason = codecReason(error);
      // A key that could not be looked up is not an unknown key (F9).
      if (reason === undefined || (reason === 'unknown key' && !prepared)) throw new Refusal('codec error', error);
      throw new Refusal(reason);
    }
    if (!types.isUint8Array(payload)) {
      swallow(payload);
      throw new Refusal('codec error');
    }
    return payload;
  }

  async #claim(request: BoundaryRequest, claims: ReadClaims, singleUse: SingleUseStore): Promise<void> {
    const { futureSkewSeconds } = this.#policy;
    const id = decodeId(claims.id);
    // The token was sealed before single use was enabled, or by a Python server, so two redemptions cannot be
    // distinguished.
    if (id === undefined) throw new Refusal('malformed');
    const keptUntilMs = Math.min((claims.expiresAtSeconds + futureSkewSeconds) * 1000, LATEST_MS);
    let won: unknown;
    try {
      won = await singleUse.claim(createHash('sha256').update(id).digest('base64url'), new Date(keptUntilMs));
    } catch (error) {
      throw new Refusal('already used', error);
    }
    if (won !== true) throw new Refusal('already used');
    request.signal.throwIfAborted();
  }
}

/**
 * Prepares the codec to unseal `token` synchronously, or, without a token, to seal.
 * @returns whether that succeeded. A failure alone does not refuse the token: that is decided when it is unsealed.
 * @throws the signal's reason when the client has disconnected.
 */
export async function prepareFor(
  request: BoundaryRequest,
  codec: Pick<PreparedCodec, 'prepare'> | undefined,
  token: string | undefined,
): Promise<boolean> {
  const { signal } = request;
  let failure: string | undefined;
  try {
    await codec?.prepare?.(token, { signal });
  } catch (error) {
    failure = errorName(error);
  }
  signal.throwIfAborted();
  if (failure !== undefined) request.warn(`codec.prepare failed (${failure})`);
  return failure === undefined;
}

/** @throws {Refusal} when the principal cannot be determined. */
export function boundPrincipal(request: BoundaryRequest): string | null {
  let principal: unknown;
  try {
    principal = request.bindPrincipal();
  } catch (error) {
    throw new Refusal('principal binding error', error);
  }
  if (principal === undefined || principal === null) return null;
  if (typeof principal !== 'string') {
    swallow(principal);
    throw new Refusal('principal binding error');
  }
  return principal;
}

function decodeId(value: unknown): Uint8Array | undefined {
  if (typeof value !== 'string') return undefined;
  const id = decodeBase64url(value);
  return id?.length === ID_BYTES ? id : undefined;
}
