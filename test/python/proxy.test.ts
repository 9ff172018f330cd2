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
  });
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

  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'shop', version: '1.0.0' },
    'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} } },
  };
  const params = { name: 'refund', arguments: { order: 'A1' }, _meta: meta, requestState: 'forged' };
  const forged = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
  test.each([
    ['with NaN', Buffer.from(forged.replace('"A1"', 'NaN'))],
    ['in UTF-16', Buffer.from(forged, 'utf16le')],
    ['in UTF-32', Buffer.from(Array.from(forged, (letter) => [letter.charCodeAt(0), 0, 0, 0]).flat())],
  ])('a forged state %s, which Python reads, is refused', async (_name, body) => {
    await using proxy = proxied();
    const headers = {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': 'refund',
    };
    const post = { method: 'POST', headers, body };
    expect(await (await fetch(`${server.address}/mcp`, post)).text()).toContain('"text":"forged"');
    expect((await fetch(`${await proxy.origin()}/mcp`, post)).status).toBe(400);
  });

  test('the probe finds every hole in a Python server without the proxy, and none behind it', async () => {
    await using proxy = proxied();
    expect(await verdicts(`${server.address}/mcp`)).toEqual({
      code: 1,
      passed: false,
      ...Object.fromEntries(Object.keys(SOUND).map((id) => [id, 'hole'])),
    });
    expect(await verdicts(`${await proxy.origin()}/mcp`)).toEqual({ code: 0, passed: true, ...SOUND });
  });
});
