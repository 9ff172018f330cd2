import { once } from 'node:events';
import { createServer as createHttp2Server } from 'node:http2';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import { type GcpKmsKeyWrapperOptions, gcpKmsKeyWrapper } from '../src/index.ts';
import {
  context,
  rejectionOf,
  SDK_VERSIONS,
  type SdkVersion,
  sampleKey,
  sdkClient,
  startGcpKms,
  type Wrapper,
} from './world.ts';

const keyId = 'projects/shop/locations/europe-west1/keyRings/mcp/cryptoKeys/sealring';

async function listen(server: Server): Promise<{ port: number; close: () => Promise<void> }> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    // A client that abandons a call resets the connection.
    socket.on('error', () => socket.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  };
}

async function withClient(
  version: SdkVersion,
  port: number,
  options: Partial<GcpKmsKeyWrapperOptions>,
  use: (keyWrapper: Wrapper) => Promise<void>,
): Promise<void> {
  const client = sdkClient(version, { host: '127.0.0.1', port });
  try {
    await use(gcpKmsKeyWrapper({ keyId, client, ...options }));
  } finally {
    await client.close();
  }
}

describe.each(SDK_VERSIONS)('@google-cloud/kms %s on a failing network', (version) => {
  test('a port where nothing listens is unavailable after maxAttempts attempts (F29)', async () => {
    const { port, close } = await listen(createServer());
    await close();
    await withClient(version, port, { maxAttempts: 2 }, async (keyWrapper) => {
      expect(await rejectionOf(keyWrapper.wrap(sampleKey(), { context }))).toMatchObject({
        kind: 'unavailable',
        summary: { code: 'ECONNREFUSED', attempts: 2 },
      });
    });
  });

  test('a server that accepts connections and never answers is unavailable (F29)', async () => {
    const server = await listen(createServer());
    await withClient(version, server.port, { callTimeoutSeconds: 0.2, maxAttempts: 2 }, async (keyWrapper) => {
      expect(await rejectionOf(keyWrapper.wrap(sampleKey(), { context }))).toMatchObject({
        kind: 'unavailable',
        summary: { attempts: 2 },
      });
    });
    await server.close();
  });

  test('a server that closes the connection is unavailable (F29)', async () => {
    const server = await listen(createServer((socket) => socket.destroy()));
    await withClient(version, server.port, { maxAttempts: 2, callTimeoutSeconds: 2 }, async (keyWrapper) => {
      expect(await rejectionOf(keyWrapper.wrap(sampleKey(), { context }))).toMatchObject({ kind: 'unavailable' });
    });
    await server.close();
  });

  test.each([
    ['a 401 is denied', 401, 'denied', 1],
    ['a 403 is denied', 403, 'denied', 1],
    ['a 429 is unavailable, because gRPC maps it to UNAVAILABLE', 429, 'unavailable', 2],
    ['a 503 is unavailable', 503, 'unavailable', 2],
    ['a 200 that is not gRPC is unavailable', 200, 'unavailable', 2],
  ])('adapter rule 2: when a proxy answers in HTML, %s', async (_, status, kind, attempts) => {
    const server = createHttp2Server((__, response) => {
      response.writeHead(status, { 'content-type': 'text/html' });
      response.end('<html>no</html>');
    });
    const { port, close } = await listen(server);
    await withClient(version, port, { maxAttempts: 2 }, async (keyWrapper) => {
      expect(await rejectionOf(keyWrapper.wrap(sampleKey(), { context }))).toMatchObject({
        kind,
        summary: { attempts },
      });
    });
    await close();
  });

  test('the key wrapper works again when the server is back', async () => {
    const first = await startGcpKms();
    const { port } = first;
    await first.stop();
    await withClient(version, port, { maxAttempts: 1 }, async (keyWrapper) => {
      expect(await rejectionOf(keyWrapper.wrap(sampleKey(), { context }))).toMatchObject({ kind: 'unavailable' });
      const second = await startGcpKms({ port });
      second.kms.createKey('sealring', keyId.replace(/\/cryptoKeys.*/, ''));
      // The channel waits before it connects again.
      await expect
        .poll(() => keyWrapper.wrap(sampleKey(), { context }).catch(() => undefined), {
          timeout: 30_000,
          interval: 200,
        })
        .toMatchObject({ provider: 'gcp-kms' });
      await second.stop();
    });
  });
});
