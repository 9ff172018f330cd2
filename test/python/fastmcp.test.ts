import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { toNodeHandler } from '@modelcontextprotocol/node';
import {
  type AuthInfo,
  type CallToolResult,
  createMcpHandler,
  fromJsonSchema,
  type InputRequiredResult,
  inputRequired,
  McpServer,
} from '@modelcontextprotocol/server';
import { createKmsCodec, fileRing, type KmsCodec, localKeyWrapper } from '@sealring/core';
import {
  authenticatedPrincipal,
  authInfoOf,
  createProtectedMcpServer,
  InvalidClaimError,
  RequestStateSecurity,
} from '@sealring/mcp';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { callTool } from '../support/call-tool.ts';
import { startLocalServer } from '../support/local-server.ts';
import { closed, listening } from '../support/loopback.ts';
import { pythonVenv } from '../support/python-venv.ts';
import type { TestServer } from '../support/redis.ts';
import { runProgram } from '../support/run-program.ts';
import { AccessTokens } from './access-tokens.ts';
import { packageFolder } from './python-package.ts';
import { FASTMCP_REQUIREMENTS } from './requirements.ts';

const ISSUER = 'https://login.example';
const AUDIENCE = 'refund-desk';
const MASTER_KEY = randomBytes(32).toString('base64');
const ORDER = { name: 'refund', argumentsText: '{"order":"A1"}' };
const REFUSED = {
  error: { code: -32602, message: 'Invalid or expired requestState', data: { reason: 'invalid_request_state' } },
};
const REFUNDED = { result: { content: [{ type: 'text', text: 'refunded A1' }] } };

const guide = readFileSync(fileURLToPath(new URL('../../docs/guides/fastmcp.md', import.meta.url)), 'utf8');
const folder = mkdtempSync(join(tmpdir(), 'sealring-fastmcp-'));
const tokens = new AccessTokens();
let python = '';

beforeAll(async () => {
  python = join(await pythonVenv('fastmcp', FASTMCP_REQUIREMENTS), 'python');
});
afterAll(() => rmSync(folder, { recursive: true }));

/** An access token of a user. FastMCP uses `azp` as client id if there is no `client_id`. */
function signedIn(sub: string, more: object = {}): string {
  return tokens.issue({ iss: ISSUER, aud: AUDIENCE, azp: 'shop', sub, exp: 4e9, scope: 'refund', ...more });
}

/** The program on the page, as a user would save it. */
function guideProgram(): string {
  const [, program = ''] = /^```python\n(.*?)^```$/ms.exec(guide) ?? [];
  const path = join(folder, 'desk.py');
  writeFileSync(path, program);
  return path;
}

function startFastmcp(ringPath: string): Promise<TestServer> {
  const program = guideProgram();
  // The program takes its port from the environment.
  const withPort = 'import os, runpy, sys; os.environ["PORT"] = sys.argv[2]; runpy.run_path(sys.argv[1])';
  return startLocalServer({
    name: 'fastmcp',
    command: python,
    args: (port) => ['-c', withPort, program, String(port)],
    env: {
      PYTHONPATH: join(packageFolder, 'src'),
      PYTHONDONTWRITEBYTECODE: '1',
      FASTMCP_CHECK_FOR_UPDATES: 'off',
      SEALRING_MASTER_KEY: MASTER_KEY,
      RING_PATH: ringPath,
      JWT_PUBLIC_KEY: tokens.publicKey,
      JWT_ISSUER: ISSUER,
    },
    readySeconds: 60,
    ready: async (address) => (await fetch(`${address}/mcp`, { method: 'POST' })).status === 401,
  });
}

interface TypescriptServer {
  readonly url: string;
  /** The errors that `server.onerror` received. */
  readonly log: string[];
  stop(): Promise<void>;
}

