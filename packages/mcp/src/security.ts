import { randomBytes } from 'node:crypto';
import type { ServerContext } from '@modelcontextprotocol/server';
import { AesGcmRequestStateCodec, type Clock, type RequestStateCodec } from '@sealring/core';
import { boundedNumber, flag, hasMethods, knownOptions, show } from './option-checks.ts';
import { authenticatedPrincipal } from './principal.ts';
import type { RejectEvent } from './refusal.ts';
import type { SingleUseStore } from './single-use.ts';

const OWNER = 'RequestStateSecurity';
/** Characters; what no codec of ours would open, so the boundary refuses it unread. */
export const MAX_TOKEN_LENGTH = 262_144;
const DEFAULT_TTL_SECONDS = 600;
const DEFAULT_MAX_TOKEN_LENGTH = 65_536;
// _FUTURE_SKEW of the MCP Python SDK.
const DEFAULT_FUTURE_SKEW_SECONDS = 60;

/** What happens when a token is refused; see {@link RequestStateSecurityOptions.onInvalid}. */
export type OnInvalid = 'reject' | 're-elicit' | 're-elicit-any';

const ON_INVALID: readonly OnInvalid[] = ['reject', 're-elicit', 're-elicit-any'];

/** What {@link RequestStateSecurity} takes beside its keys or codec. Durations are seconds. */
export interface RequestStatePolicyOptions {
  /** How long a token is accepted after it was sealed. Seconds, finite, above 0. Default: 600. */
  readonly ttlSeconds?: number;
  /**
   * The service that the tokens are for: it stops state of another service under the same keys. Default: the
   * `defaultAudience` of `protectRequestState`; `createProtectedMcpServer` gives the server's name.
   */
  readonly audience?: string;
  /**
   * Who the state belongs to; null for nobody. Must be synchronous. Null instead of a function binds to nobody, ever.
   * Default: {@link authenticatedPrincipal}.
   */
  readonly bindPrincipal?: ((ctx: ServerContext) => string | null) | null;
  /** Every token is redeemed at most once, across the fleet that shares the store. Default: none. */
  readonly singleUse?: SingleUseStore;
  /**
   * `reject`: answer -32602. `re-elicit`: for an expired token or an unknown key, run the handler as on the first
   * round, without `requestState` and `inputResponses`; refuse everything else. `re-elicit-any`: the same for every
   * failure, which fails the official tampered-state scenario by design. Default: `reject`.
   */
  readonly onInvalid?: OnInvalid;
  /** Longest token that may be sealed. Characters, 256 to 262 144. Default: 65 536. */
  readonly maxTokenLength?: number;
  /**
   * Refuse an access token without a subject, which binds the OAuth client that all users of one application share.
   * Only with the default `bindPrincipal`. Default: false.
   */
  readonly requireSubject?: boolean;
  /**
   * How far in the future a token may have been minted: the end-to-end clock tolerance of the claims. The ring has its
   * own, for other clocks. Seconds, 0 to 3 600. Default: 60.
   */
  readonly futureSkewSeconds?: number;
  /** Where time comes from. Default: the system's clock. */
  readonly clock?: Clock;
  /** Called exactly once per refusal, synchronously. What it throws goes to the server's `onerror`. */
  readonly onReject?: (event: RejectEvent) => void;
}

/** Options of {@link RequestStateSecurity}: exactly one of `keys` and `codec`, and the policy. */
export type RequestStateSecurityOptions = RequestStatePolicyOptions &
  (
    | {
        /** Secrets of 32 bytes or more for the Python SDK's codec: the first seals, all open. */
        readonly keys: readonly (Uint8Array | string)[];
        readonly codec?: undefined;
      }
    | {
        /** Any codec, for one over a KMS. */
        readonly codec: RequestStateCodec;
        readonly keys?: undefined;
      }
  );

/** A codec with what only some have: {@link RequestStateCodec} of a KMS ring. */
interface PreparedCodec extends RequestStateCodec {
  prepare?(token?: string, options?: { readonly signal?: AbortSignal }): Promise<void>;
}

