import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Failure } from '../failure.ts';
import { UsageError } from '../usage-error.ts';

/** Answers the probes of an orchestrator: `/livez`, and `/readyz` with the result of `health`. */
export class HealthServer {
  readonly #server: Server;

  constructor(health: () => { readonly ready: boolean }) {
    this.#server = createServer((request, response) => {
      if (request.url === '/livez') {
        response.end('ok');
      } else if (request.url === '/readyz') {
        const state = health();
        response.writeHead(state.ready ? 200 : 503, { 'content-type': 'application/json' }).end(JSON.stringify(state));
      } else {
        response.writeHead(404).end();
      }
    });
  }

  /** @returns the address. @throws {Failure} if it cannot listen. @throws {UsageError} without a host. */
  listen(host: string, port: number): Promise<string> {
    return listening(this.#server, host, port);
  }

  /** Ends every connection. */
  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

/** Makes the server listen. @returns the address. @throws {Failure} if it cannot. @throws {UsageError} without a host. */
export async function listening(server: Server, host: string, port: number): Promise<string> {
  // Node.js would listen on every address of the machine.
  if (host === '') throw new UsageError('--host "" is not an address: name one, such as 127.0.0.1 or 0.0.0.0');
  try {
    server.listen(port, host);
    await once(server, 'listening');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
    throw new Failure('cannot-listen', `cannot listen on ${host} port ${port}: ${code}`);
  }
  const { port: actual } = server.address() as AddressInfo;
  return `http://${host.includes(':') ? `[${host}]` : host}:${actual}`;
}