async function startTypescript(
  codec: KmsCodec,
  authOf: (token: string, claims: Record<string, unknown>) => AuthInfo,
): Promise<TypescriptServer> {
  const security = new RequestStateSecurity({ codec, audience: AUDIENCE, requireSubject: true });
  const log: string[] = [];
  const mcp = createMcpHandler(() => {
    const server = createProtectedMcpServer({ McpServer, serverInfo: { name: 'desk', version: '1.0.0' }, security });
    Object.assign(server.server, { onerror: ({ message }: Error) => log.push(message) });
    const inputSchema = fromJsonSchema<{ order: string }>({
      type: 'object',
      properties: { order: { type: 'string' } },
    });
    server.registerTool('refund', { inputSchema }, ({ order }, ctx): CallToolResult | InputRequiredResult => {
      const state = ctx.mcpReq.requestState<string>();
      if (state !== undefined) return { content: [{ type: 'text', text: `refunded ${state}` }] };
      const sure = inputRequired.elicit({
        message: 'Refund this order?',
        requestedSchema: { type: 'object', properties: { ok: { type: 'boolean' } } },
      });
      return inputRequired({ inputRequests: { sure }, requestState: order });
    });
    return server;
  });
  const handle = toNodeHandler(mcp);
  const http = createServer((request, response) => {
    const { method = 'GET', url = '/' } = request;
    const token = request.headers.authorization?.slice('Bearer '.length) ?? '';
    const claims = tokens.claimsOf(token);
    if (claims === undefined) response.writeHead(401).end();
    else void handle(Object.assign(request, { method, url, auth: authOf(token, claims) }), response);
  });
  const url = `${await listening(http)}mcp`;
  return {
    url,
    log,
    async stop() {
      await mcp.close();
      await closed(http);
    },
  };
}

/** Calls the tool with the official client. The second round goes to `second`. */
async function refund(first: string, second: string, token: string): Promise<unknown> {
  const client = new Client(
    { name: 'shop', version: '1.0.0' },
    { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: { pin: '2026-07-28' } } },
  );
  client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { ok: true } }));
  const transport = new StreamableHTTPClientTransport(new URL(first), {
    authProvider: { token: async () => token },
    fetch: (_url, init) => {
      const isSecondRound = typeof init?.body === 'string' && init.body.includes('"requestState"');
      return fetch(isSecondRound ? second : first, init);
    },
  });
  await client.connect(transport);
  try {
    return (await client.callTool({ name: 'refund', arguments: { order: 'A1' } })).content;
  } finally {
    await client.close();
  }
}

async function sealedBy(url: string, user: string): Promise<string> {
  const { result } = await callTool(url, { ...ORDER, user });
  const token = result?.requestState ?? '';
  expect(token).toMatch(/^sr1\./);
  return token;
}

