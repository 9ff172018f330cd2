import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A request that the proxy received. */
interface SeenRequest {
  /** `/v1/transit/encrypt/key`. */
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  /** JSON. */
  readonly body: string;
}

/** An answer before it is returned. */
export interface PassingAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A proxy between a key wrapper and Vault that records requests and answers, and changes them for a test. */
export interface SpoilingProxy {
  readonly address: string;
  readonly requests: SeenRequest[];
  /** Changes the body of requests. */
  spoilRequests(change: (body: string) => string): void;
  /** Changes answers. */
  spoilAnswers(change: (answer: PassingAnswer) => Partial<PassingAnswer>): void;
  /** Answers without Vault. */
  answer(answer: Partial<PassingAnswer>): void;
  /** Keeps the connection open and sends nothing; `inBody` after the head and half of the body. */
  hang(where?: 'before' | 'inBody'): void;
  /** Resets the connection; `inBody` after the head and half of the body. */
  reset(where?: 'before' | 'inBody'): void;
  /** Requests that were in progress when their client disconnected. */
  readonly abandoned: number;
  restore(): void;
  close(): Promise<void>;
}

/** @param target - Vault's address; empty if every answer is the proxy's own. */
export async function startSpoilingProxy(target: string): Promise<SpoilingProxy> {
  const requests: SeenRequest[] = [];
  const same = { requests: (body: string) => body, answers: (answer: PassingAnswer) => answer };
  let change: { requests(body: string): string; answers(answer: PassingAnswer): Partial<PassingAnswer> } = same;
  let own: Partial<PassingAnswer> | undefined;
  let fault: { readonly what: 'hang' | 'reset'; readonly where: 'before' | 'inBody' } | undefined;
  let abandoned = 0;

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('close', () => {
      if (!response.writableFinished) abandoned++;
    });
    const path = request.url ?? '';
    const body = await textOf(request);
    requests.push({ path, headers: request.headers, body });
    if (fault?.where === 'before') return stop(response, fault.what);
    const passed: PassingAnswer = { status: 200, headers: {}, body: '', ...(own ?? (await ask(path, request, body))) };
    const answer = { ...passed, ...change.answers(passed) };
    response.writeHead(answer.status, { 'Content-Length': Buffer.byteLength(answer.body), ...answer.headers });
    if (fault === undefined) {
      response.end(answer.body);
      return;
    }
    const { what } = fault;
    response.write(answer.body.slice(0, answer.body.length / 2), () => stop(response, what));
  }

  async function ask(path: string, request: IncomingMessage, body: string): Promise<PassingAnswer> {
    const { 'x-vault-token': token = '' } = request.headers;
    const headers = { 'X-Vault-Token': String(token), 'Content-Type': 'application/json' };
    const answer = await fetch(`${target}${path}`, { method: 'POST', headers, body: change.requests(body) });
    return {
      status: answer.status,
      headers: { Date: answer.headers.get('date') ?? '', 'Content-Type': 'application/json' },
      body: await answer.text(),
    };
  }

  const server = createServer((request, response) => {
    handle(request, response).catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    spoilRequests(how) {
      change = { ...change, requests: how };
    },
    spoilAnswers(how) {
      change = { ...change, answers: how };
    },
    answer(answer) {
      own = answer;
    },
    hang(where = 'before') {
      fault = { what: 'hang', where };
    },
    reset(where = 'before') {
      fault = { what: 'reset', where };
    },
    get abandoned() {
      return abandoned;
    },
    restore() {
      change = same;
      own = undefined;
      fault = undefined;
    },
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

function stop(response: ServerResponse, how: 'hang' | 'reset'): void {
  if (how === 'reset') response.socket?.resetAndDestroy();
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}
