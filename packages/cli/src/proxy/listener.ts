import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, isIP } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ReadableStream as NodeReadableStream } from 'node:stream/web';
import { isLoopback } from '@sealring/dashboard';
import { listening } from '../health/health-server.ts';
import { endToEndHeaders, valuesOf } from './headers.ts';
import { type Exchange, UpstreamFailure } from './upstream.ts';

const HEADERS_MS = 15_000;
/**
 * How long an idle connection is kept. This is longer than the 60 s after which most load balancers close a connection,
 * because the load balancer must close it first.
 */
const KEEP_ALIVE_MS = 65_000;

/** Options of the listener, which answers clients' requests with web-standard responses. */
export interface ListenerOptions {
  /** The origin of the request's URL. */
  readonly origin: string;
  readonly host: string;
  /**
   * Host names that requests may use. If empty: the names of this machine if only this machine can reach the listener,
   * otherwise any name.
   */
  readonly allowedHosts: readonly string[];
  /** The longest time, in milliseconds, for which a client may neither send nor read anything during a request. */
  readonly stalledMs: number;
  /** Headers for which a request may have only one value. */
  readonly singleHeaders: readonly string[];
  readonly handler: (request: Request, exchange: Exchange) => Promise<Response>;
  /** Called for an answer that could not be sent completely. */
  readonly onFailure: (message: string) => void;
}

/** An HTTP server that lets requests in progress end before it stops. */
export class Listener {
  readonly #options: ListenerOptions;
  readonly #server: Server;
  #isLocal = true;
  #isStopping = false;

  constructor(options: ListenerOptions) {
    this.#options = options;
    this.#server = createServer((incoming, outgoing) => void this.#serve(incoming, outgoing));
    this.#server.headersTimeout = HEADERS_MS;
    // An upload may take any time, as long as the client does not pause for `stalledMs`.
    this.#server.requestTimeout = 0;
    // The number of headers is not limited, only their size. With a limit, Node.js 20 leaves out headers after the first
    // thousand, and one of those may be the second value of a header that must have only one.
    this.#server.maxHeadersCount = 0;
    this.#server.keepAliveTimeout = KEEP_ALIVE_MS;
    // Without this limit, the whole answer to a client that does not read would stay in memory.
    this.#server.timeout = options.stalledMs;
  }

