import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { McpServer } from '@modelcontextprotocol/server';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { selfSignedCertificate } from '../support/azure-key-vault/certificate.ts';
import { callTool } from '../support/call-tool.ts';
import { startRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';
import { info, type Listening, listening, MAIN, registered, SOUND, served, verdicts } from './probed-server.ts';
import { emptyProject, ProxyProcess, projectWithRing } from './proxy-process.ts';

const REFUSED = { code: -32602, message: expect.stringContaining('requestState') };
const PLAINTEXT = { encryption: 'hole', tampering: 'hole', arguments: 'hole', user: 'hole', expiry: 'hole' };
const refund = { name: 'refund', argumentsText: '{"order":"A1"}', user: 'ada' };

let project: Awaited<ReturnType<typeof projectWithRing>>;
let server: Listening;
beforeAll(async () => {
  project = await projectWithRing();
  server = await served(() => registered(new McpServer(info)));
});
afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
  project?.remove();
});

/** A proxy in front of `upstream`; states belong to the access token, unless `args` says otherwise. */
function proxyFor(upstream: string, args: readonly string[] = ['--principal-authorization']): ProxyProcess {
  return new ProxyProcess(project.cwd, ['--upstream', upstream, '--audience', 'desk', ...args]);
}

const stateOf = ({ result }: Awaited<ReturnType<typeof callTool>>): string => {
  if (result?.requestState === undefined) throw new Error('the server did not ask');
  return result.requestState;
};

/** Sends a hand-written request. Every value of a header is a line. */
function send(
  url: string,
  options: { method?: string; path?: string; headers?: Record<string, string | string[]>; body?: string | Buffer } = {},
): Promise<{ status: number; headers: IncomingMessage['headers']; body: string }> {
  const { method = 'GET', headers = {}, body, path } = options;
  return new Promise((resolve, reject) => {
    const request = httpRequest(url, { method, headers, ...(path === undefined ? {} : { path }) }, (response) => {
      const { statusCode: status = 0, headers: received } = response;
      textOf(response).then((text) => resolve({ status, headers: received, body: text }), reject);
    });
    request.on('error', reject).end(body);
  });
}

async function textOf(response: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of response.setEncoding('utf8')) text += chunk;
  return text;
}

const ask = (order: string) => JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: order } });
const json = { 'content-type': 'application/json' };

/** A promise, and the function that resolves it. */
function gate(): readonly [opened: Promise<void>, open: () => void] {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return [opened, open];
}

describe('an unprotected server behind the proxy', () => {
  test('serves two rounds to the official client, and its tokens are sealed', async () => {
    await using proxy = proxyFor(server.origin);
    const origin = await proxy.origin();
    const client = new Client(
      { name: 'shop', version: '1.0.0' },
      { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: { pin: '2026-07-28' } } },
    );
    client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { ok: true } }));
    await client.connect(
      new StreamableHTTPClientTransport(new URL(`${origin}/mcp`), { authProvider: { token: async () => 'ada' } }),
    );
    const { content } = await client.callTool({ name: 'refund', arguments: { order: 'A1' } });
    expect(content).toEqual([{ type: 'text', text: 'asked:A1' }]);
    await client.close();
    expect(stateOf(await callTool(`${origin}/mcp`, refund))).toMatch(/^[\w.~-]{100,}$/);
    expect(proxy.failures).toEqual([]);
  });

  test.each([
    ['a state that the client made up', { requestState: 'asked:A1' }, 'malformed'],
    ['other arguments', { argumentsText: '{"order":"A2"}' }, 'request binding'],
    ['another user', { user: 'grace' }, 'principal'],
    ['no user', { user: undefined }, 'principal binding error (TypeError)'],
  ])('a request with %s is refused', async (_name, change, reason) => {
    await using proxy = proxyFor(server.origin);
    const url = `${await proxy.origin()}/mcp`;
    const requestState = stateOf(await callTool(url, refund));
    expect(await callTool(url, { ...refund, requestState })).toMatchObject({
      result: { content: [{ text: 'asked:A1' }] },
    });
    const { user, ...changed } = { ...refund, requestState, ...change };
    const answer = await callTool(url, user === undefined ? changed : { ...changed, user });
    expect(answer.error).toMatchObject(REFUSED);
    expect(proxy.failures.at(-1)).toBe(`requestState: refused inbound on tools/call: ${reason}`);
  });

  test('refuses a changed token', async () => {
    await using proxy = proxyFor(server.origin);
    const url = `${await proxy.origin()}/mcp`;
    const token = stateOf(await callTool(url, refund));
    const at = token.length - 20;
    const requestState = `${token.slice(0, at)}${token[at] === 'A' ? 'B' : 'A'}${token.slice(at + 1)}`;
    expect((await callTool(url, { ...refund, requestState })).error).toMatchObject(REFUSED);
    expect(proxy.failures.join()).not.toContain(token.slice(10, 30));
  });

  test('refuses a token after --ttl seconds', async () => {
    await using proxy = proxyFor(server.origin, ['--principal-authorization', '--ttl', '1']);
    const url = `${await proxy.origin()}/mcp`;
    const requestState = stateOf(await callTool(url, refund));
    let answer = await callTool(url, { ...refund, requestState });
    await until(async () => {
      answer = await callTool(url, { ...refund, requestState });
      return answer.error !== undefined;
    });
    expect(answer.error).toMatchObject(REFUSED);
    expect(proxy.failures).toEqual(['requestState: refused inbound on tools/call: expired']);
  });

  test('with a singleUse store configured, a token is accepted only once, whichever proxy gets it', async () => {
    const redis = await startRedis();
    const own = emptyProject();
    onTestFinished(async () => {
      own.remove();
      await redis.stop();
    });
    writeFileSync(join(own.cwd, 'sealring.config.mjs'), onceOnly(redis.address));
    execFileSync(process.execPath, [MAIN, 'init'], { cwd: own.cwd });
    const args = ['--upstream', server.origin, '--audience', 'desk', '--principal-authorization'];
    await using first = new ProxyProcess(own.cwd, args);
    await using second = new ProxyProcess(own.cwd, args);
    const [url, other] = [`${await first.origin()}/mcp`, `${await second.origin()}/mcp`];
    const requestState = stateOf(await callTool(url, refund));
    expect((await callTool(other, { ...refund, requestState })).result?.content?.[0]?.text).toBe('asked:A1');
    expect((await callTool(url, { ...refund, requestState })).error).toMatchObject(REFUSED);
    expect((await callTool(other, { ...refund, requestState })).error).toMatchObject(REFUSED);
    expect(first.failures).toEqual(['requestState: refused inbound on tools/call: already used']);
    // The proxy cannot know whether the token was redeemed.
    const unspent = stateOf(await callTool(url, refund));
    await redis.stop();
    expect((await callTool(url, { ...refund, requestState: unspent })).error).toMatchObject(REFUSED);
  });

  test('a server behind the proxy has none of the holes that the probe finds without the proxy', async () => {
    await using proxy = proxyFor(server.origin, ['--principal-authorization', '--ttl', '1']);
    expect(await verdicts(server.url)).toEqual({ code: 1, passed: false, ...PLAINTEXT });
    expect(await verdicts(`${await proxy.origin()}/mcp`)).toEqual({ code: 0, passed: true, ...SOUND });
  });

  test('shares its tokens with a proxy on the same ring and audience, but not with one for another audience', async () => {
    await using first = proxyFor(server.origin);
    await using second = proxyFor(server.origin);
    await using other = new ProxyProcess(project.cwd, [
      '--upstream',
      server.origin,
      '--audience',
      'shop',
      '--principal-authorization',
    ]);
    const requestState = stateOf(await callTool(`${await first.origin()}/mcp`, refund));
    const accepted = await callTool(`${await second.origin()}/mcp`, { ...refund, requestState });
    expect(accepted.result?.content?.[0]?.text).toBe('asked:A1');
    expect((await callTool(`${await other.origin()}/mcp`, { ...refund, requestState })).error).toMatchObject(REFUSED);
    expect(other.failures).toEqual(['requestState: refused inbound on tools/call: audience']);
  });
});

