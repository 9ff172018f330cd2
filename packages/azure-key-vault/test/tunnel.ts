import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';

/** A proxy that is running. */
export interface Tunnel extends AsyncDisposable {
  /** The value for `HTTPS_PROXY`: `http://127.0.0.1:PORT`. */
  readonly url: string;
  /** Hosts in the clients' requests, each as `host:port`. */
  readonly asked: readonly string[];
}

/**
 * An HTTP proxy (CONNECT, RFC 9110, section 9.3.6) that connects every host to the same address: a client can call a
 * fake vault by a name under `vault.azure.net`, as it calls a real one.
 */
export async function startTunnel(to: string): Promise<Tunnel> {
  const { hostname, port } = new URL(to);
  const asked: string[] = [];
  const server = createServer((_, response) => response.writeHead(405).end());
  server.on('connect', ({ url = '' }, client) => {
    asked.push(url);
    const vault = connect(Number(port), hostname, () => client.write('HTTP/1.1 200 Connection established\r\n\r\n'));
    client.pipe(vault).pipe(client);
    for (const [end, other] of [
      [client, vault],
      [vault, client],
    ] as const) {
      end.on('error', () => other.destroy());
      end.on('close', () => other.destroy());
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    async [Symbol.asyncDispose]() {
      server.close();
      await once(server, 'close');
    },
  };
}
