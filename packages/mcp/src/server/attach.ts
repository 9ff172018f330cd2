import type { McpServer, Server, ServerContext } from '@modelcontextprotocol/server';
import { option } from '@sealring/core/adapter';
import { Refusal } from '../boundary/refusal.ts';
import {
  CARRIER_METHODS,
  type CarrierMethod,
  isCarrierMethod,
  type RequestIdentity,
} from '../boundary/request-identity.ts';
import { hasMethods, knownOptions } from '../shared/option-checks.ts';
import { policyOf, resolveAudience } from './policy.ts';
import type { RequestStateSecurity } from './security.ts';
import { ServerGuard } from './server-guard.ts';
import { carriesState, type Watcher, watch } from './tripwire.ts';
import { noteAttached } from './unattached-warning.ts';

const OWNER = 'protectRequestState';

/** Options of {@link protectRequestState}. */
export interface ProtectRequestStateOptions {
  /** The audience: required if the policy has none, ignored otherwise. Null: tokens have no audience. */
  readonly defaultAudience?: string | null;
  /**
   * Whether to protect handlers that are already registered, for a server that a framework constructs. Replaces them in
   * the SDK's private list of handlers, and throws if the SDK has no such list. Default: false; a server that already has
   * a handler for one of the methods is then rejected.
   */
  readonly adopt?: boolean;
}

type Handler = (request: unknown, ctx: ServerContext) => unknown;

/** The members of the SDK's `Server` that are used, with unchecked parameters. */
interface AttachableServer {
  [PROTECTED]?: true;
  onerror?: (error: Error) => void;
  fallbackRequestHandler?: unknown;
  readonly transport?: unknown;
  readonly _requestHandlers?: unknown;
  setRequestHandler(method: unknown, schemasOrHandler: unknown, maybeHandler?: unknown): void;
  assertCanSetRequestHandler(method: string): void;
  getNegotiatedProtocolVersion(): string | undefined;
  connect(transport: unknown): Promise<void>;
}

// The mark is a property of the server, because a WeakMap costs twenty times as much for objects that live for one
// request.
const PROTECTED = Symbol('sealring.protected');

/**
 * Seals every `requestState` that `server` sends and verifies every `requestState` that it receives: a token is accepted
 * only for the request and the principal that it was sealed for. Handlers read `ctx.mcpReq.requestState()` and return
 * `requestState` in plaintext. Applies to `tools/call`, `prompts/get` and `resources/read` only.
 *
 * Call it before you register anything, or with `adopt: true` before you connect the server. An `McpServer` with
 * `capabilities: { tools: {} }` registers handlers in its constructor: use {@link createProtectedMcpServer} for it.
 * Your own `ServerOptions.requestState.verify` runs first and gets the sealed token; it must accept the token and
 * return nothing. For an adopted handler, the hook runs second and gets the plaintext state.
 *
 * @returns `server`, the same object.
 * @throws {TypeError} for a value that is not a server of the SDK; for a server that is connected, is already protected
 *   or, without `adopt`, has a handler for one of the methods; for an unknown option; and if neither the policy nor
 *   `defaultAudience` specifies an audience.
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
  const { defaultAudience, adopt = false } = knownOptions(OWNER, options, ['defaultAudience', 'adopt']);
  const audience = resolveAudience(OWNER, 'defaultAudience', policy, defaultAudience);
  const registered = handlersToAdopt(target, option.flag(OWNER, 'adopt', adopt));
  const interposed = new Interposed(target, new ServerGuard(target, policy, policy.boundaryFor(audience)));
  if (registered !== undefined) interposed.adopt(registered);
  target[PROTECTED] = true;
  noteAttached(security);
  return server;
}

/** Methods of `Server` in SDK 1.x and later; `getNegotiatedProtocolVersion` exists only in 2.0 and later. */
const METHODS_OF_SDK_1 = ['setRequestHandler', 'assertCanSetRequestHandler', 'connect'];
const SERVER_METHODS = [...METHODS_OF_SDK_1, 'getNegotiatedProtocolVersion'];

// Checks the shape of the server, because `instanceof` fails across the SDK's ESM and CJS builds.
function attachable(server: unknown): AttachableServer {
  const inner: unknown = hasMethods(server, ['registerTool', 'connect'])
    ? Reflect.get(Object(server), 'server')
    : server;
  if (isAttachable(inner)) return inner;
  if (hasMethods(inner, METHODS_OF_SDK_1)) {
    throw option.typeError(
      `${OWNER}: server belongs to the MCP SDK 1.x (@modelcontextprotocol/sdk), which has no requestState; use @modelcontextprotocol/server 2.0 or later`,
    );
  }
  throw option.typeError(
    `${OWNER}: server must be an McpServer or Server of the MCP SDK 2.0 or later, got ${option.show(server)}`,
  );
}

function isAttachable(value: unknown): value is AttachableServer {
  return hasMethods(value, SERVER_METHODS);
}

/** The SDK's own list of handlers, by method. */
type Registered = Map<unknown, unknown>;

/**
 * Throws, unless `adopt` is set, if a handler is already registered: it would stay unprotected, and nothing else would
 * show that.
 * @returns with `adopt`, the SDK's list of handlers if it contains such a handler; otherwise undefined.
 */
