import type { AuthInfo } from '@modelcontextprotocol/server';
import { option } from '@sealring/core/adapter';
import { policyOf, resolveAudience, type SecurityPolicy } from '../server/policy.ts';
import { authenticatedPrincipal } from '../server/principal.ts';
import { accessTokenPrincipal, refuseNoSubject } from '../server/principal-binder.ts';
import type { RequestStateSecurity } from '../server/security.ts';
import { StateGuard } from '../server/state-guard.ts';
import { noteAttached } from '../server/unattached-warning.ts';
import { callback, isFunction, knownOptions } from '../shared/option-checks.ts';
import { ownMember } from '../shared/own-member.ts';
import { GuardedFetch } from './guarded-fetch.ts';

const OWNER = 'protectFetch';
// The limit of the SDK.
const DEFAULT_MAX_REQUEST_BYTES = 4_194_304;
const DEFAULT_MAX_RESPONSE_BYTES = 67_108_864;
const LARGEST_MAX_BYTES = 1_073_741_824;

/** A handler of web-standard requests, with any further arguments that its runtime passes. */
export type FetchHandler<Rest extends readonly unknown[] = readonly []> = (
  request: Request,
  ...rest: Rest
) => Response | Promise<Response>;

/** The user of a request: the `AuthInfo` of the verified access token, a string that names the user, or null. */
export type FetchPrincipal = AuthInfo | string | null | undefined;

/** Options of {@link protectFetch}. */
export interface ProtectFetchOptions<Rest extends readonly unknown[] = readonly []> {
  /** The audience: required if the policy has none, ignored otherwise. Null: tokens have no audience. */
  readonly audience?: string | null;
  /**
   * Returns who sent the request. Verify the access token here, or use one that has already been verified: an
   * unverified token can name any user. An `AuthInfo` gives the same principal as {@link authenticatedPrincipal}, so
   * servers with `protectRequestState` accept the states as well. Called only for requests that carry a state, or whose
   * result carries one. With null instead of a function, no state is bound to a principal. Required unless the policy's
   * `bindPrincipal` is null.
   */
  readonly bindPrincipal?: ((request: Request, ...rest: Rest) => FetchPrincipal | Promise<FetchPrincipal>) | null;
  /**
   * Maximum size of the JSON body of a request, on every route. Bytes, up to 1 073 741 824. Default: 4 194 304, as in
   * the SDK.
   */
  readonly maxRequestBytes?: number;
  /** Maximum size of a JSON response, and of a server-sent event. Bytes, up to 1 073 741 824. Default: 67 108 864. */
  readonly maxResponseBytes?: number;
  /**
   * Called for each failure and refusal, like the `onerror` of an SDK server. The error contains no part of a token or
   * state.
   */
  readonly onerror?: (error: Error) => void;
}

/**
 * Protects an MCP server behind a web-standard handler, whichever framework it uses: seals every `requestState` in the
 * responses of `handler` (JSON and server-sent events), and verifies every `requestState` in requests before `handler`
 * gets them. The handler reads and returns plaintext. Refusals are the same as with `protectRequestState`.
 *
 * Requests that cannot be JSON-RPC reach the handler unchanged. A request that another parser could read differently is
 * answered with status 400. Pass each request to the returned function before its
 * body is read.
 *
 * @throws {TypeError} for an invalid or unknown option, and if the audience or `bindPrincipal` is missing.
 * @throws {RangeError} for a limit out of range.
 *
 * @example
 * ```ts
 * export default {
 *   fetch: protectFetch(handler, security, {
 *     audience: 'refund-desk',
 *     bindPrincipal: (request) => verifier.verifyAccessToken(bearerToken(request)),
 *   }),
 * };
 * ```
 */
export function protectFetch<Rest extends readonly unknown[] = readonly []>(
  handler: FetchHandler<Rest>,
  security: RequestStateSecurity,
  options: ProtectFetchOptions<Rest> = {},
): (request: Request, ...rest: Rest) => Promise<Response> {
  if (!isFunction(handler)) throw option.wrongType(OWNER, 'handler', 'a function', handler);
  const policy = policyOf(security);
  const known = ['audience', 'bindPrincipal', 'maxRequestBytes', 'maxResponseBytes', 'onerror'];
  const {
    audience,
    maxRequestBytes = DEFAULT_MAX_REQUEST_BYTES,
    maxResponseBytes = DEFAULT_MAX_RESPONSE_BYTES,
    onerror,
  } = knownOptions(OWNER, options, known);
  const boundary = policy.boundaryFor(resolveAudience(OWNER, 'audience', policy, audience));
  const report = callback(OWNER, 'onerror', onerror);
  const guarded = new GuardedFetch(new StateGuard(policy, boundary, (error) => report?.(error)), {
    maxRequestBytes: option.integerWithin(OWNER, 'maxRequestBytes', maxRequestBytes, 1, LARGEST_MAX_BYTES),
    maxResponseBytes: option.integerWithin(OWNER, 'maxResponseBytes', maxResponseBytes, 1, LARGEST_MAX_BYTES),
  });
  const bindPrincipal = principalOption(policy, options.bindPrincipal);
  noteAttached(security);
  return async (request, ...rest) => {
    refuseParsed(request, rest[0]);
    return await guarded.serve(request, {
      principal: async () => checkedPrincipal(policy, await bindPrincipal?.(request, ...rest)),
      handle: async (inner) => await handler(inner, ...rest),
    });
  };
}

/** @throws {TypeError} for a body that was already read, because the body that the handler gets was not verified. */
function refuseParsed(request: Request, options: unknown): void {
  if (request.bodyUsed || ownMember(options, 'parsedBody') !== undefined) {
    throw option.typeError(`${OWNER}: the body of the request has already been read; pass the request as it arrived`);
  }
}

function principalOption<Rest extends readonly unknown[]>(
  policy: SecurityPolicy,
  bindPrincipal: ProtectFetchOptions<Rest>['bindPrincipal'],
): NonNullable<ProtectFetchOptions<Rest>['bindPrincipal']> | undefined {
  if (isFunction(bindPrincipal)) return bindPrincipal;
  if (bindPrincipal === undefined && policy.bindPrincipal !== null) {
    throw option.typeError(`${OWNER}: bindPrincipal is required; pass null for states that belong to no user`);
  }
  if ((bindPrincipal ?? null) !== null)
    throw option.wrongType(OWNER, 'bindPrincipal', 'a function or null', bindPrincipal);
  if (policy.requireSubject)
    throw option.typeError(`${OWNER}: requireSubject: true requires bindPrincipal to be a function`);
  return undefined;
}

/** @throws {TypeError} for a value that is not a principal, and for a missing one if `requireSubject` is set. */
function checkedPrincipal(policy: SecurityPolicy, value: unknown): string | null {
  if (value === undefined || value === null || value === '') refuseNoSubject(policy);
  if (value === undefined || value === null) return null;
  if (typeof value === 'string') return value;
  if (!isAuthInfo(value) || (policy.bindPrincipal !== null && policy.bindPrincipal !== authenticatedPrincipal)) {
    throw new TypeError('bindPrincipal did not return a principal');
  }
  return accessTokenPrincipal(policy, { http: { authInfo: value } });
}

function isAuthInfo(value: unknown): value is AuthInfo {
  return typeof ownMember(value, 'clientId') === 'string';
}
