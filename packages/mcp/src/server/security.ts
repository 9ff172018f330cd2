import { randomBytes } from 'node:crypto';
import type { ServerContext } from '@modelcontextprotocol/server';
import { AesGcmRequestStateCodec, type Clock, type RequestStateCodec, type SingleUseStore } from '@sealring/core';
import { option } from '@sealring/core/adapter';
import { type BoundaryPolicy, RequestStateBoundary } from '../boundary/boundary.ts';
import type { RejectEvent } from '../boundary/refusal.ts';
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

/** Options of {@link RequestStateSecurity} other than its keys or codec. Durations are in seconds. */
export interface RequestStatePolicyOptions {
  /** How long a token is accepted after it was sealed. Seconds, a finite number above 0. Default: 600. */
  readonly ttlSeconds?: number;
  /**
   * The service that the tokens are for: tokens that another service sealed with the same keys are refused. Default:
   * the `defaultAudience` of `protectRequestState`, or the server's name with `createProtectedMcpServer`.
   */
  readonly audience?: string;
  /**
   * Returns the principal that a state belongs to, or null for none. Must be synchronous. With null instead of a function,
   * no state is bound to a principal. Default: {@link authenticatedPrincipal}.
   */
  readonly bindPrincipal?: ((ctx: ServerContext) => string | null) | null;
  /** Ensures that each token is redeemed at most once, across all servers that share the store. Default: none. */
  readonly singleUse?: SingleUseStore;
  /**
   * What to do when a token is refused. `reject`: answer with error -32602. `re-elicit`: for an expired token or an
   * unknown key, run the handler as on the first round, without `requestState` and `inputResponses`; answer with the error
   * otherwise. `re-elicit-any`: run the handler whatever the reason, which fails the official tampered-state scenario by
   * design. With all three, input responses without a `requestState` reach the handler: use input responses only
   * together with a state. Default: `reject`.
   */
  readonly onInvalid?: OnInvalid;
  /** Maximum length of a token to seal. Characters, 256 to 262 144. Default: 65 536. */
  readonly maxTokenLength?: number;
  /**
   * Whether to refuse every state of a request that has no access token, or whose token has no subject or an empty one.
   * Such a state would be bound at most to the OAuth client, which all users of an application share.
   * Emits one process warning, code `SEALRING_NO_SUBJECT`. Requires the default `bindPrincipal`; for a server without
   * users, set `bindPrincipal: null` instead. Default: false.
   */
  readonly requireSubject?: boolean;
  /**
   * How far in the future a token may have been sealed, by this server's clock: the tolerance for clock differences
   * between servers. The ring has a separate tolerance, `clockSkewSeconds`. Seconds, 0 to 3 600. Default: 60.
   */
  readonly futureSkewSeconds?: number;
  /** Source of time. Default: the system clock. */
  readonly clock?: Clock;
  /** Called exactly once per refusal, synchronously. An error that it throws is reported to the server's `onerror`. */
  readonly onReject?: (event: RejectEvent) => void;
}

/** Options of {@link RequestStateSecurity}: the policy, and exactly one of `keys` and `codec`. */
export type RequestStateSecurityOptions = RequestStatePolicyOptions &
  (
    | {
        /** Secrets of at least 32 bytes for the codec of the MCP Python SDK: the first one seals, all of them unseal. */
        readonly keys: readonly (Uint8Array | string)[];
        readonly codec?: undefined;
      }
    | {
        /** A codec, such as one made by `createKmsCodec`. */
        readonly codec: RequestStateCodec;
        readonly keys?: undefined;
      }
  );

/**
 * The immutable policy for protecting `requestState`: codec, lifetime, principal, audience. Make one per process,
 * outside the factory of `createMcpHandler`, which runs once per HTTP request. A policy that protects no server within
 * a minute emits one process warning, code `SEALRING_UNATTACHED`.
 *
 * It enforces the rules of `RequestStateSecurity` of the MCP Python SDK 2.3.0, with the same token format.
 *
 * @example
 * ```ts
 * const security = new RequestStateSecurity({ codec, ttlSeconds: 600, requireSubject: true });
 * ```
 */
export class RequestStateSecurity {
  /**
   * @throws {TypeError} for an unknown option or one of the wrong type, and if both or neither of `keys` and `codec`
   *   are given.
   * @throws {RangeError} for a value out of range, a `ttlSeconds` longer than the codec's `tokenLifetimeSeconds`, or a
   *   `singleUse` store whose `clockSkewSeconds` is smaller than the codec's.
   */
  constructor(options: RequestStateSecurityOptions);
  /** @internal */
  constructor(checked: CheckedPolicy);
  constructor(given: RequestStateSecurityOptions | CheckedPolicy) {
    rememberPolicy(this, given instanceof CheckedPolicy ? given.policy : readPolicy(given));
    Object.freeze(this);
  }

