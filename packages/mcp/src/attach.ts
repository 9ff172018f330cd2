import type { McpServer, Server, ServerContext } from '@modelcontextprotocol/server';
import { type Boundary, RequestStateBoundary } from './boundary.ts';
import { tellRefused } from './events.ts';
import { HandlerGuard } from './guarded-handler.ts';
import { McpdBoundary } from './mcpd-boundary.ts';
import { hasMethods, knownOptions, show } from './option-checks.ts';
import { policyOf, type SecurityPolicy } from './policy.ts';
import { principalBinder } from './principal-binder.ts';
import { errorName, type RejectEvent } from './refusal.ts';
import { CARRIER_METHODS, type CarrierMethod, isCarrierMethod } from './request-identity.ts';
import type { RequestStateSecurity } from './security.ts';
import { Tripwire } from './tripwire.ts';

const OWNER = 'protectRequestState';
/** The first protocol revision with `input_required` results. Revisions are dates and compare as text. */
const FIRST_MODERN_REVISION = '2026-07-28';

/** Options of {@link protectRequestState}. */
export interface ProtectRequestStateOptions {
  /** The audience where the policy names none; null for none on purpose. Default: none, which is an error then. */
  readonly defaultAudience?: string | null;
}

type Handler = (request: unknown, ctx: ServerContext) => unknown;

/** What of the SDK's `Server` is used, with parameters as they are before anything is checked. */
interface AttachableServer {
  onerror?: (error: Error) => void;
  fallbackRequestHandler?: unknown;
  readonly transport?: unknown;
  setRequestHandler(method: unknown, schemasOrHandler: unknown, maybeHandler?: unknown): void;
  assertCanSetRequestHandler(method: string): void;
  getNegotiatedProtocolVersion(): string | undefined;
  connect(transport: unknown): Promise<void>;
}

const protectedServers = new WeakSet<object>();

/**
 * Makes every `requestState` that leaves `server` a sealed token, and every one that comes back either the plaintext
 * sealed for this very request and principal, or a refusal. Handlers read `ctx.mcpReq.requestState()` and return
 * `requestState` in plaintext. Acts on `tools/call`, `prompts/get` and `resources/read` only.
 *
 * Call it before anything is registered. An `McpServer` made with `capabilities: { tools: {} }` registers at once: use
 * {@link createProtectedMcpServer} for that. A `ServerOptions.requestState.verify` of your own runs first and is given
 * the sealed token; it must accept it and return nothing.
 *
 * @returns `server`, the same object.
 * @throws {TypeError} for anything that is no server of the SDK, one that is connected, already protected, or has a
 *   handler for one of the methods; for an unknown option, and when neither the policy nor `defaultAudience` says
 *   whom the tokens are for.
 *
 * @example
 * ```ts
 * const server = protectRequestState(new McpServer(info), security, { defaultAudience: 'refund-desk' });
 * server.registerTool('refund', config, handler);
 * ```
 */
export function protectRequestState<T extends McpServer | Server>(
  server: T,
  security: RequestStateSecurity,
  options: ProtectRequestStateOptions = {},
): T {
  const target = attachable(server);
  const policy = policyOf(security);
  const audience = resolveAudience(policy, options);
  refuseLate(target);
  interpose(target, policy, audience);
  protectedServers.add(target);
  return server;
}

// By shape: `instanceof` fails across the SDK's ESM and CJS builds.
function attachable(server: unknown): AttachableServer {
  const inner: unknown = hasMethods(server, ['registerTool', 'connect'])
    ? Reflect.get(Object(server), 'server')
    : server;
  if (!isAttachable(inner)) {
    throw new TypeError(
      `${OWNER}: server must be an McpServer or Server of the MCP SDK 2.4 or later, got ${show(server)}`,
    );
  }
  return inner;
}