describe('a FastMCP server and a TypeScript server on one ring', () => {
  let codec: KmsCodec;
  let fastmcp: TestServer;
  let typescript: TypescriptServer;
  /** Its verifier omits the issuer. */
  let byHand: TypescriptServer;
  let urls: { readonly fastmcp: string; readonly typescript: string };

  beforeAll(async () => {
    const path = join(folder, 'desk.ring');
    codec = await createKmsCodec({
      keyWrapper: localKeyWrapper({ masterKey: MASTER_KEY }),
      ring: fileRing(path),
      ringName: 'refund-desk',
      create: 'now',
    });
    fastmcp = await startFastmcp(path);
    typescript = await startTypescript(codec, (token, claims) => authInfoOf({ token, claims }));
    byHand = await startTypescript(codec, (token, { azp, sub }) => ({
      token,
      clientId: String(azp),
      scopes: [],
      extra: { sub },
    }));
    urls = { fastmcp: `${fastmcp.address}/mcp`, typescript: typescript.url };
  });
  afterAll(async () => {
    await typescript?.stop();
    await byHand?.stop();
    await fastmcp?.stop();
    await codec?.close();
  });

  test.each([
    ['fastmcp', 'fastmcp'],
    ['fastmcp', 'typescript'],
    ['typescript', 'fastmcp'],
  ] as const)('a call of the official client that begins on %s and ends on %s completes', async (first, second) => {
    for (const token of [signedIn('ada'), signedIn('ada', { client_id: 'shop' }), signedIn('ada', { azp: '' })]) {
      expect(await refund(urls[first], urls[second], token)).toEqual([{ type: 'text', text: 'refunded A1' }]);
    }
    expect(typescript.log).toEqual([]);
  });

  test.each([
    ['fastmcp', 'fastmcp'],
    ['fastmcp', 'typescript'],
    ['typescript', 'fastmcp'],
  ] as const)(
    'a state from %s is refused on %s for another user, for other arguments and if it was changed',
    async (first, second) => {
      const [ada, url] = [signedIn('ada'), urls[second]];
      const requestState = await sealedBy(urls[first], ada);
      const middle = Math.floor(requestState.length / 2);
      const tampered = `${requestState.slice(0, middle)}${requestState[middle] === 'A' ? 'B' : 'A'}${requestState.slice(middle + 1)}`;
      const bob = signedIn('bob');
      expect(await callTool(url, { ...ORDER, user: bob, requestState }), 'another user').toMatchObject(REFUSED);
      const other = { name: 'refund', argumentsText: '{"order":"A2"}' };
      expect(await callTool(url, { ...other, user: ada, requestState }), 'other arguments').toMatchObject(REFUSED);
      expect(await callTool(url, { ...ORDER, user: ada, requestState: tampered }), 'tampered').toMatchObject(REFUSED);
      expect(await callTool(url, { ...ORDER, user: ada, requestState }), 'the same user').toMatchObject(REFUNDED);
    },
  );

  test('servers refuse each other’s states if a verifier omits the issuer, and name the issuer in the log', async () => {
    const user = signedIn('ada');
    const theirs = await sealedBy(urls.fastmcp, user);
    const own = await sealedBy(byHand.url, user);
    typescript.log.length = 0;
    expect(await callTool(byHand.url, { ...ORDER, user, requestState: theirs })).toMatchObject(REFUSED);
    expect(await callTool(urls.fastmcp, { ...ORDER, user, requestState: own })).toMatchObject(REFUSED);
    expect(await callTool(urls.typescript, { ...ORDER, user, requestState: own })).toMatchObject(REFUSED);
    const refused = 'requestState: refused inbound on tools/call: principal';
    expect(byHand.log).toEqual([`${refused} (the client, the issuer or the user differs; the request has no issuer)`]);
    expect(typescript.log).toEqual([`${refused} (the state was sealed without an issuer)`]);
  });
});

/** Claims that are strings, or that FastMCP does not read. */
const SAME: readonly object[] = [
  { client_id: 'shop', iss: ISSUER, sub: 'ada' },
  { client_id: 'shop', azp: 'other', sub: 'ada' },
  { azp: 'shop', sub: 'ada' },
  { azp: 'shop', iss: `${ISSUER}/`, sub: 'ada' },
  { sub: 'ada' },
  {},
  { client_id: '', azp: 'shop', sub: 'ada' },
  { client_id: null, azp: '', sub: 'ada' },
  { client_id: '', azp: '', sub: '' },
  { client_id: 'shop', iss: '', sub: '' },
  { client_id: 'shop', iss: null, sub: null },
  { client_id: 'shop', azp: 5, sub: 'ada' },
  { client_id: 'é🔑東', iss: 'https://é.example', sub: '\u007f\u2028' },
  { client_id: 'shop\ud800', sub: '\udc00' },
  { client_id: '"\\\n\u0000', iss: '/', sub: '</script>' },
  { client_id: ' shop ', sub: ' ' },
  { client_id: 'shop', sub: 'ada', aud: ['a', 'b'], scope: 'a b', exp: 4e9 + 0.5 },
  { clientId: 'no', appid: 'no', sub: 'ada' },
  JSON.parse('{"client_id":"shop","constructor":"x","__proto__":{"sub":"admin"}}'),
];
/** Claims of other types, and the principal that FastMCP gives them. */
const OF_OTHER_TYPES: readonly (readonly [object, string | null])[] = [
  [{ client_id: 5, sub: 'ada' }, '["5",null,"ada"]'],
  [{ client_id: 0, azp: 'shop' }, '["shop",null,null]'],
  [{ client_id: ['shop'] }, `["['shop']",null,null]`],
  [{ client_id: 'shop', iss: 5 }, '["shop","5",null]'],
  [{ client_id: 'shop', sub: 5 }, null],
  [{ client_id: 'shop', exp: 'soon' }, null],
  [{ client_id: 'shop', scope: ['a', 5] }, null],
];

/** The principals of one access token, by the class of FastMCP that verified it. */
type Principals = Readonly<
  Record<'JWTVerifier' | 'AWSCognitoTokenVerifier' | 'IntrospectionTokenVerifier', string | null>
