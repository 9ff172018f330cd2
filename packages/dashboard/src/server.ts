import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, isIP } from 'node:net';

const MAX_CONNECTIONS = 64;
const TIMEOUT_MS = 10_000;

/** What is served. */
export interface ServedPage {
  /** The page, whose style and script carry the nonce. */
  whole(nonce: string): string;
  /** Its main part alone, with no style and no script in it: what the page asks for again. */
  main(): string;
}

/** A page that is being served. */
export interface PageServer {
  readonly url: string;
  close(): Promise<void>;
}

/**
 * Serves one page and nothing else, to GET and HEAD.
 * @throws {NodeJS.ErrnoException} where it cannot listen.
 */
export async function servePage(host: string, port: number, page: ServedPage): Promise<PageServer> {
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

/** Whether others than this machine can reach it. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

function answer(request: IncomingMessage, response: ServerResponse, host: string, page: ServedPage): void {
  const refuse = (status: number, text: string): void => {
    send(request, response, status, 'text/plain; charset=utf-8', "default-src 'none'", `${text}\n`);
  };
  if (!isOurHost(request.headers.host, host)) return refuse(421, 'this page is not served under that name');
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.setHeader('allow', 'GET, HEAD');
    return refuse(405, 'GET and HEAD only');
  }
  if (request.url !== '/' && request.url !== '/main') return refuse(404, 'there is one page: /');
  const nonce = randomBytes(18).toString('base64');
  const body = request.url === '/' ? page.whole(nonce) : page.main();
  send(request, response, 200, 'text/html; charset=utf-8', policyOf(nonce), body);
}

/**
 * Against DNS rebinding: a name that somebody points to this machine is in the Host header, and then his pages could
 * read ours. An address is nobody's name.
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

function send(
  request: IncomingMessage,
  response: ServerResponse,
  status: number,
  type: string,
  policy: string,
  body: string,
): void {
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
  response.end(request.method === 'HEAD' ? undefined : body);
}