function isAttachable(value: unknown): value is AttachableServer {
  return hasMethods(value, [
    'setRequestHandler',
    'assertCanSetRequestHandler',
    'getNegotiatedProtocolVersion',
    'connect',
  ]);
}

function resolveAudience(policy: SecurityPolicy, options: unknown): string | null {
  const { defaultAudience } = knownOptions(OWNER, options, ['defaultAudience']);
  if (defaultAudience !== undefined && defaultAudience !== null && typeof defaultAudience !== 'string') {
    throw new TypeError(`${OWNER}: defaultAudience must be a string or null, got ${show(defaultAudience)}`);
  }
  // Its tokens name none.
  if (policy.wire === 'mcp.d') return null;
  const audience = policy.audience ?? defaultAudience;
  if (audience === undefined) {
    throw new TypeError(`${OWNER}: name the audience in the policy or in defaultAudience; null is none on purpose`);
  }
  return audience;
}

/** A handler that is already there would never be wrapped: loud, because nothing else would ever show it. */
function refuseLate(server: AttachableServer): void {
  if (protectedServers.has(server)) throw new TypeError(`${OWNER}: this server is protected already`);
  if (server.transport !== undefined) throw new TypeError(`${OWNER}: too late, this server is connected`);
  for (const method of CARRIER_METHODS) {
    try {
      server.assertCanSetRequestHandler(method);
    } catch {
      throw new TypeError(`${OWNER}: too late, this server has a handler for ${method}; protect it before registering`);
    }
  }
}

function boundaryOf(policy: SecurityPolicy, audience: string | null): Boundary {
  return policy.wire === 'mcp.d' ? new McpdBoundary(policy) : new RequestStateBoundary(policy, audience);
}

function interpose(server: AttachableServer, policy: SecurityPolicy, audience: string | null): void {
  const report = (message: string): void => quietly(() => server.onerror?.(new Error(`requestState: ${message}`)));
  const rejected = (event: RejectEvent, source?: string): void => {
    const detail = source === undefined ? '' : ` (${source})`;
    report(`refused ${event.direction} on ${event.method}: ${event.reason}${detail}`);
    tellRefused(event);
    quietly(
      () => policy.onReject?.(Object.freeze(event)),
      (error) => report(`onReject threw (${errorName(error)})`),
    );
  };
  const tripwire = new Tripwire(() => {
    rejected({ direction: 'outbound', method: 'unknown', reason: 'unsealed requestState' });
  });
  const guard = new HandlerGuard(boundaryOf(policy, audience), policy.onInvalid, {
    rejected,
    warn: report,
    sealed: (token) => tripwire.expect(token),
  });
  const bind = principalBinder(policy);
  const run = (method: CarrierMethod, params: unknown, ctx: ServerContext, shimmed: boolean, handle: Handle) => {
    const modern = isModern(server.getNegotiatedProtocolVersion());
    const replayed = shimmed && !modern;
    return guard.run({ method, params, ctx, replayed, modern, bindPrincipal: () => bind(ctx), handle });
  };

  interposeHandlers(server, run);
  interposeFallback(server, run);
  const connect = server.connect.bind(server);
  server.connect = async (transport) => {
    tripwire.watch(transport);
    await connect(transport);
  };
}

type Handle = (ctx: ServerContext) => unknown;
type Run = (
  method: CarrierMethod,
  params: unknown,
  ctx: ServerContext,
  shimmed: boolean,
  handle: Handle,
) => Promise<unknown>;

function interposeHandlers(server: AttachableServer, run: Run): void {
  const original = server.setRequestHandler.bind(server);
  server.setRequestHandler = (method, schemasOrHandler, maybeHandler) => {
    if (!isCarrierMethod(method)) {
      original(method, schemasOrHandler, maybeHandler);
    } else if (isHandler(schemasOrHandler)) {
      original(method, (request: unknown, ctx: ServerContext) =>
        run(method, paramsOf(request), ctx, true, (inner) => schemasOrHandler(request, inner)),
      );
    } else if (isHandler(maybeHandler)) {
      original(method, keepingRaw(schemasOrHandler), (params: RawAndParsed, ctx: ServerContext) =>
        run(method, params.raw, ctx, true, (inner) => maybeHandler(params.parsed, inner)),
      );
    } else {
      original(method, schemasOrHandler, maybeHandler);
    }
  };
}

