import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { CreateAliasCommand, CreateKeyCommand, KMSClient } from '@aws-sdk/client-kms';
import { describe, expect, inject, test } from 'vitest';
import { awsKmsKeyWrapper } from '../src/index.ts';

const moto = inject('moto');
const context = { 'sealring:ring': 'test', 'sealring:purpose': 'data-key' };
let aliases = 0;

function realClient(endpoint: string = moto): { client: KMSClient; requests: () => number } {
  const client = new KMSClient({
    endpoint,
    region: 'us-east-1',
    maxAttempts: 1,
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
  });
  let count = 0;
  client.middlewareStack.add(
    (next) => (args) => {
      count++;
      return next(args);
    },
    { step: 'finalizeRequest' },
  );
  return { client, requests: () => count };
}

async function createKey(client: KMSClient): Promise<{ arn: string; id: string }> {
  const { KeyMetadata } = await client.send(new CreateKeyCommand({}));
  return { arn: KeyMetadata?.Arn ?? '', id: KeyMetadata?.KeyId ?? '' };
}

async function createAlias(client: KMSClient, TargetKeyId: string): Promise<string> {
  const AliasName = `alias/sealring-${process.pid}-${++aliases}`;
  await client.send(new CreateAliasCommand({ AliasName, TargetKeyId }));
  return AliasName;
}

function sampleKey(): Uint8Array {
  return Uint8Array.from({ length: 32 }, (_, i) => i + 1);
}

// Skipped only if this machine lacks Python; under CI=true the set-up fails instead.
describe.skipIf(moto === '')('@aws-sdk/client-kms against moto', () => {
  test.each(['key ARN', 'key id', 'alias', 'alias ARN'])(
    'contract 1: for a key named by %s, unwrap returns the wrapped data key, and the key’s ARN is recorded',
    async (form) => {
      const { client } = realClient();
      const { arn, id } = await createKey(client);
      const alias = await createAlias(client, id);
      const names: Record<string, string> = {
        'key ARN': arn,
        'key id': id,
        alias,
        'alias ARN': arn.replace(/key\/.*/, alias),
      };
      const keyWrapper = awsKmsKeyWrapper({ keyId: names[form] ?? '', client });
      const { dataKey, wrapped } = await keyWrapper.generate({ context });
      expect(dataKey).toHaveLength(32);
      expect(wrapped).toMatchObject({ provider: 'aws-kms', keyId: arn });
      expect(await keyWrapper.unwrap(wrapped, { context })).toEqual(dataKey);
      const made = await keyWrapper.wrap(sampleKey(), { context });
      expect(made.keyId).toBe(arn);
      expect(await keyWrapper.unwrap(made, { context })).toEqual(sampleKey());
    },
  );

  test('a key that does not exist is reported as not-found', async () => {
    const { client, requests } = realClient();
    const keyWrapper = awsKmsKeyWrapper({ keyId: '1234abcd-12ab-34cd-56ef-1234567890ab', client });
    await expect(keyWrapper.generate({ context })).rejects.toMatchObject({
      kind: 'not-found',
      summary: { status: 400, hint: 'no such KMS key in this account and region' },
    });
    expect(requests()).toBe(1);
  });
});

describe('@aws-sdk/client-kms on a failing network', () => {
  const keyId = 'arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab';

  test('a KMS whose port refuses connections is unavailable after maxAttempts requests (F29)', async () => {
    const { port, close } = await listen(() => {});
    await close();
    const { client, requests } = realClient(`http://127.0.0.1:${port}`);
    const keyWrapper = awsKmsKeyWrapper({ keyId, client, maxAttempts: 2 });
    await expect(keyWrapper.generate({ context })).rejects.toMatchObject({
      kind: 'unavailable',
      summary: { code: 'ECONNREFUSED', attempts: 2 },
    });
    expect(requests()).toBe(2);
  });

  test('a server that never answers is unavailable, and its sockets are closed (F29)', async () => {
    const server = await listen(() => {});
    const { client } = realClient(`http://127.0.0.1:${server.port}`);
    const keyWrapper = awsKmsKeyWrapper({ keyId, client, callTimeoutSeconds: 0.5, maxAttempts: 2 });
    await expect(keyWrapper.generate({ context })).rejects.toMatchObject({
      kind: 'unavailable',
      summary: { attempts: 2 },
    });
    expect(server.accepted()).toBeGreaterThan(0);
    // Ends only after the client has closed its side of both.
    await server.allClosed();
    await server.close();
  });

  test('a server that closes the connection is unavailable (F29)', async () => {
    const server = await listen((socket) => socket.destroy());
    const { client } = realClient(`http://127.0.0.1:${server.port}`);
    const keyWrapper = awsKmsKeyWrapper({ keyId, client, maxAttempts: 2 });
    await expect(keyWrapper.generate({ context })).rejects.toMatchObject({
      kind: 'unavailable',
      summary: { attempts: 2 },
    });
    await server.close();
  });

  test.each([
    ['a 403 with XML is denied', '403 Forbidden', '<Error><Code>AccessDenied</Code></Error>', 'denied', 1],
    ['a 429 with HTML is throttled', '429 Too Many Requests', '<html>slow</html>', 'throttled', 2],
    ['a 503 with an empty body is unavailable', '503 Service Unavailable', '', 'unavailable', 2],
    ['a 200 that is not JSON is unavailable', '200 OK', '<html>welcome</html>', 'unavailable', 2],
    ['a 200 with an empty body is corrupt', '200 OK', '', 'corrupt', 1],
    ['a 200 with {} is corrupt', '200 OK', '{}', 'corrupt', 1],
  ])('adapter rule 2: %s', async (_, status, body, kind, attempts) => {
    const server = await listen((socket) => {
      socket.once('data', () =>
        socket.end(`HTTP/1.1 ${status}\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`),
      );
    });
    const { client, requests } = realClient(`http://127.0.0.1:${server.port}`);
    const keyWrapper = awsKmsKeyWrapper({ keyId, client, maxAttempts: 2 });
    await expect(keyWrapper.generate({ context })).rejects.toMatchObject({ kind });
    expect(requests()).toBe(attempts);
    await server.close();
  });
});

async function listen(onSocket: (socket: Socket) => void): Promise<{
  port: number;
  accepted: () => number;
  allClosed: () => Promise<unknown>;
  close: () => Promise<void>;
}> {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    // A client that abandons a call resets the connection.
    socket.on('error', () => {});
    socket.resume();
    onSocket(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address() as AddressInfo;
  return {
    port: address.port,
    accepted: () => sockets.length,
    allClosed: () => Promise.all(sockets.filter((socket) => !socket.closed).map((socket) => once(socket, 'close'))),
    async close() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  };
}
