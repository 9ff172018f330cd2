import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { npmEnvironment } from '../support/npm-environment.ts';
import { runProgram } from '../support/run-program.ts';
import { packTarball } from '../support/tarballs.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const typescript = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
const {
  peerDependencies,
  devDependencies,
}: Record<string, Record<string, string>> = JSON.parse(readFileSync(join(root, 'packages/mcp/package.json'), 'utf8'));
const SDK = '@modelcontextprotocol/server';
/** The first version of the range, and the version of every other test. */
const ENDS = [/\d+\.\d+\.\d+/.exec(peerDependencies?.[SDK] ?? '')?.[0] ?? '', devDependencies?.[SDK] ?? ''];

const folder = mkdtempSync(join(tmpdir(), 'sealring-mcp-sdk-'));
let ours: Readonly<Record<string, string>>;
beforeAll(() => {
  const names = ['core', 'mcp'];
  ours = Object.fromEntries(names.map((name) => [`@sealring/${name}`, `file:${packTarball(name, folder)}`]));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A project with these packages and others, and `program.ts`. */
async function projectWith(name: string, dependencies: Readonly<Record<string, string>>, program: string) {
  const cwd = join(folder, name);
  mkdirSync(cwd);
  const manifest = { private: true, type: 'module', dependencies: { ...ours, ...dependencies } };
  writeFileSync(join(cwd, 'package.json'), JSON.stringify(manifest));
  writeFileSync(join(cwd, 'program.ts'), program);
  const install = ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--silent'];
  const env = npmEnvironment();
  const { code, output } = await runProgram('npm', install, { cwd, env, timeoutMs: 300_000 });
  if (code !== 0) throw new Error(`npm install ended with ${code}: ${output}`);
  return cwd;
}

test('the range begins at 2.0.0', () => {
  expect(ENDS[0]).toBe('2.0.0');
});

describe.each(ENDS)('a project with the MCP SDK %s', (version) => {
  let cwd: string;
  beforeAll(async () => {
    const dependencies = { [SDK]: version, '@modelcontextprotocol/client': version, '@types/node': '20.19.0' };
    cwd = await projectWith(version, dependencies, PROGRAM);
  });

  test('npm installs exactly this version', () => {
    const manifest = readFileSync(join(cwd, 'node_modules', SDK, 'package.json'), 'utf8');
    expect(JSON.parse(manifest).version).toBe(version);
  });

  test('a program compiles', async () => {
    const options = ['--target', 'ES2022', '--module', 'NodeNext', '--strict', '--noEmit', '--types', 'node'];
    const compiled = await runProgram(process.execPath, [typescript, ...options, 'program.ts'], { cwd });
    expect(compiled).toMatchObject({ code: 0, output: '' });
  });

  test('a new server, an adopted one and protectFetch serve two rounds to the client, and refuse other arguments', async () => {
    const { code, output } = await runProgram(process.execPath, ['program.ts'], { cwd });
    const SERVED = { content: [{ type: 'text', text: 'asked:A1' }], reason: 'request binding' };
    expect({ code, ...JSON.parse(output.split('\n').find((line) => line.startsWith('{')) ?? '{}') }).toEqual({
      code: 0,
      new: SERVED,
      adopted: SERVED,
      fetch: SERVED,
    });
  });
});

test('a server of the SDK 1.x is rejected with an error that names the SDK', async () => {
  const dependencies = { [SDK]: ENDS[1] ?? '', '@modelcontextprotocol/sdk': '1.32.2' };
  const cwd = await projectWith('sdk-1', dependencies, PROGRAM_OF_SDK_1);
  const { output } = await runProgram(process.execPath, ['program.ts'], { cwd });
  const message =
    'protectRequestState: server belongs to the MCP SDK 1.x (@modelcontextprotocol/sdk), which has no requestState; use ' +
    '@modelcontextprotocol/server 2.0 or later';
  expect(output.split('\n').filter((line) => line.startsWith('protectRequestState'))).toEqual([message, message]);
});

const PROGRAM = `
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { createMcpHandler, fromJsonSchema, inputRequired, McpServer } from '@modelcontextprotocol/server';
import { createProtectedMcpServer, protectFetch, protectRequestState, RequestStateSecurity } from '@sealring/mcp';

const reasons: string[] = [];
const security = new RequestStateSecurity({
  keys: ['a key of thirty-two bytes or more, for tests'],
  onReject: ({ reason }) => void reasons.push(reason),
});
const serverInfo = { name: 'desk', version: '1.0.0' };
const inputSchema = fromJsonSchema<{ order: string }>({ type: 'object', properties: { order: { type: 'string' } } });

function registered(server: McpServer): McpServer {
  server.registerTool('refund', { inputSchema }, ({ order }, ctx) => {
    const state = ctx.mcpReq.requestState<string>();
    if (state !== undefined) return { content: [{ type: 'text' as const, text: state }] };
    const sure = inputRequired.elicit({ message: 'Sure?', requestedSchema: { type: 'object', properties: {} } });
    return inputRequired({ inputRequests: { sure }, requestState: 'asked:' + order });
  });
  return server;
}

const handlerOf = (factory: () => McpServer) => {
  const handler = createMcpHandler(factory);
  return (request: Request) => handler.fetch(request);
};
const servers = {
  new: handlerOf(() => registered(createProtectedMcpServer({ McpServer, serverInfo, security }))),
  adopted: handlerOf(() => {
    return protectRequestState(registered(new McpServer(serverInfo)), security, { defaultAudience: 'desk', adopt: true });
  }),
  fetch: protectFetch(handlerOf(() => registered(new McpServer(serverInfo))), security, {
    audience: 'desk',
    bindPrincipal: null,
  }),
};

const outcomes: Record<string, unknown> = {};
for (const [name, serve] of Object.entries(servers)) {
  const client = new Client(
    { name: 'shop', version: '1.0.0' },
    { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: { pin: '2026-07-28' } } },
  );
  client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: {} }));
  const sent: Request[] = [];
  const fetch = async (input: string | URL | Request, init?: RequestInit) => {
    const request = new Request(input, init);
    sent.push(request.clone());
    return serve(request);
  };
  await client.connect(new StreamableHTTPClientTransport(new URL('http://127.0.0.1/mcp'), { fetch }));
  const { content } = await client.callTool({ name: 'refund', arguments: { order: 'A1' } });
  await client.close();
  const last = sent.at(-1);
  if (last === undefined) throw new Error('nothing was sent');
  const { headers } = last;
  const body = (await last.text()).replace('"A1"', '"A2"');
  await (await serve(new Request(last.url, { method: 'POST', headers, body }))).text();
  outcomes[name] = { content, reason: reasons.pop() };
}
console.log(JSON.stringify(outcomes));
process.exit(0);
`;

const PROGRAM_OF_SDK_1 = `
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { protectRequestState, RequestStateSecurity } from '@sealring/mcp';

const security = new RequestStateSecurity({ keys: ['a key of thirty-two bytes or more, for tests'] });
const info = { name: 'desk', version: '1.0.0' };
for (const server of [new McpServer(info), new Server(info, { capabilities: {} })]) {
  try {
    protectRequestState(server as never, security, { defaultAudience: 'desk' });
  } catch (error) {
    console.log((error as Error).message);
  }
}
process.exit(0);
`;