describe('the owner of a state', () => {
  /** A `tools/call` with headers of a gateway. */
  async function callAs(url: string, user: string | undefined, requestState?: string) {
    const params = {
      name: 'refund',
      arguments: { order: 'A1' },
      ...(requestState === undefined ? {} : { requestState }),
    };
    const { body } = await send(url, {
      method: 'POST',
      headers: {
        ...json,
        accept: 'application/json, text/event-stream',
        ...(user === undefined ? {} : { 'X-User': user }),
        ...META.headers,
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { ...params, _meta: META.meta } }),
    });
    return JSON.parse(body);
  }
  const META = {
    headers: { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'refund' },
    meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1.0.0' },
      'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} } },
    },
  };

  test('--principal-header binds a state to the header, and reports a request without it', async () => {
    await using proxy = proxyFor(server.origin, ['--principal-header', 'X-User']);
    const url = `${await proxy.origin()}/mcp`;
    const { requestState } = (await callAs(url, 'ada')).result;
    expect((await callAs(url, 'ada', requestState)).result.content).toEqual([{ type: 'text', text: 'asked:A1' }]);
    expect((await callAs(url, 'grace', requestState)).error).toMatchObject(REFUSED);
    expect((await callAs(url, undefined)).error).toMatchObject({ code: -32603 });
    expect(proxy.failures).toEqual([
      'requestState: refused inbound on tools/call: principal',
      'a request whose state belongs to a user has no header x-user',
      'requestState: refused outbound on tools/call: principal binding error (TypeError)',
    ]);
  });

  test('--no-principal binds a state to no user', async () => {
    await using proxy = proxyFor(server.origin, ['--no-principal']);
    const url = `${await proxy.origin()}/mcp`;
    const requestState = stateOf(await callTool(url, refund));
    const answer = await callTool(url, { ...refund, requestState, user: 'grace' });
    expect(answer.result?.content?.[0]?.text).toBe('asked:A1');
  });

  test.each([
    ['authorization', ['--principal-authorization'], { Authorization: ['Bearer ada', 'Bearer grace'] }],
    ['x-user', ['--principal-header', 'x-user'], { 'X-User': ['ada', 'grace'] }],
  ])('a request with two values of %s is answered with status 400', async (name, args, headers) => {
    await using proxy = proxyFor(server.origin, args);
    const answer = await send(await proxy.origin(), { headers });
    expect(answer).toMatchObject({ status: 400, body: `the header ${name} has more than one value\n` });
  });

  test('a second value of a header is detected even after a thousand other headers', async () => {
    await using proxy = proxyFor(server.origin, ['--principal-header', 'x-user']);
    const { port } = new URL(await proxy.origin());
    const socket = connect(Number(port), '127.0.0.1').setEncoding('utf8');
    const many = 'a:\r\n'.repeat(1_100);
    socket.write(
      `GET / HTTP/1.1\r\nHost: localhost\r\nX-User: grace\r\n${many}X-User: ada\r\nConnection: close\r\n\r\n`,
    );
    let text = '';
    for await (const part of socket) text += String(part);
    expect(text).toMatch(/^HTTP\/1\.1 400 [^]*the header x-user has more than one value/);
  });

  test('a header that Connection names is not passed on, and binds no state', async () => {
    await using proxy = proxyFor(server.origin, ['--principal-header', 'x-user']);
    const url = `${await proxy.origin()}/mcp`;
    const { status, body } = await send(url, {
      method: 'POST',
      headers: {
        ...json,
        ...META.headers,
        accept: 'application/json, text/event-stream',
        'X-User': 'ada',
        Connection: 'x-user',
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name: 'refund', arguments: { order: 'A1' }, _meta: META.meta },
      }),
    });
    expect({ status, ...JSON.parse(body).error }).toMatchObject({ status: 200, code: -32603 });
  });
});