  /** @returns the address. @throws {Failure} if it cannot listen. */
  async listen(port: number): Promise<string> {
    const url = await listening(this.#server, this.#options.host, port);
    // Determined from the bound address, not from `host`, which may be any name or spelling of an address.
    this.#isLocal = isLoopback((this.#server.address() as AddressInfo).address);
    return url;
  }

  /** Stops accepting connections, waits for the requests in progress, and ends them after `graceMs`. */
  async stop(graceMs: number): Promise<void> {
    this.#isStopping = true;
    const closed = once(this.#server, 'close');
    this.#server.close();
    const timer = setTimeout(() => this.#server.closeAllConnections(), graceMs);
    await closed;
    clearTimeout(timer);
  }

  async #serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const abort = new AbortController();
    outgoing.once('close', () => {
      if (!outgoing.writableFinished) abort.abort();
    });
    try {
      await send(await this.#answer(incoming, abort.signal), outgoing, this.#isStopping);
    } catch (error) {
      outgoing.destroy();
      if (error instanceof UpstreamFailure || !abort.signal.aborted) this.#options.onFailure(messageOf(error));
    }
  }

  async #answer(incoming: IncomingMessage, signal: AbortSignal): Promise<Response> {
    const request = this.#refusal(incoming) ?? requestOf(incoming, this.#options.origin, signal);
    if (request instanceof Response) return request;
    try {
      const { headers, socket, url: target = '' } = incoming;
      const hop = { address: socket.remoteAddress, host: headers.host };
      const hasLength = request.headers.has('content-length');
      return await this.#options.handler(request, { signal, target, hasLength, hop });
    } catch (error) {
      if (!(error instanceof UpstreamFailure)) throw error;
      this.#options.onFailure(error.message);
      return plain(
        error.status,
        error.status === 504 ? 'the server did not answer in time' : 'the server did not answer',
      );
    }
  }

  #refusal({ headers, rawHeaders }: IncomingMessage): Response | undefined {
    const { host, allowedHosts, singleHeaders } = this.#options;
    const ofThisMachine = this.#isLocal ? ['localhost', host] : undefined;
    if (!isAllowed(headers.host, allowedHosts, ofThisMachine))
      return plain(421, 'the host name of the request is not allowed');
    const twice = singleHeaders.find((name) => valuesOf(rawHeaders, name) > 1);
    return twice === undefined ? undefined : plain(400, `the header ${twice} has more than one value`);
  }
}

/**
 * Prevents DNS rebinding: if an attacker's domain name points to this machine, the Host header has that name, and the
 * attacker's pages could call the server. The upstream server cannot check that header: it receives its own name there.
 */
function isAllowed(
  header: string | undefined,
  allowed: readonly string[],
  ofThisMachine: readonly string[] | undefined,
): boolean {
  const name = hostnameOf(header);
  const isIn = (names: readonly string[]): boolean => names.some((one) => one.toLowerCase() === name);
  if (allowed.length > 0) return isIn(allowed);
  return ofThisMachine === undefined || isIn(ofThisMachine) || isIP(name) !== 0;
}

function hostnameOf(header = ''): string {
  return URL.canParse(`http://${header}`) ? new URL(`http://${header}`).hostname.replaceAll(/^\[|\]$/g, '') : '';
}

/** The request in web-standard form, or the answer to a request that has no such form. */
function requestOf(incoming: IncomingMessage, origin: string, signal: AbortSignal): Request | Response {
  const { method = 'GET', url = '', headers: parsed, rawHeaders } = incoming;
  // Only a path is allowed, because a complete URL could name another server.
  if (!url.startsWith('/')) return plain(400, 'the request names no path');
  const headers = endToEndHeaders(rawHeaders);
  const isSent = parsed['content-length'] !== undefined || parsed['transfer-encoding'] !== undefined;
  const hasBody = isSent && method !== 'GET' && method !== 'HEAD';
  if (!hasBody) headers.delete('content-length');
  const body = hasBody ? ReadableStream.from(partsOf(incoming)) : null;
  try {
    return new Request(`${origin}${url}`, { method, headers, body, duplex: 'half', signal });
  } catch (error) {
    if (error instanceof TypeError) return plain(400, 'the request cannot be passed on');
    throw error;
  }
}

async function* partsOf(incoming: IncomingMessage): AsyncGenerator<Uint8Array> {
  try {
    // A body that is not read to its end is not destroyed: the connection is needed for the answer.
    yield* incoming.iterator({ destroyOnReturn: false });
  } finally {
    // Consumes the rest of the body: otherwise, the client would wait to send it, and the connection would be stuck.
    incoming.resume();
  }
}

async function send(response: Response, outgoing: ServerResponse, isLast: boolean): Promise<void> {
  outgoing.statusCode = response.status;
  for (const [name, value] of response.headers) outgoing.appendHeader(name, value);
  if (isLast) outgoing.setHeader('connection', 'close');
  if (response.body === null) {
    outgoing.end();
    return;
  }
  outgoing.flushHeaders();
  await pipeline(Readable.fromWeb(response.body as NodeReadableStream<Uint8Array>), outgoing);
}

function plain(status: number, text: string): Response {
  return new Response(`${text}\n`, { status, headers: { 'content-type': 'text/plain; charset=utf-8' } });
}

/** Returns only the class of an unknown error, because its message may quote client input. */
function messageOf(error: unknown): string {
  if (error instanceof UpstreamFailure) return error.message;
  return `an answer failed (${error instanceof Error ? error.name : 'unknown'})`;
}