>;

async function principalsOf(claims: readonly object[]): Promise<readonly Principals[]> {
  const authorizationServer = createServer((request, response) => {
    void text(request).then((body) => {
      const answer = tokens.claimsOf(new URLSearchParams(body).get('token') ?? '');
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ ...answer, active: answer !== undefined }));
    });
  });
  const introspection = await listening(authorizationServer);
  const program = fileURLToPath(new URL('fastmcp_principals.py', import.meta.url));
  const input = join(folder, 'tokens.json');
  writeFileSync(input, JSON.stringify(claims.map((each) => tokens.issue(each))));
  const shell = ['-c', 'exec "$0" "$1" "$2" "$3" < "$4"', python, program, tokens.publicKey, introspection, input];
  const { code, output } = await runProgram('sh', shell, { timeoutMs: 60_000 });
  await closed(authorizationServer);
  expect(code, output).toBe(0);
  return JSON.parse(output);
}

function ourPrincipalOf(claims: object, only?: readonly string[]): string | null {
  const token = tokens.issue(claims);
  const all = tokens.claimsOf(token) ?? {};
  const given = Object.fromEntries(Object.entries(all).filter(([name]) => only?.includes(name) ?? true));
  return authenticatedPrincipal({ http: { authInfo: authInfoOf({ token, claims: given }) } });
}

describe('authInfoOf', () => {
  test('gives the same principal as FastMCP for every set of string claims', async () => {
    const theirs = await principalsOf(SAME);
    expect(theirs.map(({ JWTVerifier }) => JWTVerifier)).not.toContain(null);
    expect(SAME.map((claims) => ourPrincipalOf(claims))).toEqual(theirs.map(({ JWTVerifier }) => JWTVerifier));
  });

  test('gives the principal of Cognito and of introspection for the claims in the guide', async () => {
    const { client_id, iss, sub } = { client_id: 'shop', iss: ISSUER, sub: 'ada' };
    const claims = [
      { client_id, iss, sub },
      { client_id, azp: 'other', iss, sub },
      { azp: 'other', iss, sub },
      { iss, sub },
    ];
    const theirs = await principalsOf(claims);
    const [first] = theirs;
    expect(first?.AWSCognitoTokenVerifier).toBe('["shop",null,"ada"]');
    expect(claims.map((each) => ourPrincipalOf(each, ['client_id', 'iss', 'sub']))).toEqual(
      theirs.map(({ IntrospectionTokenVerifier }) => IntrospectionTokenVerifier),
    );
    // A token of Cognito has a client_id.
    expect(claims.slice(0, 2).map((each) => ourPrincipalOf(each, ['client_id', 'sub']))).toEqual(
      theirs.slice(0, 2).map(({ AWSCognitoTokenVerifier }) => AWSCognitoTokenVerifier),
    );
  });

  test('throws for claims of other types, which FastMCP refuses or reads as text', async () => {
    const theirs = await principalsOf(OF_OTHER_TYPES.map(([claims]) => claims));
    expect(theirs.map(({ JWTVerifier }) => JWTVerifier)).toEqual(OF_OTHER_TYPES.map(([, principal]) => principal));
    for (const [claims] of OF_OTHER_TYPES) expect(() => ourPrincipalOf(claims)).toThrow(InvalidClaimError);
  });
});

test('a FastMCP server without a name gets a random one, which is its audience', async () => {
  const names = 'from fastmcp import FastMCP; print(FastMCP().name, FastMCP().name, FastMCP("desk").name)';
  const { output } = await runProgram(python, ['-c', names]);
  const [one, other, named] = output.trim().split(' ');
  expect(one).not.toBe(other);
  expect(named).toBe('desk');
});

test('the guide has a row for every provider of FastMCP', async () => {
  const list = 'import os, fastmcp.server.auth.providers as p; print(*os.listdir(p.__path__[0]))';
  const { output } = await runProgram(python, ['-c', list]);
  const files = output.split(/\s+/).filter((name) => name.endsWith('.py') && name !== '__init__.py');
  expect(files.length).toBeGreaterThan(15);
  const named = new Set([...guide.matchAll(/^\| `\w+` \| `(\w+\.py)` \|/gm)].map(([, file]) => file));
  expect(named).toEqual(new Set(files));
});
