import type { Implementation, McpServer, McpServerOptions } from '@modelcontextprotocol/server';
import { show } from '@sealring/core/adapter';
import { protectRequestState } from './attach.ts';
import type { RequestStateSecurity } from './security.ts';

const OWNER = 'createProtectedMcpServer';
const PLACEHOLDER = 'sealring-placeholder';

/**
 * Makes an `McpServer` that is protected from its first handler on. The class is passed in, because this package uses
 * the SDK for its types only. The audience is the policy's, or else the server's name.
 *
 * `options.capabilities` are registered after protecting: an announced but empty list still answers.
 *
 * @throws {TypeError} when `options.requestState.verify` is given too: it would run first and see the sealed token.
 * @throws {RangeError} for a server named with an empty text.
 * @throws {TypeError} and {@link RangeError} as `protectRequestState` and the class itself.
 *
 * @example
 * ```ts
 * const security = new RequestStateSecurity({ codec, requireSubject: true });
 * const handler = createMcpHandler(() => {
 *   const server = createProtectedMcpServer(McpServer, { name: 'refund-desk', version: '1.0.0' }, {}, security);
 *   server.registerTool('refund', config, refund);
 *   return server;
 * });
 * ```
 */
export function createProtectedMcpServer<T extends McpServer>(
  McpServerClass: new (info: Implementation, options?: McpServerOptions) => T,
  info: Implementation,
  options: McpServerOptions | undefined,
  security: RequestStateSecurity,
): T {
  if (typeof McpServerClass !== 'function') {
    throw new TypeError(`${OWNER}: McpServer must be the SDK's class, got ${show(McpServerClass)}`);
  }
  // Its audience would be that of every other server without a name.
  if (info.name === '') throw new RangeError(`${OWNER}: info.name must not be empty`);
  if (options?.requestState?.verify !== undefined) {
    throw new TypeError(`${OWNER}: options.requestState.verify would be given the sealed token; leave it out`);
  }
  // These three are what the class registers handlers for in its constructor, which would be too early.
  const { tools, resources, prompts, ...others } = options?.capabilities ?? {};
  const server = protectRequestState(new McpServerClass(info, { ...options, capabilities: others }), security, {
    defaultAudience: info.name,
  });
  if (tools === undefined && resources === undefined && prompts === undefined) return server;
  server.server.registerCapabilities({
    ...(tools === undefined ? {} : { tools }),
    ...(resources === undefined ? {} : { resources }),
    ...(prompts === undefined ? {} : { prompts }),
  });
  // Registering and removing is the public way to the handlers of an empty list.
  if (tools !== undefined) server.registerTool(PLACEHOLDER, {}, () => ({ content: [] })).remove();
  if (prompts !== undefined) server.registerPrompt(PLACEHOLDER, {}, () => ({ messages: [] })).remove();
  if (resources !== undefined) {
    server.registerResource(PLACEHOLDER, 'sealring:placeholder', {}, () => ({ contents: [] })).remove();
  }
  return server;
}