interface RawAndParsed {
  readonly raw: unknown;
  readonly parsed: unknown;
}

/** The caller's schema may coerce; a token is bound to what was sent, so both are handed on, in the call's closure. */
function keepingRaw(schemas: unknown): unknown {
  const params: unknown = Reflect.get(Object(schemas), 'params');
  const standard: unknown = Reflect.get(Object(params), '~standard');
  if (!isStandard(standard)) return schemas;
  const validate = async (raw: unknown): Promise<unknown> => {
    const outcome = await standard.validate(raw);
    return 'value' in outcome && !outcome.issues?.length ? { value: { raw, parsed: outcome.value } } : outcome;
  };
  return { ...Object(schemas), params: { '~standard': { ...standard, validate } } };
}

interface Standard {
  validate(value: unknown): StandardOutcome | Promise<StandardOutcome>;
}
type StandardOutcome = { readonly value?: unknown; readonly issues?: readonly unknown[] };

function isStandard(value: unknown): value is Standard {
  return hasMethods(value, ['validate']);
}

/** The fallback runs outside the SDK's own checks of the three methods, so it is guarded whenever it is assigned. */
function interposeFallback(server: AttachableServer, run: Run): void {
  // Whoever reads it and puts it back would otherwise have every state sealed twice.
  let ours: WeakSet<Handler> | undefined;
  const guarded = (handler: unknown): unknown => {
    if (!isHandler(handler) || ours?.has(handler) === true) return handler;
    const guard = async (request: unknown, ctx: ServerContext): Promise<unknown> => {
      const method: unknown = Reflect.get(Object(request), 'method');
      if (!isCarrierMethod(method)) return handler(request, ctx);
      return run(method, paramsOf(request), ctx, false, (inner) => handler(request, inner));
    };
    (ours ??= new WeakSet()).add(guard);
    return guard;
  };
  const fallback: Fallback = { guarded, installed: guarded(server.fallbackRequestHandler) };
  Object.defineProperty(server, FALLBACK, { value: fallback });
  Object.defineProperty(server, 'fallbackRequestHandler', FALLBACK_ACCESSORS);
}

interface Fallback {
  guarded(handler: unknown): unknown;
  installed: unknown;
}

const FALLBACK = Symbol('sealring fallback handler');
// The same two functions on every server: with functions of its own each server had a shape of its own, and every access
// to one, the SDK's too, was slow. What they act on is found as any member is, through proxies and prototypes.
const FALLBACK_ACCESSORS: PropertyDescriptor = {
  configurable: true,
  enumerable: true,
  get(this: { readonly [FALLBACK]: Fallback }) {
    return this[FALLBACK].installed;
  },
  set(this: { readonly [FALLBACK]: Fallback }, handler: unknown) {
    const fallback = this[FALLBACK];
    fallback.installed = fallback.guarded(handler);
  },
};

function isHandler(value: unknown): value is Handler {
  return typeof value === 'function';
}

function paramsOf(request: unknown): unknown {
  return Reflect.get(Object(request), 'params');
}

function isModern(revision: string | undefined): boolean {
  return revision !== undefined && revision >= FIRST_MODERN_REVISION;
}

/** Runs a callback of the user's, whose failure, now or later, must not change what the client is told. */
function quietly(callback: () => unknown, failed: (error: unknown) => void = () => {}): void {
  try {
    const result = callback();
    if (result instanceof Promise) result.catch(failed);
  } catch (error) {
    failed(error);
  }
}
