import { randomBytes } from 'node:crypto';
import type { ServerContext } from '@modelcontextprotocol/server';
import { AesGcmRequestStateCodec, type Clock, type RequestStateCodec } from '@sealring/core';
import { flag, numberWithin, oneOf, show } from '@sealring/core/adapter';
import { type BoundaryPolicy, RequestStateBoundary } from '../boundary/boundary.ts';
import type { RejectEvent } from '../boundary/refusal.ts';
import type { SingleUseStore } from '../boundary/single-use.ts';
import { readClock } from '../shared/clock-option.ts';
import { checkLifetime, type PreparedCodec, readCodec } from '../shared/codec-option.ts';
import { warnEphemeral } from '../shared/ephemeral-warning.ts';
import { callback, hasMethods, isFunction, knownOptions } from '../shared/option-checks.ts';
import { readMaxTokenLength } from '../shared/token-length.ts';
import { CheckedPolicy, type OnInvalid, rememberPolicy, type SecurityPolicy } from './policy.ts';
import { authenticatedPrincipal } from './principal.ts';

const OWNER = 'RequestStateSecurity';
const DEFAULT_TTL_SECONDS = 600;
// _FUTURE_SKEW of the MCP Python SDK.
const DEFAULT_FUTURE_SKEW_SECONDS = 60;

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
   * failure, which fails the official tampered-state scenario by design. Under all of them, input responses that come
   * without any `requestState` reach the handler: act on them only where it gets a state. Default: `reject`.
   */
  readonly onInvalid?: OnInvalid;
  /** Longest token that may be sealed. Characters, 256 to 262 144. Default: 65 536. */
  readonly maxTokenLength?: number;
  /**
   * Refuse to seal and to open for a request that names no subject: nobody is signed in, or the access token has none or
   * an empty one, which would bind the OAuth client that all users of one application share. Warns once, code
   * `SEALRING_NO_SUBJECT`. Only with the default `bindPrincipal`; null instead is for servers without users. Default: false.
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

/**
 * Policy for protecting `requestState`: codec, lifetime, principal, audience. Immutable; make one per process, outside
 * the factory of `createMcpHandler`, which runs once per HTTP request. One that no server is protected by warns once,
 * code `SEALRING_UNATTACHED`.
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
   * @throws {RangeError} for a value out of range, a `ttlSeconds` longer than the codec's `tokenLifetimeSeconds`, or a
   *   `singleUse` that remembers tokens for less than the codec's `clockSkewSeconds` longer than they live.
   */
  constructor(options: RequestStateSecurityOptions);
  /** @internal */
  constructor(checked: CheckedPolicy);
  constructor(given: RequestStateSecurityOptions | CheckedPolicy) {
    rememberPolicy(this, given instanceof CheckedPolicy ? given.policy : readPolicy(given));
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
    warnEphemeral();
    return security;
  }
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
  const {
    ttlSeconds: ttl = DEFAULT_TTL_SECONDS,
    audience,
    bindPrincipal = authenticatedPrincipal,
    requireSubject = false,
    onInvalid = 'reject',
    futureSkewSeconds = DEFAULT_FUTURE_SKEW_SECONDS,
  } = given;
  const ttlSeconds = readTtl(ttl);
  const codec = codecOf(given, ttlSeconds);
  if (audience !== undefined && typeof audience !== 'string') {
    throw new TypeError(`${OWNER}: audience must be a string, got ${show(audience)}`);
  }
  if (bindPrincipal !== null && !isFunction(bindPrincipal)) {
    throw new TypeError(`${OWNER}: bindPrincipal must be a function or null, got ${show(bindPrincipal)}`);
  }
  const needsSubject = flag(OWNER, 'requireSubject', requireSubject);
  if (needsSubject && bindPrincipal !== authenticatedPrincipal) {
    throw new TypeError(`${OWNER}: requireSubject true needs the default bindPrincipal: yours decides for itself`);
  }
  const policy: SecurityPolicy & BoundaryPolicy = {
    codec,
    ttlSeconds,
    audience,
    bindPrincipal,
    onReject: callback(OWNER, 'onReject', given['onReject']),
    singleUse: readStore(given['singleUse'], codec),
    onInvalid: oneOf(OWNER, 'onInvalid', onInvalid, ['reject', 're-elicit', 're-elicit-any']),
    maxTokenLength: readMaxTokenLength(OWNER, given['maxTokenLength']),
    requireSubject: needsSubject,
    futureSkewSeconds: numberWithin(OWNER, 'futureSkewSeconds', futureSkewSeconds, 0, 3600),
    nowSeconds: readClock(OWNER, given['clock']),
    boundaryFor: (name) => new RequestStateBoundary(policy, name),
  };
  return policy;
}

function readTtl(ttlSeconds: unknown): number {
  if (typeof ttlSeconds !== 'number') {
    throw new TypeError(`${OWNER}: ttlSeconds must be a number, got ${show(ttlSeconds)}`);
  }
  if (!(Number.isFinite(ttlSeconds) && ttlSeconds > 0)) {
    throw new RangeError(`${OWNER}: ttlSeconds must be finite and above 0, got ${ttlSeconds}`);
  }
  return ttlSeconds;
}

function codecOf({ keys, codec: given }: Record<string, unknown>, ttlSeconds: number): PreparedCodec {
  if ((keys === undefined) === (given === undefined)) {
    throw new TypeError(
      `${OWNER}: takes exactly one of keys and codec, got ${keys === undefined ? 'neither' : 'both'}`,
    );
  }
  if (keys !== undefined) {
    if (!isKeyList(keys)) throw new TypeError(`${OWNER}: keys must be an array, got ${show(keys)}`);
    return new AesGcmRequestStateCodec(keys);
  }
  const codec = readCodec(OWNER, 'codec', given);
  checkLifetime(OWNER, codec, ttlSeconds);
  return codec;
}

// Each key is checked by the codec's constructor, which copies it.
function isKeyList(value: unknown): value is readonly (Uint8Array | string)[] {
  return Array.isArray(value);
}

function readStore(value: unknown, codec: object): SingleUseStore | undefined {
  if (value === undefined) return undefined;
  if (!isStore(value)) throw new TypeError(`${OWNER}: singleUse must have a claim method, got ${show(value)}`);
  checkMargin(value, codec);
  return value;
}

/** A store that forgets sooner lets a server whose clock is behind redeem a token again. */
function checkMargin(store: SingleUseStore, codec: object): void {
  const margin: unknown = store.clockSkewSeconds;
  const skew: unknown = Reflect.get(codec, 'clockSkewSeconds');
  if (margin === undefined) return;
  if (typeof margin !== 'number') {
    throw new TypeError(`${OWNER}: singleUse.clockSkewSeconds must be a number, got ${show(margin)}`);
  }
  if (typeof skew === 'number' && !(margin >= skew)) {
    throw new RangeError(
      `${OWNER}: clockSkewSeconds ${margin} of singleUse is smaller than ${skew}, the codec's: give the store the ring's`,
    );
  }
}

function isStore(value: unknown): value is SingleUseStore {
  return hasMethods(value, ['claim']);
}
