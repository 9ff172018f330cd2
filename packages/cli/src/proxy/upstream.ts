import { once } from 'node:events';
import { type ClientRequest, Agent as HttpAgent, type IncomingMessage, request as requestHttp } from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ReadableStream as NodeReadableStream } from 'node:stream/web';
import { addForwarded, endToEndHeaders, type Hop } from './headers.ts';

/** Unused connections are closed after this time, before most servers do so, so that no request uses a closed one. */
const UNUSED_MS = 4_000;
/** Statuses of answers without a body. */
const WITHOUT_BODY: readonly number[] = [204, 205, 304];

/** Time limits for the upstream server, in milliseconds. */
export interface UpstreamTimeouts {
  /** The longest wait from the end of the request until its answer begins. */
  readonly responseMs: number;
  /** The longest wait between two parts of its answer. */
  readonly idleMs: number;
}

/** The request of a client, without its body. */
export interface Exchange {
  /** Aborted when the client has disconnected. */
  readonly signal: AbortSignal;
  /** Path and query as they were sent: in a URL, they would be changed, such as `/a/%2e%2e/b` to `/b`. */
  readonly target: string;
  /** Whether the client sent `Content-Length`. */
  readonly hasLength: boolean;
  readonly hop: Hop;
}

/** The upstream server did not answer, or its answer was incomplete. */
export class UpstreamFailure extends Error {
  override readonly name = 'UpstreamFailure';
  readonly status: 502 | 504;

  /** @param code - The error code of the operating system, or `timeout`. */
  constructor(code: string) {
    super(`the upstream server did not answer: ${code}`);
    this.status = code === 'timeout' ? 504 : 502;
  }
}

/** The server behind the proxy. */
export class Upstream {
  readonly #origin: URL;
  readonly #timeouts: UpstreamTimeouts;
  readonly #agent: HttpAgent;

  constructor(origin: URL, timeouts: UpstreamTimeouts) {
    this.#origin = origin;
    this.#timeouts = timeouts;
    const options = { keepAlive: true, timeout: UNUSED_MS };
    this.#agent = origin.protocol === 'https:' ? new HttpsAgent(options) : new HttpAgent(options);
  }

  /**
   * Sends a request.
   * @throws {UpstreamFailure} here, or later while the body of the response is read.
   * @throws the signal's reason when the client has disconnected.
   */
  async fetch(request: Request, exchange: Exchange): Promise<Response> {
    const { signal } = exchange;
    signal.throwIfAborted();
    const body = await bodyOf(request, exchange.hasLength);
    const outgoing = this.#open(request, body, exchange);
    const onAbort = (): void => void outgoing.destroy();
    signal.addEventListener('abort', onAbort, { once: true });
    outgoing.once('close', () => signal.removeEventListener('abort', onAbort));
    // An error after the answer has begun also makes its body fail, so it is reported there.
    outgoing.on('error', () => undefined);
    try {
      return responseOf(request, await this.#answer(outgoing, body), signal);
    } catch (error) {
      throw failureFor(error, signal);
    }
  }

  close(): void {
    this.#agent.destroy();
  }

  #open(request: Request, body: Body, { target: path, hop }: Exchange): ClientRequest {
    // The proxy adds its headers only here, so that no state is bound to a user that the proxy itself has named.
    const all = new Headers(request.headers);
    addForwarded(all, hop);
    const headers = Object.fromEntries(all);
    if (body instanceof Uint8Array) headers['content-length'] = String(body.byteLength);
    const open = this.#origin.protocol === 'https:' ? requestHttps : requestHttp;
    const { method } = request;
    return open(this.#origin, { method, path, headers, agent: this.#agent });
  }

  /** Sends the body, and waits for the head of the answer. */
  async #answer(outgoing: ClientRequest, body: Body): Promise<IncomingMessage> {
    const { responseMs, idleMs } = this.#timeouts;
    // A server that switches protocols, with status 101, ends the request without an answer and without an error.
    const ended = once(outgoing, 'close').then(() => Promise.reject(new UpstreamFailure('status')));
    const answered = Promise.race([once(outgoing, 'response') as Promise<[IncomingMessage]>, ended]);
    const limit = new TimeLimit(responseMs, () => outgoing.destroy(new UpstreamFailure('timeout')));
    try {
      if (body instanceof Uint8Array || body === null) outgoing.end(body ?? undefined);
      else upload(body, outgoing, limit);
      const [answer] = await answered;
      outgoing.setTimeout(idleMs, () => answer.destroy(new UpstreamFailure('timeout')));
      return answer;
    } finally {
      limit.end();
    }
  }
}

/** A limit for the time in which the upstream server has to act. */
class TimeLimit {
  readonly #ms: number;
  readonly #exceeded: () => void;
  #timer: NodeJS.Timeout | undefined;
  #hasEnded = false;

  constructor(ms: number, exceeded: () => void) {
    this.#ms = ms;
    this.#exceeded = exceeded;
    this.restart();
  }

  pause(): void {
    clearTimeout(this.#timer);
  }

  restart(): void {
    this.pause();
    if (!this.#hasEnded) this.#timer = setTimeout(this.#exceeded, this.#ms);
  }

  end(): void {
    this.#hasEnded = true;
    this.pause();
  }
}

/** Sends a body. This may take any time: the listener disconnects a client that pauses for too long. */
function upload(body: NodeReadableStream<Uint8Array>, outgoing: ClientRequest, limit: TimeLimit): void {
  outgoing.once('socket', (socket) => {
    if (socket.connecting) socket.once('connect', () => limit.pause());
    else limit.pause();
  });
  pipeline(Readable.fromWeb(body), outgoing).then(
    () => limit.restart(),
    // A failure on either side ends the request; the answer then fails.
    () => outgoing.destroy(),
  );
}

type Body = Uint8Array | NodeReadableStream<Uint8Array> | null;

/** A rewritten body is read into memory, because some servers require its length. Any other body is streamed. */
async function bodyOf(request: Request, hasLength: boolean): Promise<Body> {
  if (request.body === null) return null;
  if (hasLength && !request.headers.has('content-length')) return new Uint8Array(await request.arrayBuffer());
  return request.body as NodeReadableStream<Uint8Array>;
}

function responseOf({ method }: Request, answer: IncomingMessage, signal: AbortSignal): Response {
  const { statusCode: status = 0, rawHeaders } = answer;
  if (status < 200 || status > 599) {
    answer.destroy();
    throw new UpstreamFailure('status');
  }
  const hasBody = method !== 'HEAD' && !WITHOUT_BODY.includes(status);
  if (!hasBody) answer.resume();
  return new Response(hasBody ? ReadableStream.from(partsOf(answer, signal)) : null, {
    status,
    headers: endToEndHeaders(rawHeaders),
  });
}

async function* partsOf(answer: IncomingMessage, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  try {
    yield* answer;
  } catch (error) {
    throw failureFor(error, signal);
  }
}

function failureFor(error: unknown, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  if (error instanceof UpstreamFailure) return error;
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
  return new UpstreamFailure(code);
}
