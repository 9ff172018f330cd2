import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SOUND, verdicts } from '../cli/probed-server.ts';
import { ProxyProcess, projectWithRing } from '../cli/proxy-process.ts';
import { startLocalServer } from '../support/local-server.ts';
import { pythonVenv } from '../support/python-venv.ts';
import type { TestServer } from '../support/redis.ts';
import { REQUIREMENTS } from './requirements.ts';

const program = fileURLToPath(new URL('plain_server.py', import.meta.url));

let project: Awaited<ReturnType<typeof projectWithRing>>;
beforeAll(async () => {
  project = await projectWithRing();
});
afterAll(() => project?.remove());

describe.each(['json', 'sse'])('a Python server behind sealring proxy that answers with %s', (response) => {
  let server: TestServer;
  beforeAll(async () => {
    const python = join(await pythonVenv('python-reader', REQUIREMENTS), 'python');
    server = await startLocalServer({
      name: 'plain-server',
      command: python,
      args: (port) => [program, String(port), response],
      env: { PYTHONDONTWRITEBYTECODE: '1' },
      readySeconds: 30,
      ready: async (address) => (await fetch(address)).status === 404,
    });
  }, 600_000);
  afterAll(() => server?.stop());

  const proxied = (): ProxyProcess =>
    new ProxyProcess(project.cwd, [
      '--upstream',
      server.address,
      '--audience',
      'desk',
      '--principal-authorization',
      '--ttl',
      '1',
    ]);

  test('serves two rounds to the official TypeScript client', async () => {
    await using proxy = proxied();
    const url = new URL(`${await proxy.origin()}/mcp`);
    const client = new Client(
      { name: 'shop', version: '1.0.0' },
      { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: { pin: '2026-07-28' } } },
    );
    client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { ok: true } }));
    await client.connect(new StreamableHTTPClientTransport(url, { authProvider: { token: async () => 'ada' } }));
    const { content } = await client.callTool({ name: 'refund', arguments: { order: 'A1' } });
    expect(content).toEqual([{ type: 'text', text: 'asked:A1' }]);
    await client.close();
    expect(proxy.failures).toEqual([]);
  });

  test('has no hole, and without the proxy it has all of them', async () => {
    await using proxy = proxied();
    expect(await verdicts(`${server.address}/mcp`)).toEqual({
      code: 1,
      passed: false,
      ...Object.fromEntries(Object.keys(SOUND).map((id) => [id, 'hole'])),
    });
    expect(await verdicts(`${await proxy.origin()}/mcp`)).toEqual({ code: 0, passed: true, ...SOUND });
  });
});
