import { execFile } from 'node:child_process';
import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { toNodeHandler } from '@modelcontextprotocol/node';
import {
  createMcpHandler,
  fromJsonSchema,
  inputRequired,
  McpServer,
  type ServerContext,
} from '@modelcontextprotocol/server';
import type { Certificate } from '../support/azure-key-vault/certificate.ts';

/** The name and the version of the server. */
export const info = { name: 'desk', version: '1.0.0' };
const confirm = inputRequired.elicit({
  message: 'Really?',
  requestedSchema: {
    type: 'object',
    properties: { ok: { type: 'boolean' }, note: { type: 'string' } },
    required: ['ok'],
  },
});

/** How a server makes its states, and reads them. */
export interface States {
  readonly mint: (state: string, ctx: ServerContext) => string | Promise<string>;
  readonly read: (ctx: ServerContext) => string | undefined;
}
const plaintext: States = { mint: (state) => state, read: (ctx) => ctx.mcpReq.requestState<string>() };

/** Adds a tool and a prompt that ask a question. */
export function registered(server: McpServer, { mint, read }: States = plaintext): McpServer {
  const inputSchema = fromJsonSchema<{ order: string }>({ type: 'object', properties: { order: { type: 'string' } } });
  server.registerTool('refund', { inputSchema }, async ({ order }, ctx) => {
    const state = read(ctx);
    if (state !== undefined) return { content: [{ type: 'text', text: state }] };
    return inputRequired({ inputRequests: { confirm }, requestState: await mint(`asked:${order}`, ctx) });
  });
  server.registerTool('ping', {}, () => ({ content: [] }));
  server.registerPrompt('terms', {}, async (ctx) => {
    const state = read(ctx);
    if (state !== undefined) return { messages: [] };
    return inputRequired({ inputRequests: { confirm }, requestState: await mint('terms', ctx) });
  });
  return server;
}

export const authOf = (token: string) => ({ token, clientId: 'web', scopes: [], extra: { sub: token } });
export const bearer = (header: string | null | undefined): string => header?.slice('Bearer '.length) ?? '';

/** A server on a free port. */
export interface Listening extends AsyncDisposable {
  readonly origin: string;
  /** The endpoint, with a secret in its query. */
  readonly url: string;
}

/** Serves a factory, over TLS if there is a certificate; `Authorization: Bearer NAME` authenticates the user NAME. */
export async function served(factory: () => McpServer, certificate?: Certificate): Promise<Listening> {
  const mcp = createMcpHandler(factory);
  const handle = toNodeHandler(mcp);
  return await listening((request, response) => {
    const { method = 'GET', url = '/', headers } = request;
    const name = bearer(headers.authorization);
    const auth = name === '' ? {} : { auth: authOf(name) };
    void handle(Object.assign(request, { method, url }, auth), response);
  }, certificate);
}

/** Serves a Node listener, over TLS if there is a certificate. */
export async function listening(
  listener: Parameters<typeof createServer>[1],
  certificate?: Certificate,
): Promise<Listening> {
  const http = certificate === undefined ? createServer(Object(listener)) : createTlsServer(certificate, listener);
  const origin = (port: number): string => `${certificate === undefined ? 'http' : 'https'}://127.0.0.1:${port}`;
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  const { port }: AddressInfo = Object(http.address());
  return {
    origin: origin(port),
    url: `${origin(port)}/mcp?key=secret`,
    async [Symbol.asyncDispose]() {
      http.closeAllConnections();
      await new Promise((resolve) => http.close(resolve));
    },
  };
}

export const REFUND = ['--tool', 'refund', '--arguments', '{"order":"A1"}'];
export const USERS = { SEALRING_PROBE_TOKEN: 'ada', SEALRING_PROBE_OTHER_TOKEN: 'grace' };

export const MAIN = fileURLToPath(new URL('../../packages/cli/dist/main.js', import.meta.url));

interface Ended {
  readonly code: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the command. */
export function probe(
  url: string,
  args: readonly string[] = [...REFUND, '--lifetime', '1'],
  env: object = USERS,
): Promise<Ended> {
  const clean = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(?:NO|FORCE)_COLOR$/.test(name)));
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [MAIN, 'probe', url, ...args],
      { env: { ...clean, ...env } },
      (_error, stdout, stderr) => resolve({ code: child.exitCode ?? undefined, stdout, stderr }),
    );
  });
}

/** The result of each check in `probe --json`. */
export async function verdicts(url: string, args?: readonly string[]): Promise<Record<string, unknown>> {
  const { code, stdout } = await probe(url, [...(args ?? [...REFUND, '--lifetime', '1']), '--json']);
  const { passed, checks } = JSON.parse(stdout);
  const entries = checks.map(({ id, verdict }: { id: string; verdict: string }) => [id, verdict]);
  return { code, passed, ...Object.fromEntries(entries) };
}

export const SOUND = { encryption: 'ok', tampering: 'ok', arguments: 'ok', user: 'ok', expiry: 'ok' };
