import {
  type CallToolResult,
  fromJsonSchema,
  type InputRequiredResult,
  inputRequired,
  McpServer,
  Server,
} from '@modelcontextprotocol/server';
import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import { requestIdentity } from '../../src/boundary/request-identity.ts';
import {
  createProtectedMcpServer,
  protectRequestState,
  type RejectEvent,
  RequestStateSecurity,
} from '../../src/index.ts';
import { createMcpdRequestStateSecurity } from '../../src/mcpd/index.ts';
import { CONFIRM, serveHttp, textOf, tokenOf, YES } from '../support/served.ts';

const INFO = { name: 'search-desk', version: '1.0.0' };
const KEY = Buffer.from('00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff', 'hex');
const SENT = { name: 'search', arguments: { query: 'shoes', filter: { colours: ['red'] } } };

interface Search {
  query: string;
  limit?: number;
  filter: { colours: string[]; sizes?: number[] };
}

/** A handler that fills in missing arguments, in place, as handlers do. */
function search(args: Search, state: string | undefined): CallToolResult | InputRequiredResult {
  args.limit ??= 10;
  args.filter.sizes ??= [42];
  args.filter.colours.push('blue');
  if (state === undefined) return inputRequired({ inputRequests: { confirm: CONFIRM }, requestState: 'page 1' });
  return { content: [{ type: 'text', text: `${state} of ${args.limit}` }] };
}

const passThrough = fromJsonSchema<Search>({ type: 'object', properties: { query: { type: 'string' } } });
const copying = z.object({ query: z.string(), filter: z.object({ colours: z.array(z.string()) }) });
/** Like a validator that writes its defaults into its input. */
const inPlace = {
  '~standard': {
    version: 1 as const,
    vendor: 'test',
    validate: (value: unknown) => {
      const params = Object(value);
      params.arguments.limit ??= 10;
      return { value: params };
    },
  },
};
const servers: Readonly<Record<string, (security: RequestStateSecurity) => McpServer | Server>> = {
  'a tool with a schema that passes the arguments through': (security) => {
    const server = createProtectedMcpServer({ McpServer, serverInfo: INFO, security });
    server.registerTool('search', { inputSchema: passThrough }, (args, ctx) =>
      search(args, ctx.mcpReq.requestState<string>()),
    );
    return server;
  },
  'a tool with a schema of zod': (security) => {
    const server = createProtectedMcpServer({ McpServer, serverInfo: INFO, security });
    server.registerTool('search', { inputSchema: copying }, (args, ctx) =>
      search(args, ctx.mcpReq.requestState<string>()),
    );
    return server;
  },
  'setRequestHandler of two arguments': (security) => {
    const server = protectRequestState(new Server(INFO, { capabilities: { tools: {} } }), security, {
      defaultAudience: 'x',
    });
    server.setRequestHandler('tools/call', (request, ctx) =>
      search(Object(request.params.arguments), ctx.mcpReq.requestState<string>()),
    );
    return server;
  },
  'setRequestHandler of three arguments, its schema writing in place': (security) => {
    const server = protectRequestState(new Server(INFO, { capabilities: { tools: {} } }), security, {
      defaultAudience: 'x',
    });
    server.setRequestHandler('tools/call', { params: inPlace }, (params, ctx) =>
      Object(search(Object(params).arguments, ctx.mcpReq.requestState<string>())),
    );
    return server;
  },
  fallbackRequestHandler: (security) => {
    const server = protectRequestState(new Server(INFO, { capabilities: { tools: {} } }), security, {
      defaultAudience: 'x',
    });
    server.fallbackRequestHandler = async (request, ctx) =>
      Object(search(Object(request.params?.['arguments']), ctx.mcpReq.requestState<string>()));
    return server;
  },
};

describe('the arguments to which a first round is bound (F49)', () => {
  test.each(Object.entries(servers))(
    'with %s, a first round is bound to the arguments as sent',
    async (_name, make) => {
      const events: RejectEvent[] = [];
      const security = new RequestStateSecurity({ keys: [KEY], onReject: (event) => events.push(event) });
      await using http = await serveHttp(() => make(security));
      const first = await http.call('tools/call', SENT);
      const echo = { ...SENT, requestState: tokenOf(first), inputResponses: YES };
      expect(textOf(await http.call('tools/call', echo))).toBe('page 1 of 10');
      expect(events).toEqual([]);
      const other = { ...echo, arguments: { ...SENT.arguments, limit: 10 } };
      expect((await http.call('tools/call', other)).error).toMatchObject({ code: -32602 });
      expect(events.map(({ reason }) => reason)).toEqual(['request binding']);
    },
  );

  test('tokens in mcp.d’s format are bound to the name of the tool as sent', async () => {
    const events: RejectEvent[] = [];
    const security = createMcpdRequestStateSecurity({
      key: KEY,
      binding: 'authSubjectAndTool',
      onReject: (event) => events.push(event),
    });
    await using http = await serveHttp(() => {
      const server = protectRequestState(new Server(INFO, { capabilities: { tools: {} } }), security);
      server.setRequestHandler('tools/call', (request, ctx) => {
        request.params.name = 'renamed';
        return search(Object(request.params.arguments), ctx.mcpReq.requestState<string>());
      });
      return server;
    });
    const echo = { ...SENT, requestState: tokenOf(await http.call('tools/call', SENT)), inputResponses: YES };
    expect(textOf(await http.call('tools/call', echo))).toBe('page 1 of 10');
    expect(events).toEqual([]);
  });
});

describe('the size limit of bound arguments', () => {
  const LONGEST = 16_777_216;
  // {"text":""} is 11 characters.
  const argumentsOf = (length: number) => ({ text: 'a'.repeat(length - 11) });
  const identityOf = (length: number) => requestIdentity('tools/call', { name: 'n', arguments: argumentsOf(length) });

  test('arguments up to the limit are bound by a digest of their whole text', () => {
    expect(identityOf(LONGEST).digest).toHaveLength(22);
    expect(() => identityOf(LONGEST + 1)).toThrow('arguments too large');
  });

  test('for arguments beyond the limit, a state is not sealed, a token is refused, and a call without a state is answered', async () => {
    const events: RejectEvent[] = [];
    const security = new RequestStateSecurity({ keys: [KEY], onReject: (event) => events.push(event) });
    const server = (asks: boolean) => {
      const made = protectRequestState(new Server(INFO, { capabilities: { tools: {} } }), security, {
        defaultAudience: 'x',
      });
      made.fallbackRequestHandler = async () =>
        asks ? { resultType: 'input_required', requestState: 'x' } : { content: [] };
      return made;
    };
    const { answerOf } = await import('../support/exchange.ts');
    const params = { name: 'n', arguments: argumentsOf(LONGEST + 1) };
    expect((await answerOf(server(false), { method: 'tools/call', params })).result).toMatchObject({ content: [] });
    expect(events).toEqual([]);
    expect((await answerOf(server(true), { method: 'tools/call', params })).error).toMatchObject({ code: -32603 });
    const sealed = await answerOf(server(true), { method: 'tools/call', params: { name: 'n' } });
    const { requestState } = Object(sealed.result);
    const echo = { method: 'tools/call', params: { ...params, requestState } };
    expect((await answerOf(server(false), echo)).error).toMatchObject({ code: -32602 });
    expect(events).toEqual([
      { direction: 'outbound', method: 'tools/call', reason: 'arguments too large' },
      { direction: 'inbound', method: 'tools/call', reason: 'arguments too large' },
    ]);
  });
});