/** The validated policy, as the boundary reads it. */
export interface SecurityPolicy {
  readonly codec: PreparedCodec;
  readonly ttlSeconds: number;
  readonly audience: string | undefined;
  readonly bindPrincipal: ((ctx: ServerContext) => unknown) | null;
  readonly singleUse: SingleUseStore | undefined;
  readonly onInvalid: OnInvalid;
  readonly maxTokenLength: number;
  readonly requireSubject: boolean;
  readonly futureSkewSeconds: number;
  readonly nowSeconds: () => number;
  readonly onReject: ((event: RejectEvent) => unknown) | undefined;
}

// Beside the object, not on it: console.log(security) shows neither a codec nor a callback.
const policies = new WeakMap<object, SecurityPolicy>();

/** @throws {TypeError} for anything that is no {@link RequestStateSecurity}. */
export function policyOf(security: unknown): SecurityPolicy {
  const policy = typeof security === 'object' && security !== null ? policies.get(security) : undefined;
  if (policy === undefined) throw new TypeError(`security must be a ${OWNER}, got ${show(security)}`);
  return policy;
}

/**
 * Policy for protecting `requestState`: codec, lifetime, principal, audience. Immutable; make one per process, outside
 * the factory of `createMcpHandler`, which runs once per HTTP request.
 *
 * It enforces what `RequestStateSecurity` of the MCP Python SDK 2.3.0 does, on the same wire.
 *
 * @example
 * ```ts
 * const security = new RequestStateSecurity({ codec, ttlSeconds: 600, requireSubject: true });
 * ```
 */
export class RequestStateSecurity {
  /**
   * @throws {TypeError} for an unknown option, a wrong type, or not exactly one of `keys` and `codec`.
   * @throws {RangeError} for a value out of range, or a `ttlSeconds` longer than the codec's `tokenLifetimeSeconds`.
   */
  constructor(options: RequestStateSecurityOptions) {
    policies.set(this, Object.freeze(readPolicy(options)));
    Object.freeze(this);
  }

  /**
   * Protection under a key that is made now and held by this process only: what was sealed before a restart, or by
   * another process, is refused. Emits one process warning, code `SEALRING_EPHEMERAL`.
   *
   * @param options - `ttlSeconds` (default 600) and `audience`, as in the constructor.
   * @throws {TypeError} and {@link RangeError} as the constructor.
   */
  static ephemeral(options: { readonly ttlSeconds?: number; readonly audience?: string } = {}): RequestStateSecurity {
    knownOptions(`${OWNER}.ephemeral`, options, ['ttlSeconds', 'audience']);
    const security = new RequestStateSecurity({ ...options, keys: [randomBytes(32)] });
    warnOnce();
    return security;
  }
}

let warned = false;

function warnOnce(): void {
  if (warned) return;
  warned = true;
  process.emitWarning('requestState is sealed under a key of this process only: it dies with the process', {
    type: 'SealringWarning',
    code: 'SEALRING_EPHEMERAL',
  });
}

const KNOWN = [
  'keys',
  'codec',
  'ttlSeconds',
  'audience',
  'bindPrincipal',
  'singleUse',
  'onInvalid',
  'maxTokenLength',
  'requireSubject',
  'futureSkewSeconds',
  'clock',
  'onReject',
];

function readPolicy(options: unknown): SecurityPolicy {
  const given = knownOptions(OWNER, options, KNOWN);
  const ttlSeconds = readTtl(given['ttlSeconds']);
  const codec = readCodec(given, ttlSeconds);
  const { audience, onReject } = given;
  if (audience !== undefined && typeof audience !== 'string') {
    throw new TypeError(`${OWNER}: audience must be a string, got ${show(audience)}`);
  }
  const bindPrincipal = given['bindPrincipal'] === undefined ? authenticatedPrincipal : given['bindPrincipal'];
  if (bindPrincipal !== null && !isFunction(bindPrincipal)) {
    throw new TypeError(`${OWNER}: bindPrincipal must be a function or null, got ${show(bindPrincipal)}`);
  }
  const requireSubject = flag(OWNER, 'requireSubject', given['requireSubject'], false);
  if (requireSubject && bindPrincipal !== authenticatedPrincipal) {
    throw new TypeError(`${OWNER}: requireSubject true needs the default bindPrincipal: yours decides for itself`);
  }
  if (onReject !== undefined && !isFunction(onReject)) {
    throw new TypeError(`${OWNER}: onReject must be a function, got ${show(onReject)}`);
  }
  return {
    codec,
    ttlSeconds,
    audience,
    bindPrincipal,
    singleUse: readStore(given['singleUse']),
    onInvalid: readOnInvalid(given['onInvalid']),
    maxTokenLength: readMaxTokenLength(given['maxTokenLength']),
    requireSubject,
    futureSkewSeconds: boundedNumber(
      OWNER,
      'futureSkewSeconds',
      given['futureSkewSeconds'] === undefined ? DEFAULT_FUTURE_SKEW_SECONDS : given['futureSkewSeconds'],
      0,
      3600,
    ),
    nowSeconds: readClock(given['clock']),
    onReject,
  };
}

