import type { Implementation, McpServer } from '@modelcontextprotocol/server';
import { option } from '@sealring/core/adapter';
import { knownOptions } from '../shared/option-checks.ts';
import { protectRequestState } from './attach.ts';
import type { RequestStateSecurity } from './security.ts';

const OWNER = 'createProtectedMcpServer';
const PLACEHOLDER = 'sealring-placeholder';
const unused = (): never => {
  throw new Error('removed');
};

/** Options of {@link createProtectedMcpServer}. */
export interface ProtectedMcpServerOptions<T extends McpServer = McpServer> {
  /** The class `McpServer` of the SDK, or a subclass. It is passed in because this package imports only types of the SDK. */
  readonly McpServer: new (
    serverInfo: Implementation,
    options?: ConstructorParameters<typeof McpServer>[1],
  ) => T;
  /** Name and version of the server. Without an audience in the policy, the name is the audience. */
  readonly serverInfo: Implementation;
  /** The policy that protects the server. */
  readonly security: RequestStateSecurity;
  /** Options of the class. Their `capabilities` are registered after the server is protected. Default: none. */
  readonly serverOptions?: NonNullable<ConstructorParameters<typeof McpServer>[1]>;
}

/**
 * Creates an `McpServer` that is protected before its first handler is registered.
 *
 * @throws {TypeError} for an unknown option, for an option of the wrong type, and for
 *   `serverOptions.requestState.verify`, which would run first and get the sealed token.
 * @throws {RangeError} if `serverInfo.name` is empty.
 *
 * @example
 * ```ts
 * const security = new RequestStateSecurity({ codec, requireSubject: true });
 * const handler = createMcpHandler(() => {
 *   const serverInfo = { name: 'refund-desk', version: '1.0.0' };
 *   const server = createProtectedMcpServer({ McpServer, serverInfo, security });
 *   server.registerTool('refund', config, refund);
 *   return server;
 * });
 * ```
 */
export function createProtectedMcpServer<T extends McpServer>(options: ProtectedMcpServerOptions<T>): T {
  knownOptions(OWNER, options, ['McpServer', 'serverInfo', 'security', 'serverOptions']);
  const { McpServer: ServerClass, serverInfo, security, serverOptions } = options;
  if (typeof ServerClass !== 'function') throw option.wrongType(OWNER, 'McpServer', 'a class of the SDK', ServerClass);
  const name = option.text(OWNER, 'serverInfo.name', Reflect.get(Object(serverInfo), 'name'));
  // All servers without a name would have the same audience.
  if (name === '') throw option.rangeError(`${OWNER}: serverInfo.name must not be empty`);
  if (serverOptions?.requestState?.verify !== undefined) {
    throw option.typeError(
      `${OWNER}: serverOptions.requestState.verify must be left out: it would get the sealed token`,
    );
  }
  // The constructor registers handlers for these three capabilities, before the server can be protected.
  const { tools, resources, prompts, ...others } = serverOptions?.capabilities ?? {};
  const server = new ServerClass(serverInfo, { ...serverOptions, capabilities: others });
  protectRequestState(server, security, { defaultAudience: name });
  server.server.registerCapabilities({
    ...(tools && { tools }),
    ...(resources && { resources }),
    ...(prompts && { prompts }),
  });
  // Registering and removing an entry is the public way to register the handlers while the list of entries is empty.
  if (tools !== undefined) server.registerTool(PLACEHOLDER, {}, unused).remove();
  if (prompts !== undefined) server.registerPrompt(PLACEHOLDER, {}, unused).remove();
  if (resources !== undefined) server.registerResource(PLACEHOLDER, PLACEHOLDER, {}, unused).remove();
  return server;
}