/** The origin of a server whose queue of connections is full: it answers no attempt to connect. */
async function fullServer(): Promise<string> {
  const program = `const server = require('node:net').createServer();
    server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => console.log(server.address().port));`;
  const child = spawn(process.execPath, ['-e', program]);
  onTestFinished(() => void child.kill('SIGKILL'));
  const port = Number((await once(child.stdout, 'data')).toString());
  child.kill('SIGSTOP');
  // The queue holds one connection more than the backlog.
  for (let count = 0; count < 2; count += 1) {
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    onTestFinished(() => void socket.destroy());
    await once(socket, 'connect');
  }
  return `http://127.0.0.1:${port}`;
}

/** A hand-written server, and the requests that it received. */
async function byHand(answer: (request: IncomingMessage, response: ServerResponse) => unknown): Promise<Listening> {
  return await listening((request, response) => void answer(request, response));
}

describe('the connection', () => {
  test('passes on end-to-end headers, but no hop-by-hop headers, in both directions', async () => {
    let got: IncomingMessage['headers'] = {};
    await using upstream = await byHand((request, response) => {
      got = request.headers;
      response.writeHead(
        201,
        [
          ['Set-Cookie', 'a=1'],
          ['Set-Cookie', 'b=2'],
          ['X-Answer', 'yes'],
          ['Connection', 'x-private'],
          ['X-Private', 'no'],
          ['Proxy-Authenticate', 'Basic'],
          ['Content-Type', 'text/plain'],
        ].flat(),
      );
      response.end(request.url);
    });
    await using proxy = proxyFor(upstream.origin);
    const origin = await proxy.origin();
    const answer = await send(origin, {
      path: '//elsewhere.example/a?b=c',
      headers: {
        Authorization: 'Bearer ada',
        'X-Question': 'yes',
        TE: 'trailers',
        'Proxy-Authorization': 'Basic x',
        Connection: 'close, x-hop',
        'X-Hop': 'no',
        Upgrade: 'h2c',
        Expect: '100-continue',
      },
    });
    expect(got).toEqual({
      authorization: 'Bearer ada',
      'x-question': 'yes',
      host: new URL(upstream.origin).host,
      connection: 'keep-alive',
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-host': new URL(origin).host,
      'x-forwarded-proto': 'http',
    });
    expect(answer).toMatchObject({ status: 201, body: '//elsewhere.example/a?b=c' });
    expect(answer.headers).toMatchObject({ 'set-cookie': ['a=1', 'b=2'], 'x-answer': 'yes' });
    expect(answer.headers).not.toHaveProperty('x-private');
    expect(answer.headers).not.toHaveProperty('proxy-authenticate');
  });

  test('adds its client to X-Forwarded-For, and keeps the other X-Forwarded headers of a gateway', async () => {
    let got: IncomingMessage['headers'] = {};
    await using upstream = await byHand((request, response) => {
      got = request.headers;
      response.end();
    });
    await using proxy = proxyFor(upstream.origin);
    const headers = {
      'X-Forwarded-For': ['203.0.113.7', '198.51.100.2'],
      'X-Forwarded-Proto': 'https',
      'X-Forwarded-Host': 'mcp.example.com',
      Forwarded: 'for=203.0.113.7',
    };
    await send(await proxy.origin(), { headers });
    expect(got).toMatchObject({
      'x-forwarded-for': '203.0.113.7, 198.51.100.2, 127.0.0.1',
      'x-forwarded-proto': 'https',
      'x-forwarded-host': 'mcp.example.com',
      forwarded: 'for=203.0.113.7',
    });
    await send(await proxy.origin(), { headers: { ...headers, Connection: 'x-forwarded-for, x-forwarded-proto' } });
    expect(got).toMatchObject({ 'x-forwarded-for': '127.0.0.1', 'x-forwarded-proto': 'http' });
  });

  test('an X-Forwarded header that only the proxy sets binds no state', async () => {
    await using proxy = proxyFor(server.origin, ['--principal-header', 'x-forwarded-for']);
    expect((await callTool(`${await proxy.origin()}/mcp`, refund)).error).toMatchObject({ code: -32603 });
    expect(proxy.failures).toContain('a request whose state belongs to a user has no header x-forwarded-for');
  });

  test('a request that names another server is answered with status 400', async () => {
    await using proxy = proxyFor(server.origin);
    const answer = await send(await proxy.origin(), { path: 'http://elsewhere.example/' });
    expect(answer).toMatchObject({ status: 400, body: 'the request names no path\n' });
  });

  test.each([
    '/public/%2e%2e/mcp',
    '/a/./b/../c',
    '/a\\b',
    '/a#b?c',
    `/a|b"c?q=it's`,
    '/%zz',
    '//elsewhere.example/%2F?a=%20',
  ])('the path %j reaches the server as it was sent', async (path) => {
    await using upstream = await byHand((request, response) => response.end(request.url));
    await using proxy = proxyFor(upstream.origin);
    expect(await send(await proxy.origin(), { path })).toMatchObject({ status: 200, body: path });
  });

  test('the body of a GET does not reach the server, and TRACE is answered with status 400', async () => {
    await using upstream = await byHand(async (request, response) => response.end(`got ${await textOf(request)}`));
    await using proxy = proxyFor(upstream.origin);
    const headers = { 'content-length': '2' };
    expect(await send(await proxy.origin(), { headers, body: '{}' })).toMatchObject({ status: 200, body: 'got ' });
    const traced = await send(await proxy.origin(), { method: 'TRACE' });
    expect(traced).toMatchObject({ status: 400, body: 'the request cannot be passed on\n' });
  });

  test('on a loopback address, a request with another host name is answered with status 421', async () => {
    await using proxy = proxyFor(server.origin);
    const origin = await proxy.origin();
    for (const host of ['attacker.example', 'attacker.example:8080']) {
      expect(await send(origin, { headers: { host } })).toMatchObject({ status: 421 });
    }
    for (const host of ['localhost', '127.0.0.1:8080', '[::1]:8080']) {
      expect((await send(origin, { headers: { host } })).status).not.toBe(421);
    }
  });

  test.each([
    ['0:0:0:0:0:0:0:1', '::1'],
    ['::ffff:127.0.0.1', '127.0.0.1'],
    ['LOCALHOST', 'localhost'],
  ])('the loopback address %s is recognized in any spelling', async (host, connected) => {
    await using proxy = proxyFor(server.origin, ['--no-principal', '--host', host]);
    const { port } = new URL(await proxy.origin());
    const origin = `http://${connected.includes(':') ? `[${connected}]` : connected}:${port}`;
    expect(await send(origin, { headers: { host: 'attacker.example' } })).toMatchObject({ status: 421 });
    expect((await send(origin)).status).not.toBe(421);
  });

  test('with --allow-host, a request with any other host name is answered with status 421', async () => {
    await using proxy = proxyFor(server.origin, ['--no-principal', '--allow-host', 'mcp.example.com']);
    const origin = await proxy.origin();
    expect((await send(origin, { headers: { host: 'MCP.example.com:443' } })).status).not.toBe(421);
    expect((await send(origin, { headers: { host: 'localhost' } })).status).toBe(421);
  });

  test('the proxy passes on a server-sent event before the next one is sent, and seals the state in the last one', async () => {
    const [seen, firstSeen] = gate();
    await using upstream = await byHand(async (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('data: {"jsonrpc":"2.0","method":"notifications/progress"}\n\n');
      await seen;
      const result = { resultType: 'input_required', inputRequests: {}, requestState: 'plaintext' };
      response.end(`data: ${JSON.stringify({ jsonrpc: '2.0', id: 1, result })}\n\n`);
    });
    await using proxy = proxyFor(upstream.origin, ['--no-principal']);
    const response = await fetch(await proxy.origin(), { method: 'POST', headers: json, body: ask('a') });
    let text = '';
    for await (const chunk of response.body ?? []) {
      text += Buffer.from(chunk).toString();
      if (text.includes('notifications/progress')) firstSeen();
    }
    expect(text).toContain('"requestState":"');
    expect(text).not.toContain('plaintext');
  });

  test('the proxy answers with status 504 for a server that does not answer in time, and with 502 for one that is down', async () => {
    await using upstream = await byHand(() => undefined);
    await using slow = proxyFor(upstream.origin, ['--no-principal', '--response-timeout', '1']);
    await using down = proxyFor('http://127.0.0.1:9', ['--no-principal']);
    const post = { method: 'POST', headers: json, body: ask('a') };
    expect(await send(await slow.origin(), post)).toMatchObject({
      status: 504,
      headers: { 'content-type': 'text/plain; charset=utf-8' },
      body: 'the server did not answer in time\n',
    });
    expect(await send(await down.origin(), post)).toMatchObject({ status: 502, body: 'the server did not answer\n' });
    expect(slow.failures).toEqual(['the upstream server did not answer: timeout']);
    expect(down.failures).toEqual(['the upstream server did not answer: ECONNREFUSED']);
  });

  test('an upload can take longer than --response-timeout, which begins at its end', async () => {
    const [began, begins] = gate();
    await using upstream = await byHand(async (request, response) => {
      if (request.url !== '/upload') return;
      for await (const _ of request) begins();
      response.end('stored');
    });
    await using proxy = proxyFor(upstream.origin, ['--no-principal', '--response-timeout', '1']);
    const origin = await proxy.origin();
    const upload = httpRequest(`${origin}/upload`, { method: 'PUT' });
    const answered = once(upload, 'response');
    upload.write('x');
    await began;
    // This request, which begins after the upload, exceeds the limit.
    expect((await send(origin)).status).toBe(504);
    upload.end('x');
    const [response] = await answered;
    expect([response.statusCode, await textOf(response)]).toEqual([200, 'stored']);
    const put = { method: 'PUT', headers: { 'transfer-encoding': 'chunked' }, body: 'x' };
    expect((await send(`${origin}/other`, put)).status).toBe(504);
  });

  test('an answer that begins before the end of an upload can take longer than --response-timeout', async () => {
    const [uploaded, isUploaded] = gate();
    const [late, isLate] = gate();
    await using upstream = await byHand(async (request, response) => {
      if (request.url !== '/upload') return;
      response.writeHead(200).write('first ');
      for await (const _ of request);
      isUploaded();
      await late;
      response.end('last');
    });
    await using proxy = proxyFor(upstream.origin, ['--no-principal', '--response-timeout', '1']);
    const origin = await proxy.origin();
    const upload = httpRequest(`${origin}/upload`, { method: 'PUT' });
    const answered = once(upload, 'response');
    upload.write('x');
    const [response] = await answered;
    upload.end('x');
    await uploaded;
    expect((await send(origin)).status).toBe(504);
    isLate();
    expect(await textOf(response)).toBe('first last');
  });

  test.runIf(process.platform === 'linux')(
    'an upload to a server that cannot be reached in time is answered with status 504',
    async () => {
      await using proxy = proxyFor(await fullServer(), ['--no-principal', '--response-timeout', '1']);
      const put = { method: 'PUT', headers: { 'transfer-encoding': 'chunked' }, body: 'x' };
      expect((await send(await proxy.origin(), put)).status).toBe(504);
    },
  );

  describe('requests that are sent as raw bytes', () => {
    const head = 'POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n';
    const sent = (body: string, more = ''): string => `${head}${more}Content-Length: ${body.length}\r\n\r\n${body}`;
    const chunked = `${ask('a').length.toString(16)}\r\n${ask('a')}\r\n0\r\n\r\n`;

    /** Sends bytes, and waits for this many answers or the end of the connection. */
    const statuses = async (origin: string, bytes: string, count: number): Promise<readonly string[]> => {
      const socket = connect(Number(new URL(origin).port), '127.0.0.1');
      socket.setEncoding('latin1').write(bytes, 'latin1');
      let text = '';
      for await (const part of socket) {
        text += String(part);
        if ((text.match(/^HTTP/gm) ?? []).length >= count) break;
      }
      socket.destroy();
      return text.match(/(?<=^HTTP\/1\.1 )\d+/gm) ?? [];
    };

    test.each([
      ['two lengths', sent(ask('a'), 'Content-Length: 3\r\n')],
      ['a length and chunks', `${head}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n${chunked}`],
      ['two codings', `${head}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n${chunked}`],
      ['a coding of another name', `${head}Transfer-Encoding: xchunked\r\n\r\n${chunked}`],
      ['a space before the colon', `${head}Transfer-Encoding : chunked\r\n\r\n${chunked}`],
      ['a length with a sign', sent(ask('a')).replace('Length: ', 'Length: +')],
      ['a folded header', sent(ask('a'), 'X-A: b\r\n c: d\r\n')],
      ['a line end within a header', sent(ask('a'), 'X-A: b\rX-B: c\r\n')],
      ['a zero byte within a header', sent(ask('a'), 'X-A: b\0c\r\n')],
      ['two hosts', sent(ask('a'), 'Host: elsewhere.example\r\n')],
      ['line feeds only', sent(ask('a')).replaceAll('\r\n', '\n')],
      ['the address of another server', sent(ask('a')).replace('/mcp', 'http://elsewhere.example/mcp')],
    ])('a request with %s is answered with status 400, and does not reach the server', async (_name, bytes) => {
      let requests = 0;
      await using upstream = await byHand((_request, response) => {
        requests += 1;
        response.end();
      });
      await using proxy = proxyFor(upstream.origin, ['--no-principal']);
      expect(await statuses(await proxy.origin(), bytes, 1)).toEqual(['400']);
      expect(requests).toBe(0);
    });

    test('a connection serves the next request after each refused one', async () => {
      await using upstream = await byHand((request, response) => {
        request.resume();
        response.writeHead(200, json).end('{}');
      });
      await using proxy = proxyFor(upstream.origin, ['--no-principal', '--max-request-bytes', '1000']);
      const forged = JSON.stringify({ id: 1, method: 'tools/call', params: { name: 'a', requestState: 'forged' } });
      const refused = [
        sent(`{"a":"${'x'.repeat(100_000)}"}`),
        sent('{}', 'Content-Encoding: gzip\r\n'),
        sent('{}', 'Authorization: a\r\nAuthorization: b\r\n'),
        sent(forged),
        sent(forged.replace('"a"', 'NaN')),
        sent('{}').replace('localhost', 'elsewhere.example'),
      ];
      const bytes = refused.map((one) => one + sent(ask('a'))).join('');
      const expected = ['413', '415', '400', '200', '400', '421'].flatMap((status) => [status, '200']);
      expect(await statuses(await proxy.origin(), bytes, expected.length)).toEqual(expected);
    });
  });

  test('the proxy answers with status 502 for a server that switches protocols', async () => {
    await using upstream = await byHand((_request, response) => {
      response.socket?.end('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n');
    });
    await using proxy = proxyFor(upstream.origin, ['--no-principal']);
    const post = { method: 'POST', headers: json, body: ask('a') };
    expect(await send(await proxy.origin(), post)).toMatchObject({ status: 502, body: 'the server did not answer\n' });
  });

  test('an answer that stops for --idle-timeout seconds is cut off', async () => {
    await using upstream = await byHand((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n');
    });
    await using proxy = proxyFor(upstream.origin, ['--no-principal', '--idle-timeout', '1']);
    await expect(send(await proxy.origin())).rejects.toMatchObject({ code: 'ECONNRESET' });
    await until(() => proxy.failures.length > 0);
    expect(proxy.failures).toEqual(['the upstream server did not answer: timeout']);
  });

  test('an answer whose JSON body breaks off is replaced with status 502', async () => {
    await using upstream = await byHand((_request, response) => {
      response.writeHead(200, { ...json, 'content-length': 100 }).write('{"jsonrpc"');
      setTimeout(() => response.destroy(), 100);
    });
    await using proxy = proxyFor(upstream.origin, ['--no-principal']);
    const answer = await send(await proxy.origin(), { method: 'POST', headers: json, body: ask('a') });
    expect(answer).toMatchObject({ status: 502 });
  });

  test('a JSON body of 20 MB is answered with status 413, but passes with a larger --max-request-bytes', async () => {
    const received: number[] = [];
    await using upstream = await byHand(async (request, response) => {
      let size = 0;
      for await (const chunk of request) size += chunk.length;
      received.push(size);
      response.end();
    });
    const body = ask('a'.repeat(20_000_000));
    const post = { method: 'POST', headers: { ...json, 'content-length': String(body.length) }, body };
    const chunked = { method: 'POST', headers: { ...json, 'transfer-encoding': 'chunked' }, body };
    await using proxy = proxyFor(upstream.origin, ['--no-principal']);
    expect((await send(await proxy.origin(), post)).status).toBe(413);
    expect((await send(await proxy.origin(), chunked)).status).toBe(413);
    expect(received).toEqual([]);
    await using larger = proxyFor(upstream.origin, ['--no-principal', '--max-request-bytes', '33554432']);
    expect((await send(await larger.origin(), post)).status).toBe(200);
    expect(received).toEqual([body.length]);
  });

  test.each([
    ['a JSON body that is too large', 'localhost', '{"text":"', 413],
    ['a body that the server does not read', 'localhost', 'text', 401],
    ['a body for another host name', 'attacker.example', 'text', 421],
  ])(
    'a client that is answered while it sends %s can send the rest, and another request',
    async (_, host, start, status) => {
      await using upstream = await byHand((_request, response) => response.writeHead(401).end('no'));
      await using proxy = proxyFor(upstream.origin, ['--no-principal']);
      const { port } = new URL(await proxy.origin());
      const socket = connect(Number(port), '127.0.0.1');
      let text = '';
      socket.setEncoding('utf8').on('data', (part) => {
        text += part;
      });
      const chunk = (part: string): string => `${part.length.toString(16)}\r\n${part}\r\n`;
      socket.write(
        `POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n`,
      );
      socket.write(chunk(`${start}${'x'.repeat(5_000_000)}`));
      await until(() => text.startsWith(`HTTP/1.1 ${status}`));
      socket.write(chunk('x'.repeat(20_000_000)));
      socket.write('0\r\n\r\nGET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
      await until(() => text.includes('HTTP/1.1 401', 1));
      expect(proxy.failures).toEqual([]);
      socket.destroy();
    },
  );

  test.each([
    ['a body in chunks', {}],
    ['a body of a known length', { 'Content-Length': '20000001' }],
    [
      'a body whose Content-Length is named by Connection',
      { 'Content-Length': '20000001', Connection: 'content-length' },
    ],
  ])('a body that is not JSON is streamed to the server: %s', async (_, headers: Record<string, string>) => {
    const [began, begins] = gate();
    let size = 0;
    await using upstream = await byHand(async (request, response) => {
      for await (const chunk of request) {
        size += chunk.length;
        begins();
      }
      response.end();
    });
    await using proxy = proxyFor(upstream.origin, ['--no-principal']);
    const request = httpRequest(await proxy.origin(), { method: 'PUT', headers });
    const answered = once(request, 'response');
    request.write('x');
    await began;
    request.end(Buffer.alloc(20_000_000, 'x'));
    const [response] = await answered;
    expect(response.statusCode).toBe(200);
    expect(size).toBe(20_000_001);
  });

  test('a form in another charset is passed on, but a compressed body is answered with status 415', async () => {
    await using upstream = await byHand(async (request, response) => {
      const parts: Buffer[] = [];
      for await (const part of request) parts.push(part);
      response.end(Buffer.concat(parts).toString('hex'));
    });
    await using proxy = proxyFor(upstream.origin, ['--no-principal']);
    const type = 'application/x-www-form-urlencoded; charset=ISO-8859-1';
    const form = { method: 'POST', headers: { 'content-type': type }, body: Buffer.from('a=\xe9', 'latin1') };
    expect(await send(await proxy.origin(), form)).toMatchObject({ status: 200, body: '613de9' });
    const headers = { 'content-type': 'application/x-protobuf', 'content-encoding': 'gzip' };
    const compressed = { method: 'POST', headers, body: gzipSync('trace') };
    expect((await send(await proxy.origin(), compressed)).status).toBe(415);
  });

  test('a digest of the body reaches the server only if the body is unchanged', async () => {
    await using upstream = await byHand((request, response) => {
      request.resume();
      response.writeHead(200, json).end(JSON.stringify({ digest: request.headers['content-digest'] }));
    });
    await using proxy = proxyFor(upstream.origin, ['--no-principal']);
    const post = async (body: string) =>
      JSON.parse(
        (await send(await proxy.origin(), { method: 'POST', headers: { ...json, 'Content-Digest': 'a' }, body })).body,
      );
    expect(await post(ask('a'))).toEqual({});
    expect(await post('{"a":1}')).toEqual({ digest: 'a' });
  });

  test('a client that does not read its answer is disconnected', async () => {
    const [answered, answers] = gate();
    await using upstream = await byHand((request, response) => {
      request.resume();
      response
        .writeHead(200, json)
        .end(JSON.stringify({ jsonrpc: '2.0', id: 1, result: 'x'.repeat(20_000_000) }), answers);
    });
    const times = ['--response-timeout', '1', '--idle-timeout', '1', '--grace', '3600'];
    await using proxy = proxyFor(upstream.origin, ['--no-principal', ...times]);
    const request = httpRequest(await proxy.origin(), { method: 'POST', headers: json });
    request.on('response', (response) => response.pause()).on('error', () => undefined);
    request.end(ask('a'));
    await answered;
    // It ends when no request is in progress.
    proxy.child.kill('SIGTERM');
    expect(await proxy.ended).toBe(0);
    request.destroy();
  });

  test('a client that disconnects ends the request to the server', async () => {
    const [arrived, arrives] = gate();
    const [gone, goes] = gate();
    await using upstream = await byHand((request, response) => {
      response.on('close', () => goes());
      request.resume().on('end', () => arrives());
    });
    await using proxy = proxyFor(upstream.origin, ['--no-principal']);
    const abort = new AbortController();
    const answer = fetch(await proxy.origin(), { method: 'POST', headers: json, body: ask('a'), signal: abort.signal });
    await arrived;
    abort.abort();
    await expect(answer).rejects.toMatchObject({ name: 'AbortError' });
    await gone;
    expect(proxy.failures).toEqual([]);
  });

  test('a client that disconnects from a stream of events ends the request to the server', async () => {
    const [gone, goes] = gate();
    await using upstream = await byHand((_request, response) => {
      response.on('close', () => goes());
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n');
    });
    await using proxy = proxyFor(upstream.origin, ['--no-principal']);
    const abort = new AbortController();
    const response = await fetch(await proxy.origin(), { signal: abort.signal });
    expect(response.headers.get('content-type')).toBe('text/event-stream');
    abort.abort();
    await gone;
    expect(proxy.failures).toEqual([]);
  });
});

describe('an upstream server over TLS', () => {
  const certificate = selfSignedCertificate();
  let secured: Listening;
  let NODE_EXTRA_CA_CERTS: string;
  beforeAll(async () => {
    secured = await served(() => registered(new McpServer(info)), certificate);
    NODE_EXTRA_CA_CERTS = join(project.cwd, 'ca.pem');
    writeFileSync(NODE_EXTRA_CA_CERTS, certificate.cert);
  });
  afterAll(async () => await secured?.[Symbol.asyncDispose]());

  const proxyTo = (upstream: string, variables: Record<string, string>): ProxyProcess =>
    new ProxyProcess(
      project.cwd,
      ['--upstream', upstream, '--audience', 'desk', '--principal-authorization'],
      variables,
    );

  test('two rounds succeed with an upstream server whose certificate authority is in NODE_EXTRA_CA_CERTS', async () => {
    await using proxy = proxyTo(secured.origin, { NODE_EXTRA_CA_CERTS });
    const url = `${await proxy.origin()}/mcp`;
    const requestState = stateOf(await callTool(url, refund));
    const { result } = await callTool(url, { ...refund, requestState });
    expect(result?.content).toEqual([{ type: 'text', text: 'asked:A1' }]);
  });

  test.each([
    ['an unknown certificate authority', '127.0.0.1', {}, 'DEPTH_ZERO_SELF_SIGNED_CERT'],
    ['a certificate for another name', 'localhost', { trusted: true }, 'ERR_TLS_CERT_ALTNAME_INVALID'],
  ])('%s is answered with status 502', async (_, host, { trusted = false }: { trusted?: boolean }, code) => {
    const upstream = secured.origin.replace('127.0.0.1', host);
    await using proxy = proxyTo(upstream, trusted ? { NODE_EXTRA_CA_CERTS } : {});
    expect(await send(await proxy.origin())).toMatchObject({ status: 502, body: 'the server did not answer\n' });
    expect(proxy.failures).toEqual([`the upstream server did not answer: ${code}`]);
  });
});

describe('the process', () => {
  test('a proxy that gets SIGTERM answers requests in progress, accepts no new ones, and ends with exit code 0', async () => {
    const [arrived, arrives] = gate();
    const [stopping, stops] = gate();
    await using upstream = await byHand(async (_request, response) => {
      arrives();
      await stopping;
      response.end('done');
    });
    await using proxy = proxyFor(upstream.origin, ['--no-principal']);
    const origin = await proxy.origin();
    const answer = fetch(origin);
    await arrived;
    proxy.child.kill('SIGTERM');
    await proxy.reported('stopping');
    await expect(fetch(origin)).rejects.toMatchObject({ cause: { code: 'ECONNREFUSED' } });
    stops();
    expect(await (await answer).text()).toBe('done');
    expect(await proxy.ended).toBe(0);
    expect(proxy.stderr).toBe('');
  });

  test('a request in progress is cut off --grace seconds after SIGTERM', async () => {
    const [arrived, arrives] = gate();
    await using upstream = await byHand(() => arrives());
    await using proxy = proxyFor(upstream.origin, ['--no-principal', '--grace', '1']);
    const answer = fetch(await proxy.origin());
    await arrived;
    proxy.child.kill('SIGTERM');
    await expect(answer).rejects.toMatchObject({ cause: { code: 'UND_ERR_SOCKET' } });
    expect(await proxy.ended).toBe(0);
  });

  test('a proxy is live at once, ready and listening only once the codec is ready, and ends on SIGTERM even before that', async () => {
    const empty = emptyProject();
    // No member creates this ring: the store has none, and `createAfterSeconds` is an hour.
    writeFileSync(join(empty.cwd, 'sealring.config.mjs'), WAITING);
    await using proxy = new ProxyProcess(empty.cwd, [
      '--upstream',
      server.origin,
      '--audience',
      'desk',
      '--no-principal',
      '--health-port',
      '0',
    ]);
    const health = String((await proxy.reported('health')).url);
    expect(await send(`${health}/livez`)).toMatchObject({ status: 200 });
    expect(await send(`${health}/readyz`)).toMatchObject({ status: 503, body: '{"ready":false}' });
    proxy.child.kill('SIGTERM');
    expect(await proxy.ended).toBe(0);
    expect(proxy.events.map(({ event }) => event)).toEqual(['health']);
    expect(proxy.stderr).toBe('');
    empty.remove();
  });

  test('/readyz answers with the health of the codec', async () => {
    await using proxy = proxyFor(server.origin, ['--no-principal', '--health-port', '0']);
    await proxy.origin();
    const health = String((await proxy.reported('health')).url);
    const { status, body } = await send(`${health}/readyz`);
    expect({ ...JSON.parse(body), status }).toMatchObject({ status: 200, ready: true, canSeal: true });
    expect(await send(`${health}/`)).toMatchObject({ status: 404 });
  });

  const unwritable = existsSync('/dev/full') ? [['stderr', 'is on a full disk'] as const] : [];
  test.each([
    ['stdout', 'no longer has a reader'] as const,
    ['stderr', 'no longer has a reader'] as const,
    ...unwritable,
  ])('a proxy answers requests even if its %s %s', async (name, trouble) => {
    const args = ['--upstream', server.origin, '--audience', 'desk', '--no-principal'];
    const more = name === 'stdout' ? ['--json'] : [];
    const stderr = trouble === 'is on a full disk' ? openSync('/dev/full', 'w') : 'pipe';
    const child = spawn(process.execPath, [MAIN, 'proxy', ...args, ...more], {
      cwd: project.cwd,
      stdio: ['ignore', 'pipe', stderr],
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    const [line] = await once(Object(child.stdout).setEncoding('utf8'), 'data');
    const origin = String(/(?:"url":"| at )(http:[^" ]+)/.exec(String(line))?.[1]);
    child[name]?.destroy();
    // A failure, which is printed.
    const forged = { method: 'POST', headers: json, body: '{"method":"tools/call","n":NaN}' };
    for (let count = 0; count < 5; count += 1) expect(await send(origin, forged)).toMatchObject({ status: 400 });
  });

  test('fails with cannot-listen for a port in use', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const port = String(Object(taken.address()).port);
    await using proxy = proxyFor(server.origin, ['--no-principal', '--port', port]);
    expect(await proxy.ended).toBe(1);
    expect(proxy.stderr).toBe(`error: cannot listen on 127.0.0.1 port ${port}: EADDRINUSE\n`);
    taken.close();
  });

  test.each(documented())('runs as documented: %s', async (line) => {
    const given = line
      .replaceAll(/\\\n\s*/g, '')
      .trim()
      .split(/\s+/)
      .slice(3);
    const args = given.map((arg, at) => {
      if (given[at - 1] === '--upstream') return server.origin;
      return /^--(?:health-)?port$/.test(given[at - 1] ?? '') ? '0' : arg;
    });
    await using proxy = new ProxyProcess(project.cwd, args);
    const { status } = await send(await proxy.origin(), { headers: { host: 'localhost' } });
    expect(status).toBe(405);
  });

  test.each([
    ['a lifetime longer than that of the keys', ['--no-principal', '--ttl', '999999'], /ttlSeconds/],
    [
      'no choice of a user',
      [],
      /exactly one of --principal-header <name>, --principal-authorization and --no-principal/,
    ],
    ['two choices of a user', ['--no-principal', '--principal-authorization'], /exactly one of/],
  ])('a proxy does not start with %s', async (_name, args, message) => {
    await using proxy = proxyFor(server.origin, args);
    expect(await proxy.ended).toBe(2);
    expect(proxy.stderr).toMatch(message);
  });

  test('a proxy does not start with a password in --upstream, and does not repeat the password', async () => {
    await using proxy = proxyFor('http://user:s3cret@127.0.0.1:8000', ['--no-principal']);
    expect(await proxy.ended).toBe(2);
    expect(proxy.stderr).toContain('--upstream must be an http(s) URL without a user and a password');
    expect(proxy.stderr).not.toContain('s3cret');
  });
});

/** The commands of the guide and of the help. */
function documented(): string[] {
  const guide = readFileSync(new URL('../../docs/guides/proxy.md', import.meta.url), 'utf8');
  const help = execFileSync(process.execPath, [MAIN, 'proxy', '--help'], { encoding: 'utf8' });
  const commands = [
    ...guide.matchAll(/^npx sealring proxy .*$/gm),
    ...help.matchAll(/npx sealring proxy (?:.*\\\n)*.*$/gm),
  ];
  return commands.map(([command]) => command);
}

const WAITING = `import { fileRing, localKeyWrapper } from '@sealring/core';
export default {
  ringName: 'waiting',
  ring: fileRing(new URL('absent.ring', import.meta.url).pathname),
  keyWrapper: localKeyWrapper({ masterKey: '${'A'.repeat(42)}E' }),
  policy: { createAfterSeconds: 3_600, startTimeoutSeconds: 3_600 },
};
`;

const onceOnly = (url: string): string => `import { localKeyWrapper } from '@sealring/core';
import { redisRing, redisSingleUse } from '@sealring/redis';
export default {
  ring: redisRing({ url: '${url}' }),
  keyWrapper: localKeyWrapper({ masterKey: '${'A'.repeat(42)}E' }),
  singleUse: redisSingleUse({ url: '${url}' }),
};
`;
