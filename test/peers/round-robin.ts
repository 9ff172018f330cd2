import { once } from 'node:events';
import { createServer, type IncomingMessage, request as send } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';

/** A server behind the address. */
export interface Target {
  readonly name: string;
  readonly port: number;
}

interface Served extends Target {
  inFlight: number;
}

/** One HTTP address in front of several servers: every request goes to the next one. */
export class RoundRobin {
  readonly url: string;
  readonly #http: ReturnType<typeof createServer>;
  #targets: Served[] = [];
  #turn = 0;
  /** Ids of the keys that each server has sealed with, oldest first, read from the `sr1.` tokens in its answers. */
  readonly keysOf: Map<string, string[]> = new Map();

  private constructor(http: ReturnType<typeof createServer>, port: number) {
    this.#http = http;
    this.url = `http://127.0.0.1:${port}/mcp`;
    http.on('request', (request, response) => {
      const target = this.#targets[this.#turn++ % this.#targets.length];
      if (target === undefined) {
        response.writeHead(503).end();
        return;
      }
      target.inFlight += 1;
      response.once('close', () => {
        target.inFlight -= 1;
      });
      const { method, url, headers } = request;
      // A new connection for each request, so that no server closes one at the moment of the next request.
      const options = { host: '127.0.0.1', port: target.port, agent: false, method, path: url };
      const onward = send({ ...options, headers: { ...headers, connection: 'close' } }, (answer) => {
        response.writeHead(answer.statusCode ?? 502, { ...answer.headers, connection: 'keep-alive' });
        answer.pipe(response);
        this.#watch(target.name, answer);
      });
      onward.on('error', () => response.destroy());
      response.once('close', () => onward.destroy());
      request.pipe(onward);
    });
  }

  static async start(): Promise<RoundRobin> {
    const http = createServer({ keepAliveTimeout: 600_000 });
    http.listen(0, '127.0.0.1');
    await once(http, 'listening');
    return new RoundRobin(http, (http.address() as AddressInfo).port);
  }

  #watch(name: string, answer: IncomingMessage): void {
    let text = '';
    answer.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
    });
    answer.on('end', () => {
      const keyId = /sr1\.([\w-]{12})/.exec(text)?.[1];
      const keys = this.keysOf.get(name) ?? [];
      if (keyId !== undefined && keys.at(-1) !== keyId) this.keysOf.set(name, [...keys, keyId]);
    });
  }

  add(target: Target): void {
    this.#targets.push({ ...target, inFlight: 0 });
  }

  /** Resolves when the last request to the server is answered. */
  async remove(name: string): Promise<void> {
    const gone = this.#targets.filter((target) => target.name === name);
    this.#targets = this.#targets.filter((target) => target.name !== name);
    while (gone.some(({ inFlight }) => inFlight > 0)) await pause(10);
  }

  async stop(): Promise<void> {
    this.#http.closeAllConnections();
    this.#http.close();
    await once(this.#http, 'close');
  }
}
