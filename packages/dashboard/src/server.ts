import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, isIP } from 'node:net';
import { option } from '@sealring/core/adapter';

const MAX_CONNECTIONS = 64;
const TIMEOUT_MS = 10_000;

/** The page to serve. */
export interface ServedPage {
  /** The whole page; its style and script have the nonce. */
  whole(nonce: string): string;
  /** The main part, without style and script: the page reloads it at intervals. */
  main(): string;
}

/** A running server for one page. */
export interface PageServer {
  readonly url: string;
  close(): Promise<void>;
}

/**
 * Serves one page, for GET and HEAD.
 * @throws {RangeError} without a host. @throws {NodeJS.ErrnoException} if it cannot listen.
 */
export async function servePage(host: string, port: number, page: ServedPage): Promise<PageServer> {
  // Node.js would listen on every address of the machine.
  if (host === '') throw option.rangeError('serveDashboard: host must be an address or a name, got ""');
  const server = createServer((request, response) => answer(request, response, host, page));
  server.maxConnections = MAX_CONNECTIONS;
  server.requestTimeout = TIMEOUT_MS;
  server.headersTimeout = TIMEOUT_MS;
  server.listen(port, host);
  await once(server, 'listening');
  const { port: actual } = server.address() as AddressInfo;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${actual}/`,
    async close() {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}

/** Whether only this machine can reach the host. */
export function isLoopback(host: string): boolean {
  const address = host.replace(/^::ffff:/, '');
  return host === 'localhost' || host === '::1' || (isIP(address) === 4 && address.startsWith('127.'));
}

function answer(request: IncomingMessage, response: ServerResponse, host: string, page: ServedPage): void {
  const refuse = (status: number, text: string): void => {
    send(response, status, 'text/plain; charset=utf-8', "default-src 'none'", `${text}\n`);
  };
  if (!isOurHost(request.headers.host, host)) return refuse(421, 'the host name of the request is not allowed');
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.setHeader('allow', 'GET, HEAD');
    return refuse(405, 'only GET and HEAD are allowed');
  }
  if (request.url !== '/' && request.url !== '/main') return refuse(404, 'not found; the only page is /');
  const nonce = randomBytes(18).toString('base64');
  const body = request.url === '/' ? page.whole(nonce) : page.main();
  send(response, 200, 'text/html; charset=utf-8', policyOf(nonce), body);
}

/**
 * Prevents DNS rebinding. If an attacker's host name points to this machine, the Host header contains that name, and
 * without this check, the attacker's pages could read this page. An IP address is not a name, so it is safe.
 */
function isOurHost(header: string | undefined, host: string): boolean {
  const name = /^(?:\[([0-9A-Fa-f:.]+)\]|([^:[\]]+))(?::\d{1,5})?$/.exec(header ?? '');
  const hostname = (name?.[1] ?? name?.[2] ?? '').toLowerCase();
  return hostname === 'localhost' || hostname === host.toLowerCase() || isIP(hostname) !== 0;
}

function policyOf(nonce: string): string {
  return [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    `style-src 'nonce-${nonce}'`,
    "connect-src 'self'",
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ');
}

/** For HEAD, Node.js leaves out the body. */
function send(response: ServerResponse, status: number, type: string, policy: string, body: string): void {
  response.writeHead(status, {
    'content-type': type,
    'content-length': Buffer.byteLength(body),
    'content-security-policy': policy,
    'cache-control': 'no-store',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
  });
  response.end(body);
}
