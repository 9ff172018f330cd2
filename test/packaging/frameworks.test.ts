import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ProxyProcess, projectWithRing } from '../cli/proxy-process.ts';
import { callTool } from '../support/call-tool.ts';
import { npmEnvironment } from '../support/npm-environment.ts';
import { freePort } from '../support/redis.ts';
import { runProgram } from '../support/run-program.ts';
import { packTarball } from '../support/tarballs.ts';
import { until } from '../support/until.ts';
import { bundleForWorkerd, hasWorkerd, startWorkers } from '../support/workerd.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const typescript = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
const guide = readFileSync(join(root, 'docs/guides/any-framework.md'), 'utf8');

interface Recipe {
  /** The section of the guide with the file. */
  readonly section: string;
  readonly dependencies: Readonly<Record<string, string>>;
  /** The file listens by itself, exports a handler for Node.js or workerd, or is bundled into a server by xmcp. */
  readonly serves: 'itself' | 'fetch' | 'workerd' | 'xmcp';
  /** Whether `sealring proxy` is in front of it. */
  readonly isProxied?: boolean;
  /** The tool's answer in the second round. */
  readonly text?: string;
}

const SDK = '2.4.0';
const NEST = '^12.0.0';
const RECIPES: readonly Recipe[] = [
  { section: 'mcp-use', dependencies: { 'mcp-use': '2.5.2', zod: '^4.6.7' }, serves: 'fetch' },
  {
    section: 'Cloudflare agents',
    dependencies: {
      agents: '0.32.0',
      '@modelcontextprotocol/client': SDK,
      '@modelcontextprotocol/server': SDK,
      zod: '^4.6.7',
    },
    serves: 'workerd',
  },
  {
    section: 'Nest',
    dependencies: {
      '@rekog/mcp-nest': '2.0.5',
      '@modelcontextprotocol/core': SDK,
      '@modelcontextprotocol/node': '2.1.2',
      '@modelcontextprotocol/server': SDK,
      '@nestjs/common': NEST,
      '@nestjs/core': NEST,
      '@nestjs/microservices': NEST,
      '@nestjs/platform-express': NEST,
      'reflect-metadata': '^0.2.2',
      zod: '^4.6.7',
    },
    serves: 'itself',
  },
  {
    section: 'Mastra',
    dependencies: { '@mastra/mcp': '2.0.0', '@mastra/core': '^1.68.0', zod: '^4.6.7' },
    serves: 'itself',
    isProxied: true,
    text: '{"text":"asked:A1"}',
  },
  {
    section: 'xmcp',
    dependencies: {
      xmcp: '1.1.3',
      '@xmcp-dev/compiler': '1.1.3',
      '@modelcontextprotocol/server': SDK,
      typescript: '^5.9.3',
      zod: '^4.6.7',
    },
    serves: 'xmcp',
    isProxied: true,
  },
];

const SECURITY = `
import { RequestStateSecurity } from '@sealring/mcp';
export const security = new RequestStateSecurity({
  keys: ['a key of thirty-two bytes or more, for tests'],
  requireSubject: true,
});
export const userOf = async (header) => {
  const token = header?.replace('Bearer ', '');
  return token ? { token, clientId: 'shop', scopes: [], extra: { sub: token } } : undefined;
};
`;

const SERVE = `
import { serve } from '@hono/node-server';
import server from './recipe.js';
serve({ fetch: (request) => server.fetch(request), port: Number(process.env.PORT), hostname: '127.0.0.1' });
`;

