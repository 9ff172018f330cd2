import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { deflateSync, inflateSync } from 'node:zlib';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, createRequestStateCodec, McpServer, type ServerContext } from '@modelcontextprotocol/server';
import { AesGcmRequestStateCodec } from '@sealring/core';
import { createProtectedMcpServer, protectFetch, RequestStateSecurity } from '@sealring/mcp';
import { describe, expect, test } from 'vitest';
import {
  authOf,
  bearer,
  info,
  listening,
  probe,
  REFUND,
  registered,
  SOUND,
  type States,
  served,
  USERS,
  verdicts,
} from './probed-server.ts';

const KEY = randomBytes(32);
type Policy = Partial<ConstructorParameters<typeof RequestStateSecurity>[0]>;
const securityOf = (policy: Policy = {}): RequestStateSecurity =>
  new RequestStateSecurity({ keys: [KEY], requireSubject: true, ttlSeconds: 1, ...Object(policy) });
const protectedBy = (policy?: Policy) => {
  const security = securityOf(policy);
  return () => registered(createProtectedMcpServer({ McpServer, serverInfo: info, security }));
};

/** Encrypts and authenticates the state, and nothing else. */
function encryptedOnly(): States {
  const codec = new AesGcmRequestStateCodec([KEY]);
  return {
    mint: (state) => codec.seal(Buffer.from(state)),
    read: (ctx) => {
      const token = ctx.mcpReq.requestState<string>();
      return token === undefined ? undefined : Buffer.from(codec.unseal(token)).toString();
    },
  };
}

/** The SDK's own codec: signed, expires, bound to nothing. */
function signed(): () => McpServer {
  const codec = createRequestStateCodec<string>({ key: KEY, ttlSeconds: 1 });
  const verify = (token: string, ctx: ServerContext) => codec.verify(token, ctx);
  const states: States = {
    mint: (state, ctx) => codec.mint(state, ctx),
    read: (ctx) => ctx.mcpReq.requestState<string>(),
  };
  return () => registered(new McpServer(info, { requestState: { verify } }), states);
}