function handlersToAdopt(server: AttachableServer, adopt: boolean): Registered | undefined {
  if (server[PROTECTED] === true) throw option.typeError(`${OWNER}: this server is already protected`);
  if (server.transport !== undefined)
    throw option.typeError(`${OWNER}: this server is already connected; protect it before you connect it`);
  const methods = CARRIER_METHODS.filter((method) => hasHandler(server, method));
  if (methods.length === 0) return undefined;
  if (!adopt) {
    throw option.typeError(
      `${OWNER}: this server already has a handler for ${methods[0]}; protect it before you register handlers, or set adopt: true`,
    );
  }
  const { _requestHandlers: registered } = server;
  if (!(registered instanceof Map && methods.every((one) => isHandler(registered.get(one))))) {
    throw option.typeError(`${OWNER}: adopt: true does not support this version of the SDK; use protectFetch`);
  }
  return registered;
}

function hasHandler(server: AttachableServer, method: CarrierMethod): boolean {
  try {
    server.assertCanSetRequestHandler(method);
    return false;
  } catch {
    return true;
  }
}

/** Wraps the methods through which handlers and messages reach one server. */
class Interposed implements Watcher {
  readonly #server: AttachableServer;
  readonly #guard: ServerGuard;
  readonly #setRequestHandler: AttachableServer['setRequestHandler'];
  /** The methods whose handler was registered through this object. */
  readonly #methods = new Set<CarrierMethod>();

  constructor(server: AttachableServer, guard: ServerGuard) {
    this.#server = server;
    this.#guard = guard;
    this.#setRequestHandler = server.setRequestHandler.bind(server);
    server.setRequestHandler = (...given) => this.#register(...given);
    const connect = server.connect.bind(server);
    server.connect = async (transport) => {
      this.#guardFallback();
      watch(transport, this);
      await connect(transport);
    };
    this.#guardFallback();
  }

  /**
   * Guards handlers in the form in which the SDK stored them, including the SDK's checks and the rounds that the SDK runs
   * in process for clients of a 2025 revision.
   */
  adopt(registered: Registered): void {
    for (const method of CARRIER_METHODS) {
      const handler = registered.get(method);
      if (!isHandler(handler)) continue;
      registered.set(method, this.#unparsed(method, handler, false));
      this.#methods.add(method);
    }
  }

  mayEnter(message: unknown): boolean {
    const isFallbackGuarded = this.#guardFallback();
    const method: unknown = Reflect.get(Object(message), 'method');
    // Other methods ignore a `requestState`, as in the MCP Python SDK.
    if (!isCarrierMethod(method) || !carriesState(message)) return true;
    if (this.#methods.has(method) || (isFallbackGuarded && !hasHandler(this.#server, method))) return true;
    this.#guard.reject('inbound', method, new Refusal('unverified requestState'));
    return false;
  }

  tripped(): void {
    this.#guard.reject('outbound', 'unknown', new Refusal('unsealed requestState'));
  }

  #register(method: unknown, schemasOrHandler: unknown, maybeHandler: unknown): void {
    if (!isCarrierMethod(method)) return this.#setRequestHandler(method, schemasOrHandler, maybeHandler);
    const guard = this.#guard;
    if (isHandler(schemasOrHandler)) {
      this.#setRequestHandler(method, this.#unparsed(method, schemasOrHandler, true), maybeHandler);
    } else if (isHandler(maybeHandler)) {
      const handler = ({ identity, parsed }: Identified, ctx: ServerContext): Promise<unknown> =>
        guard.run({ method, identity, ctx, isShimmed: true }, maybeHandler, parsed);
      const schemas = identifying(schemasOrHandler, (params) => guard.identify(method, params));
      this.#setRequestHandler(method, schemas, handler);
    } else this.#setRequestHandler(method, schemasOrHandler, maybeHandler);
    this.#methods.add(method);
  }

  /** Guards a handler that gets the request as it was sent. */
  #unparsed(
    method: CarrierMethod,
    handler: Handler,
    isShimmed: boolean,
  ): (...given: Parameters<Handler>) => Promise<unknown> {
    const guard = this.#guard;
    return (request, ctx) => {
      const identity = guard.identify(method, Reflect.get(Object(request), 'params'));
      return guard.run({ method, identity, ctx, isShimmed }, handler, request);
    };
  }

  /**
   * Wraps the fallback handler, which the SDK calls for a method without a handler. A fallback that is assigned later
   * is wrapped at the next message, because a setter on the server would slow down every access to the server.
   * @returns false if there is a fallback that could not be wrapped.
   */
  #guardFallback(): boolean {
    const handler = this.#server.fallbackRequestHandler;
    // Without this, code that reads the property and assigns it again would seal every state twice.
    if (!isHandler(handler) || guardedFallbacks.has(handler)) return true;
    const guarded = async (request: unknown, ctx: ServerContext): Promise<unknown> => {
      const method: unknown = Reflect.get(Object(request), 'method');
      return isCarrierMethod(method) ? this.#unparsed(method, handler, false)(request, ctx) : handler(request, ctx);
    };
    guardedFallbacks.add(guarded);
    return Reflect.set(this.#server, 'fallbackRequestHandler', guarded);
  }
}

const guardedFallbacks = new WeakSet<Handler>();

interface Identified {
  readonly identity: RequestIdentity | Refusal;
  readonly parsed: unknown;
}

/**
 * Returns schemas that read the arguments before validation, which can change them: a token is bound to the arguments
 * as they were sent.
 */
function identifying(schemas: unknown, identify: (params: unknown) => Identified['identity']): unknown {
  const params: unknown = Reflect.get(Object(schemas), 'params');
  const standard: unknown = Reflect.get(Object(params), '~standard');
  if (!isStandard(standard)) return schemas;
  const validate = async (raw: unknown): Promise<unknown> => {
    const identity = identify(raw);
    const outcome = await standard.validate(raw);
    return 'value' in outcome && !outcome.issues?.length ? { value: { identity, parsed: outcome.value } } : outcome;
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

function isHandler(value: unknown): value is Handler {
  return typeof value === 'function';
}