  /**
   * Creates a policy with a new random key that exists in this process only: tokens of another process, or from before
   * a restart, are refused. Emits one process warning, code `SEALRING_EPHEMERAL`.
   *
   * @param options - `ttlSeconds` (default 600) and `audience`, as in the constructor.
   * @throws {TypeError} or {RangeError} as the constructor does.
   */
  static ephemeral(options: { readonly ttlSeconds?: number; readonly audience?: string } = {}): RequestStateSecurity {
    knownOptions(`${OWNER}.ephemeral`, options, ['ttlSeconds', 'audience']);
    const security = new RequestStateSecurity({ ...options, keys: [randomBytes(32)] });
    warnEphemeral();
    return security;
  }
}

function readPolicy(options: unknown): SecurityPolicy {
  const given = knownOptions(OWNER, options, [
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
  ]);
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
  if (bindPrincipal !== null && !isFunction(bindPrincipal)) {
    throw option.wrongType(OWNER, 'bindPrincipal', 'a function or null', bindPrincipal);
  }
  const needsSubject = option.flag(OWNER, 'requireSubject', requireSubject);
  if (needsSubject && bindPrincipal !== authenticatedPrincipal) {
    throw option.typeError(`${OWNER}: requireSubject: true requires the default bindPrincipal`);
  }
  const policy: SecurityPolicy & BoundaryPolicy = {
    codec,
    ttlSeconds,
    audience: audience === undefined ? undefined : option.text(OWNER, 'audience', audience),
    bindPrincipal,
    onReject: callback(OWNER, 'onReject', given['onReject']),
    singleUse: readStore(given['singleUse'], codec),
    onInvalid: option.oneOf(OWNER, 'onInvalid', onInvalid, ['reject', 're-elicit', 're-elicit-any']),
    maxTokenLength: readMaxTokenLength(OWNER, given['maxTokenLength']),
    requireSubject: needsSubject,
    futureSkewSeconds: option.numberWithin(OWNER, 'futureSkewSeconds', futureSkewSeconds, 0, 3600),
    nowSeconds: readClock(OWNER, given['clock']),
    boundaryFor: (name) => new RequestStateBoundary(policy, name),
  };
  return policy;
}

function readTtl(ttlSeconds: unknown): number {
  if (typeof ttlSeconds !== 'number') throw option.wrongType(OWNER, 'ttlSeconds', 'a number', ttlSeconds);
  if (!(Number.isFinite(ttlSeconds) && ttlSeconds > 0)) {
    throw option.rangeError(`${OWNER}: ttlSeconds must be a finite number above 0, got ${ttlSeconds}`);
  }
  return ttlSeconds;
}

function codecOf({ keys, codec: given }: Record<string, unknown>, ttlSeconds: number): PreparedCodec {
  if ((keys === undefined) === (given === undefined)) {
    throw option.typeError(
      `${OWNER}: exactly one of keys and codec is required, got ${keys === undefined ? 'neither' : 'both'}`,
    );
  }
  if (keys !== undefined) {
    if (!isKeyList(keys)) throw option.wrongType(OWNER, 'keys', 'an array', keys);
    return new AesGcmRequestStateCodec(keys);
  }
  const codec = readCodec(OWNER, 'codec', given);
  checkLifetime(OWNER, codec, ttlSeconds);
  return codec;
}

// The constructor of the codec checks and copies each key.
function isKeyList(value: unknown): value is readonly (Uint8Array | string)[] {
  return Array.isArray(value);
}

function readStore(value: unknown, codec: object): SingleUseStore | undefined {
  if (value === undefined) return undefined;
  if (!isStore(value))
    throw option.typeError(`${OWNER}: singleUse must have a claim method, got ${option.show(value)}`);
  checkMargin(value, codec);
  return value;
}

/**
 * Checks that the store remembers expired tokens for at least the codec's clock skew. With a smaller margin, a server
 * whose clock is behind could redeem a token a second time.
 */
function checkMargin(store: SingleUseStore, codec: object): void {
  const margin: unknown = store.clockSkewSeconds;
  const skew: unknown = Reflect.get(codec, 'clockSkewSeconds');
  if (margin === undefined) return;
  if (typeof margin !== 'number') throw option.wrongType(OWNER, 'singleUse.clockSkewSeconds', 'a number', margin);
  if (typeof skew === 'number' && !(margin >= skew)) {
    throw option.rangeError(
      `${OWNER}: singleUse.clockSkewSeconds ${margin} must be at least ${skew}, the clockSkewSeconds of the codec`,
    );
  }
}

function isStore(value: unknown): value is SingleUseStore {
  return hasMethods(value, ['claim']);
}