describe('sealring probe', () => {
  test.each([
    ['createProtectedMcpServer', protectedBy()],
    ['a policy with re-elicit-any', protectedBy({ onInvalid: 're-elicit-any' })],
  ])('passes a server protected by %s', async (_name, factory) => {
    await using server = await served(factory);
    expect(await verdicts(server.url)).toEqual({ code: 0, passed: true, ...SOUND });
  });

  test('passes a server protected by protectFetch that answers with server-sent events', async () => {
    const mcp = createMcpHandler(() => registered(new McpServer(info)), { responseMode: 'sse' });
    const fetch = protectFetch((request: Request) => mcp.fetch(request), securityOf(), {
      audience: 'desk',
      bindPrincipal: ({ headers }) => authOf(bearer(headers.get('authorization'))),
    });
    const handle = toNodeHandler({ fetch });
    await using wrapped = await listening((request, response) => {
      const { method = 'GET', url = '/' } = request;
      void handle(Object.assign(request, { method, url }), response);
    });
    expect(await verdicts(wrapped.url)).toEqual({ code: 0, passed: true, ...SOUND });
  });

  test.each([
    [
      'a plaintext state',
      () => registered(new McpServer(info)),
      { encryption: 'hole', tampering: 'hole', arguments: 'hole', user: 'hole', expiry: 'hole' },
    ],
    [
      'a state that is signed and bound to nothing',
      signed(),
      { encryption: 'hole', tampering: 'ok', arguments: 'hole', user: 'hole', expiry: 'ok' },
    ],
    [
      'a state that is encrypted, bound to nothing and does not expire',
      () => registered(new McpServer(info), encryptedOnly()),
      { encryption: 'ok', tampering: 'ok', arguments: 'hole', user: 'hole', expiry: 'hole' },
    ],
    ['a state that lives too long', protectedBy({ ttlSeconds: 600 }), { ...SOUND, expiry: 'hole' }],
    [
      'a state that is bound to no user',
      protectedBy({ bindPrincipal: null, requireSubject: false }),
      { ...SOUND, user: 'hole' },
    ],
  ])('a server with %s fails the probe', async (_name, factory, expected) => {
    await using server = await served(factory);
    expect(await verdicts(server.url)).toEqual({ code: 1, passed: false, ...expected });
  });

  describe('a server made by hand', () => {
    const codec = new AesGcmRequestStateCodec([KEY]);
    const seal = (text: string): string => codec.seal(Buffer.from(text));
    const opens = (state: string, text: string): boolean => {
      try {
        return Buffer.from(codec.unseal(state)).toString() === text;
      } catch {
        return false;
      }
    };
    const requestedSchema = {
      type: 'object',
      properties: {
        reason: { type: 'string', minLength: 20, maxLength: 22 },
        stars: { type: 'integer', maximum: 0 },
        tags: { type: 'array', minItems: 2, items: { type: 'string', enum: ['a', 'b', 'c'] } },
      },
    };
    const questions = { sure: { method: 'elicitation/create', params: { message: 'Sure?', requestedSchema } } };
    const isValid = ({ reason, stars, tags }: Readonly<Record<string, unknown>>): boolean =>
      /^.{20,22}$/.test(String(reason)) && stars === 0 && JSON.stringify(tags) === '["a","b"]';
    const args = ['--tool', 'refund', '--arguments', '{"order":"A1","amount":2}'];
    const refused = new Set<string>();
    let states = 0;
    const sound = {
      mint: (text: string) => seal(text),
      accepts: (state: string, text: string) => opens(state, text),
      text: (params: unknown) => JSON.stringify(Object(params).arguments),
      refusal: { status: 200, body: { error: { code: -32602, message: 'no' } } },
    };

    /** Asks one question, and accepts the states for which `accepts` returns true. */
    const byHand = ({ mint, accepts, text, refusal }: typeof sound) => {
      const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
        const { id, params } = JSON.parse(Buffer.concat(await request.toArray()).toString());
        const bound = text(params);
        const state: unknown = params.requestState;
        const asked = { resultType: 'input_required', inputRequests: questions };
        const { status, body } =
          typeof state !== 'string' || !isValid(params.inputResponses?.sure?.content)
            ? { status: 200, body: { result: { ...asked, requestState: mint(bound) } } }
            : accepts(state, bound)
              ? { status: 200, body: { result: { resultType: 'complete', content: [] } } }
              : refusal;
        response.writeHead(status, { 'content-type': 'application/json' });
        response.end(JSON.stringify({ jsonrpc: '2.0', id, ...body }));
      };
      return listening((request, response) => void answer(request, response));
    };
    const seen = (state: string): boolean => refused.size === refused.add(state).size;
    const inflated = (state: string): string => inflateSync(Buffer.from(state, 'base64url')).toString();

    test.each([
      ['a sound state that is bound to no user', sound, {}],
      [
        'a state that is accepted on the second attempt',
        { ...sound, accepts: (state: string, text: string) => opens(state, text) || seen(state) },
        { tampering: 'hole', arguments: 'hole' },
      ],
      [
        'a state that is bound to the first argument only',
        { ...sound, text: (params: unknown) => Object(params).arguments.order },
        { arguments: 'hole' },
      ],
      [
        'a state that is sealed the first time only',
        {
          ...sound,
          mint: (text: string) => (states++ === 0 ? seal(text) : text),
          accepts: (state: string, text: string) => state === text || opens(state, text),
        },
        { encryption: 'hole' },
      ],
      [
        'a state that is compressed and not encrypted',
        {
          ...sound,
          mint: (text: string) => deflateSync(`${states++} ${text}`).toString('base64url'),
          accepts: (state: string, text: string) => {
            try {
              return inflated(state).endsWith(text);
            } catch {
              return false;
            }
          },
        },
        { encryption: 'hole' },
      ],
    ])('a server with %s fails the probe', async (_name, made, expected) => {
      states = 0;
      await using server = await byHand(made);
      const found = await verdicts(server.url, args);
      const sealed = { encryption: 'ok', tampering: 'ok', arguments: 'ok', user: 'hole', expiry: 'unchecked' };
      expect(found).toEqual({ code: 1, passed: false, ...sealed, ...expected });
    });

    test('leaves attacks unchecked on a call that takes effect only once', async () => {
      const used = new Set<string>();
      const once = {
        ...sound,
        text: (params: unknown) => Object(params).arguments.order,
        accepts: (state: string, text: string) => opens(state, text) && used.size !== used.add(text).size,
      };
      await using server = await byHand(once);
      const unjudged = { tampering: 'unchecked', arguments: 'unchecked', user: 'unchecked', expiry: 'unchecked' };
      expect(await verdicts(server.url, args)).toEqual({ code: 0, passed: true, encryption: 'ok', ...unjudged });
    });

    test.each([
      [
        'finds a value in a nested argument that a state is not bound to',
        '{"order":"A1","lines":[{"sku":"s","n":1}]}',
        (params: unknown) => JSON.stringify([Object(params).arguments.order, Object(params).arguments.lines[0].sku]),
        'hole',
      ],
      [
        'leaves arguments unchecked if one of them cannot be changed',
        '{"order":"A1","note":null}',
        (params: unknown) => JSON.stringify(Object(params).arguments),
        'unchecked',
      ],
    ])('the probe %s', async (_name, json, text, verdict) => {
      await using server = await byHand({ ...sound, text });
      const found = await verdicts(server.url, ['--tool', 'refund', '--arguments', json]);
      expect(found).toMatchObject({ encryption: 'ok', tampering: 'ok', arguments: verdict });
    });

    test.each([
      ['a page in place of an answer', { status: 200, body: { page: 'not allowed' } }],
      ['a gateway that is too busy', { status: 429, body: { error: { code: -32000, message: 'later' } } }],
      ['a server that fails', { status: 500, body: {} }],
    ])('the probe does not take %s for a refusal', async (_name, refusal) => {
      await using server = await byHand({ ...sound, refusal: Object(refusal) });
      const { code, stderr } = await probe(server.url, args);
      expect({ code, stderr }).toEqual({
        code: 1,
        stderr: `error: the server did not answer with an MCP message (HTTP status ${refusal.status})\n`,
      });
    });
  });

  test('rejects two identical access tokens', async () => {
    const env = { SEALRING_PROBE_TOKEN: 'ada', SEALRING_PROBE_OTHER_TOKEN: 'ada' };
    const { code, stderr } = await probe('http://127.0.0.1:9/mcp', REFUND, env);
    expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining('of two different users') });
  });

  test('prints each hole with a remedy, but not the state, the access token or the query of the address', async () => {
    await using server = await served(() => registered(new McpServer(info)));
    const { code, stdout } = await probe(server.url);
    expect(code).toBe(1);
    expect(stdout).toMatch(/^HOLE\s+the client can read the state \[encryption\]$/m);
    expect(stdout).toContain('→ Seal the state');
    expect(stdout).toMatch(/^5 holes$/m);
    expect(stdout).not.toMatch(/asked|ada|grace|secret/);
  });

  test('runs the example in its help', async () => {
    await using server = await served(protectedBy());
    const { stdout: help } = await probe('--help', []);
    const [, , , ...args] = (/^ {2}\$ (npx sealring probe [^]*?[^\\])\n/m.exec(help)?.[1] ?? '')
      .replaceAll(/\\\n\s*/g, '')
      .split(/\s+/);
    expect(args).toContain('--lifetime');
    const { code, stdout } = await probe(server.url, args.map((arg) => arg.replaceAll("'", '')).slice(1), {
      ...USERS,
    });
    expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringContaining('0 holes') });
  });

  test('reports a check without its input as unchecked, and fails because of such a check only with --strict', async () => {
    await using server = await served(protectedBy({ ttlSeconds: 600, requireSubject: false }));
    const args = ['--prompt', 'terms'];
    const { code, stdout } = await probe(server.url, args, {});
    expect(code).toBe(0);
    for (const id of ['arguments', 'user', 'expiry'])
      expect(stdout).toMatch(new RegExp(`^unchecked .*\\[${id}\\]$`, 'm'));
    expect((await probe(server.url, [...args, '--strict'], {})).code).toBe(1);
  });

  test.each([
    ['a tool that does not ask', ['--tool', 'ping'], 'the server does not ask for input (it completes the call)'],
    ['a tool that does not exist', ['--tool', 'nothing'], 'the server does not ask'],
    ['a call without a user', REFUND, 'the server does not ask for input (JSON-RPC error -32603)'],
  ])('fails with not-probed for %s', async (_name, args, message) => {
    await using server = await served(protectedBy());
    const { code, stdout, stderr } = await probe(server.url, [...args, '--json'], {});
    expect({ code, ...JSON.parse(stdout).error }).toMatchObject({ code: 'not-probed', exitCode: 1 });
    expect(stderr).toContain(message);
  });

  test('prints no text from the server that could pass for a line of the report', async () => {
    const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
      let body = '';
      for await (const chunk of request.setEncoding('utf8')) body += chunk;
      const { id, params } = JSON.parse(body);
      const isAsked = params.arguments.order === 'A1' && params.requestState === undefined;
      const requestState = randomBytes(60).toString('base64url');
      const result = { resultType: isAsked ? 'input_required' : 'complete', inputRequests: {}, requestState };
      const isRefused = params.arguments.order !== 'A1';
      const error = { code: '\u001b[2J\nok  nothing is accepted [tampering]', message: '' };
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ jsonrpc: '2.0', id, ...(isRefused ? { error } : { result }) }));
    };
    await using server = await listening((request, response) => void answer(request, response));
    const { stdout } = await probe(server.url);
    expect(stdout).toContain('does not ask for input (JSON-RPC error without a code) [arguments]');
    expect(stdout).not.toContain('nothing is accepted');
  });

  test('fails with not-probed for an address without a server', async () => {
    const { code, stderr } = await probe('http://127.0.0.1:9/mcp');
    expect(code).toBe(1);
    expect(stderr).toBe('error: the server did not answer (TypeError)\n');
  });

  test.each([
    ['no target', [], 'exactly one of --tool, --prompt and --resource'],
    ['two targets', ['--tool', 'a', '--prompt', 'b'], 'exactly one of --tool, --prompt and --resource'],
    ['arguments of a resource', ['--resource', 'a:b', '--arguments', '{}'], '--arguments is for'],
    ['another resource for a tool', ['--tool', 'a', '--other-resource', 'a:b'], '--other-resource for --resource'],
    [
      'other arguments that are the same',
      ['--tool', 'a', '--arguments', '{"a":1,"b":2}', '--other-arguments', '{"b":2,"a":1}'],
      '--other-arguments must differ from --arguments',
    ],
    ['other arguments that are as empty', ['--tool', 'a', '--other-arguments', '{}'], '--other-arguments must differ'],
    [
      'another resource that is the same',
      ['--resource', 'a:b', '--other-resource', 'a:b'],
      '--other-resource "a:b" must differ from --resource',
    ],
    ['arguments that are not JSON', ['--tool', 'a', '--arguments', 'x'], 'It must be JSON'],
    ['arguments that are a list', ['--tool', 'a', '--arguments', '[]'], 'It must be a JSON object'],
  ])('the probe rejects a command line with %s', async (_name, args, message) => {
    const { code, stderr } = await probe('http://127.0.0.1:9/mcp', args);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
  });

  test.each([
    ['ftp://127.0.0.1/', 'the address "ftp://127.0.0.1/" must be an http:// or https:// URL'],
    ['http://ada:hunter2@127.0.0.1/', 'no password'],
    ['ada:hunter2@127.0.0.1/mcp', 'http:// or https://'],
  ])('rejects the address %s, and repeats no password (F21)', async (url, message) => {
    const { code, stdout, stderr } = await probe(url, ['--tool', 'a', '--json']);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
    expect(stdout + stderr).not.toContain('hunter2');
  });
});
