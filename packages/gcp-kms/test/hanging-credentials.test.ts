import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { memoryRing } from '@sealring/core';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createGcpKmsCodec, gcpKmsKeyWrapper } from '../src/index.ts';
import { context, rejectionOf, sampleKey } from './world.ts';

/* On Google Cloud, the SDK waits for the metadata server without a limit. */

const keyId = 'projects/shop/locations/europe-west1/keyRings/mcp/cryptoKeys/sealring';

/** Lets the SDK ask a metadata server that never answers. */
async function silenceMetadataServer(): Promise<void> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  vi.stubEnv('GOOGLE_APPLICATION_CREDENTIALS', undefined);
  vi.stubEnv('HOME', '/nonexistent');
  vi.stubEnv('K_SERVICE', 'payments');
  vi.stubEnv('GCE_METADATA_HOST', `127.0.0.1:${(server.address() as AddressInfo).port}`);
  onTestFinished(() => {
    vi.unstubAllEnvs();
    for (const socket of sockets) socket.destroy();
    server.close();
  });
}

test('a search for credentials that hangs delays neither the error of a start nor the end of close()', async () => {
  await silenceMetadataServer();
  const keyWrapper = gcpKmsKeyWrapper({ keyId, callTimeoutSeconds: 0.05, maxAttempts: 1 });
  const unavailable = { kind: 'unavailable', summary: { hint: 'no answer within callTimeoutSeconds' } };
  expect(await rejectionOf(keyWrapper.wrap(sampleKey(), { context }))).toMatchObject(unavailable);
  await keyWrapper.close();
  const policy = { startTimeoutSeconds: 0.2 };
  const options = { keyId, ring: memoryRing(), create: 'now', callTimeoutSeconds: 0.05, policy } as const;
  expect(await rejectionOf(createGcpKmsCodec(options))).toMatchObject({ kind: 'unavailable' });
});