function isFunction(value: unknown): value is (argument: unknown) => unknown {
  return typeof value === 'function';
}

function readTtl(value: unknown): number {
  const ttlSeconds = value === undefined ? DEFAULT_TTL_SECONDS : value;
  if (typeof ttlSeconds !== 'number') {
    throw new TypeError(`${OWNER}: ttlSeconds must be a number, got ${show(ttlSeconds)}`);
  }
  if (!(Number.isFinite(ttlSeconds) && ttlSeconds > 0)) {
    throw new RangeError(`${OWNER}: ttlSeconds must be finite and above 0, got ${ttlSeconds}`);
  }
  return ttlSeconds;
}

function readCodec(given: Record<string, unknown>, ttlSeconds: number): PreparedCodec {
  const { keys, codec } = given;
  if ((keys === undefined) === (codec === undefined)) {
    throw new TypeError(
      `${OWNER}: takes exactly one of keys and codec, got ${keys === undefined ? 'neither' : 'both'}`,
    );
  }
  if (keys !== undefined) {
    if (!isKeyList(keys)) throw new TypeError(`${OWNER}: keys must be an array, got ${show(keys)}`);
    return new AesGcmRequestStateCodec(keys);
  }
  if (!isCodec(codec)) throw new TypeError(`${OWNER}: codec must have seal and unseal, got ${show(codec)}`);
  const lifetime: unknown = Reflect.get(codec, 'tokenLifetimeSeconds');
  // A key may be gone before such a token expires: it would be refused while it is still promised.
  if (typeof lifetime === 'number' && !(lifetime >= ttlSeconds)) {
    throw new RangeError(
      `${OWNER}: ttlSeconds ${ttlSeconds} is longer than the codec's tokenLifetimeSeconds ${lifetime}`,
    );
  }
  return codec;
}

// Each key is checked by the codec's constructor, which copies it.
function isKeyList(value: unknown): value is readonly (Uint8Array | string)[] {
  return Array.isArray(value);
}

function isCodec(value: unknown): value is PreparedCodec {
  return hasMethods(value, ['seal', 'unseal']);
}

function readStore(value: unknown): SingleUseStore | undefined {
  if (value === undefined || isStore(value)) return value;
  throw new TypeError(`${OWNER}: singleUse must have a claim method, got ${show(value)}`);
}

function isStore(value: unknown): value is SingleUseStore {
  return hasMethods(value, ['claim']);
}

function readOnInvalid(value: unknown): OnInvalid {
  if (value === undefined) return 'reject';
  if (typeof value !== 'string') throw new TypeError(`${OWNER}: onInvalid must be a string, got ${show(value)}`);
  const found = ON_INVALID.find((choice) => choice === value);
  if (found === undefined) {
    throw new RangeError(`${OWNER}: onInvalid must be one of ${ON_INVALID.join(', ')}, got ${JSON.stringify(value)}`);
  }
  return found;
}

function readMaxTokenLength(value: unknown): number {
  const length = boundedNumber(
    OWNER,
    'maxTokenLength',
    value === undefined ? DEFAULT_MAX_TOKEN_LENGTH : value,
    256,
    MAX_TOKEN_LENGTH,
  );
  if (!Number.isInteger(length)) throw new RangeError(`${OWNER}: maxTokenLength must be an integer, got ${length}`);
  return length;
}

function readClock(value: unknown): () => number {
  if (value === undefined) return () => Date.now() / 1000;
  if (!isClock(value)) throw new TypeError(`${OWNER}: clock must have wallMs and monotonicNs, got ${show(value)}`);
  return () => value.wallMs() / 1000;
}

function isClock(value: unknown): value is Clock {
  return hasMethods(value, ['wallMs', 'monotonicNs']);
}
