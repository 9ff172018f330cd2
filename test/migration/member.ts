/**
 * One server of a fleet in its own process, forked by `fleet.ts`: `member.ts MODULE LABEL`. The guide contains the
 * module: it exports `states`, a codec for handlers, or `security`, a policy for the boundary; and `serve` if it wraps
 * the
 * handler.
 */
import { createServer } from 'node:http';
import { pathToFileURL } from 'node:url';
import { toNodeHandler } from '@modelcontextprotocol/node';
import {
  acceptedContent,
  createMcpHandler,
  inputRequired,
  McpServer,
  type McpServerFactory,
  type RequestStateCodec,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { createProtectedMcpServer, type RequestStateSecurity } from '@sealring/mcp';

const [path = '', label = ''] = process.argv.slice(2);
const info = { name: 'refund-desk', version: '1.0.0' };
interface Exported {
  readonly states?: RequestStateCodec<{ order: string }>;
  readonly security?: RequestStateSecurity;
  readonly serve?: (factory: McpServerFactory) => ReturnType<typeof toNodeHandler>;
}
const exported: Exported = await import(pathToFileURL(path).href);

function serverOf({ states, security }: Exported): McpServer {
  if (security !== undefined) {
    const server = createProtectedMcpServer({ McpServer, serverInfo: info, security });
    return withRefund(server, async (order) => order, String);
  }
  if (states === undefined) throw new Error('a module of the guide exports states or security');
  const server = new McpServer(info, { requestState: { verify: (token, ctx) => states.verify(token, ctx) } });
  return withRefund(server, (order, ctx) => states.mint({ order }, ctx), orderOf);
}

function orderOf(payload: unknown): string {
  return typeof payload === 'object' && payload !== null ? String(Reflect.get(payload, 'order')) : '';
}

function withRefund(
  server: McpServer,
  mint: (order: string, ctx: ServerContext) => Promise<string>,
  read: (state: unknown) => string,
): McpServer {
  server.registerTool('refund', {}, async (ctx) => {
    const state = ctx.mcpReq.requestState();
    if (state !== undefined && acceptedContent(ctx.mcpReq.inputResponses, 'sure') !== undefined) {
      return { content: [{ type: 'text', text: `${read(state)} by ${label}` }] };
    }
    const sure = inputRequired.elicit({ message: 'Sure?', requestedSchema: { type: 'object', properties: {} } });
    return inputRequired({ inputRequests: { sure }, requestState: await mint(`asked by ${label}`, ctx) });
  });
  return server;
}

const serveWith = exported.serve ?? ((factory) => toNodeHandler(createMcpHandler(factory)));
const serve = serveWith(() => serverOf(exported));
const http = createServer((request, response) => {
  const { method = 'GET', url = '/' } = request;
  const sub = request.headers.authorization?.replace('Bearer ', '');
  const auth = sub === undefined ? {} : { auth: { token: 'verified', clientId: 'shop', scopes: [], extra: { sub } } };
  void serve(Object.assign(request, { method, url }, auth), response);
});
http.listen(0, '127.0.0.1', () => {
  const address = http.address();
  process.stdout.write(`port ${typeof address === 'object' ? address?.port : ''}\n`);
});