const folder = mkdtempSync(join(tmpdir(), 'sealring-frameworks-'));
let ours: Readonly<Record<string, string>>;
beforeAll(() => {
  const names = ['core', 'mcp'];
  ours = Object.fromEntries(names.map((name) => [`@sealring/${name}`, `file:${packTarball(name, folder)}`]));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The file in a section of the guide. */
function fileOf(section: string): string {
  const text = guide.split(/^## /m).find((one) => one.startsWith(`${section}\n`));
  const code = /^```js\n(.*?)^```$/ms.exec(text ?? '')?.[1];
  if (code === undefined) throw new Error(`the guide has no file in the section ${section}`);
  return code;
}

async function installed({ section, dependencies }: Recipe): Promise<string> {
  const cwd = join(folder, section.replaceAll(' ', '-'));
  mkdirSync(cwd);
  const all = { ...ours, '@hono/node-server': '^2.1.8', hono: '^4.13.19', ...dependencies };
  writeFileSync(join(cwd, 'package.json'), JSON.stringify({ private: true, type: 'module', dependencies: all }));
  const install = ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--silent'];
  const { code, output } = await runProgram('npm', install, { cwd, env: npmEnvironment(), timeoutMs: 300_000 });
  if (code !== 0) throw new Error(`npm install ended with ${code}: ${output}`);
  return cwd;
}

/** Writes the files of the recipe. @returns the program that listens on the port, or must be bundled for workerd. */
async function built({ section, serves }: Recipe, cwd: string, port: number): Promise<string> {
  if (serves === 'xmcp') {
    mkdirSync(join(cwd, 'src/tools'), { recursive: true });
    writeFileSync(join(cwd, 'src/tools/refund.ts'), fileOf(section));
    const config = { http: { port, host: '127.0.0.1' }, paths: { prompts: false, resources: false } };
    writeFileSync(join(cwd, 'xmcp.config.ts'), `export default ${JSON.stringify(config)};`);
    const compilerOptions = { target: 'ES2022', module: 'ESNext', moduleResolution: 'bundler', skipLibCheck: true };
    writeFileSync(join(cwd, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['src'] }));
    const bundled = await runProgram(process.execPath, ['node_modules/xmcp/dist/cli.js', 'build'], { cwd });
    if (bundled.code !== 0) throw new Error(bundled.output);
    return 'dist/http.js';
  }
  writeFileSync(join(cwd, 'recipe.ts'), fileOf(section));
  // It is needed only for the decorators.
  const options = ['--target', 'ES2022', '--module', 'NodeNext', '--experimentalDecorators', '--noCheck'];
  const compiled = await runProgram(process.execPath, [typescript, ...options, 'recipe.ts'], { cwd });
  if (compiled.code !== 0) throw new Error(compiled.output);
  writeFileSync(join(cwd, 'security.js'), SECURITY);
  writeFileSync(join(cwd, 'serve.js'), SERVE);
  return serves === 'fetch' ? 'serve.js' : 'recipe.js';
}

interface RunningRecipe {
  readonly origin: string;
  stop(): Promise<void>;
}

async function startInWorkerd(recipe: Recipe, cwd: string): Promise<RunningRecipe> {
  const program = join(cwd, await built(recipe, cwd, 0));
  const file = await bundleForWorkerd(program, cwd, 'worker');
  const running = await startWorkers(cwd, [{ file, bindings: {} }]);
  return { origin: String(running.origins[0]), stop: () => running.stop() };
}

async function startOnNode(recipe: Recipe, cwd: string): Promise<RunningRecipe> {
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  const program = await built(recipe, cwd, port);
  const running = spawn(process.execPath, [program], { cwd, env: { ...npmEnvironment(), PORT: String(port) } });
  let printed = '';
  for (const stream of [running.stdout, running.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      printed += text;
    });
  }
  await until(async () => {
    if (running.exitCode !== null) throw new Error(`the server ended: ${printed}`);
    return await fetch(origin).then(
      () => true,
      () => false,
    );
  }, 60);
  return {
    origin,
    async stop() {
      if (running.exitCode !== null) return;
      running.kill('SIGKILL');
      await once(running, 'exit');
    },
  };
}

const runnable = RECIPES.filter(({ serves }) => serves !== 'workerd' || hasWorkerd);
describe.each(runnable)('the recipe for $section', (recipe) => {
  let server: RunningRecipe | undefined;
  let origin = '';
  let project: Awaited<ReturnType<typeof projectWithRing>> | undefined;
  let proxy: ProxyProcess | undefined;

  beforeAll(async () => {
    const cwd = await installed(recipe);
    server = await (recipe.serves === 'workerd' ? startInWorkerd(recipe, cwd) : startOnNode(recipe, cwd));
    ({ origin } = server);
    if (recipe.isProxied !== true) return;
    project = await projectWithRing();
    const options = ['--audience', 'refund-desk', '--principal-authorization'];
    proxy = new ProxyProcess(project.cwd, ['--upstream', origin, ...options]);
    origin = await proxy.origin();
  });

  afterAll(async () => {
    await proxy?.[Symbol.asyncDispose]();
    project?.remove();
    await server?.stop();
  });

  test('serves two rounds to the official client', async () => {
    const client = new Client(
      { name: 'shop', version: '1.0.0' },
      { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: { pin: '2026-07-28' } } },
    );
    client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { ok: true } }));
    const url = new URL(`${origin}/mcp`);
    await client.connect(new StreamableHTTPClientTransport(url, { authProvider: { token: async () => 'ada' } }));
    const { content } = await client.callTool({ name: 'refund', arguments: { order: 'A1' } });
    await client.close();
    expect(content).toEqual([{ type: 'text', text: recipe.text ?? 'asked:A1' }]);
  });

  test.each([
    ['a state that the client made up', { requestState: 'asked:A1' }],
    ['other arguments', { argumentsText: '{"order":"A2"}' }],
    ['another user', { user: 'grace' }],
  ])('a request with %s is refused', async (_name, change) => {
    const refund = { name: 'refund', argumentsText: '{"order":"A1"}', user: 'ada' };
    const { result } = await callTool(`${origin}/mcp`, refund);
    expect(result?.requestState).toMatch(/^[\w.-]{100,}$/);
    expect(Buffer.from(result?.requestState?.split('.')[1] ?? '', 'base64url').toString()).not.toContain('refund');
    const answer = await callTool(`${origin}/mcp`, { ...refund, requestState: result?.requestState, ...change });
    expect(answer.error).toEqual({
      code: -32602,
      message: 'Invalid or expired requestState',
      data: { reason: 'invalid_request_state' },
    });
  });
});
