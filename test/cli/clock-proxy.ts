import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A proxy for an HTTP server that changes the date of its answers. */
export interface ClockProxy {
  readonly address: string;
  close(): Promise<void>;
}

/** Passes everything on to `target`, and adds this many seconds to the date of each answer. */
export async function startClockProxy(target: string, secondsAhead: number): Promise<ClockProxy> {
  const { hostname, port } = new URL(target);
  const server = createServer((incoming, answer) => {
    const { url: path, method, headers } = incoming;
    const onward = request({ hostname, port, path, method, headers }, (response) => {
      const date = new Date(Date.now() + secondsAhead * 1_000).toUTCString();
      answer.writeHead(response.statusCode ?? 500, { ...response.headers, date });
      response.pipe(answer);
    });
    onward.on('error', () => answer.destroy());
    incoming.pipe(onward);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
