import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, TLSSocket } from 'node:tls';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { KMSClient } from '@aws-sdk/client-kms';
import { S3Client } from '@aws-sdk/client-s3';
import { KeyManagementServiceClient } from '@google-cloud/kms';
import { Storage } from '@google-cloud/storage';
import { credentials } from '@grpc/grpc-js';
import { awsKmsKeyWrapper } from '@sealring/aws-kms';
import { azureBlobRing } from '@sealring/azure-blob';
import { azureKeyVaultKeyWrapper } from '@sealring/azure-key-vault';
import { type KeyWrapper, KeyWrapperError, type RingStore, RingStoreError } from '@sealring/core';
import { dynamodbRing, dynamodbSingleUse } from '@sealring/dynamodb';
import { gcpKmsKeyWrapper } from '@sealring/gcp-kms';
import { gcsRing } from '@sealring/gcs';
import { kubernetesRing } from '@sealring/kubernetes';
import { postgresRing } from '@sealring/postgres';
import { redisRing } from '@sealring/redis';
import { s3Ring } from '@sealring/s3';
import { vaultTransitKeyWrapper } from '@sealring/vault-transit';
import { PassThroughClient } from 'google-auth-library';
import { afterEach, describe, expect, test } from 'vitest';
import { selfSignedCertificate } from '../support/azure-key-vault/certificate.ts';
import { fixedCredential } from '../support/azure-key-vault/clients.ts';
import { clientOptions } from '../support/gcp-kms/client.ts';
import { kubeConfig } from '../support/kubernetes/api-server.ts';

const HOST = '127.0.0.1';
const aws = {
  region: 'us-east-1',
  maxAttempts: 1,
  credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
};
const keyWrapper = { maxAttempts: 1 };

/** Each adapter with the vendor's SDK, over TLS, at a port of this machine. */
const KEY_WRAPPERS: Record<string, (port: number) => KeyWrapper> = {
  'aws-kms': (port) =>
    awsKmsKeyWrapper({
      ...keyWrapper,
      keyId: 'alias/sealring',
      client: new KMSClient({ ...aws, endpoint: `https://${HOST}:${port}` }),
    }),
  'gcp-kms': (port) =>
    gcpKmsKeyWrapper({
      ...keyWrapper,
      keyId: 'projects/p/locations/l/keyRings/r/cryptoKeys/k',
      client: new KeyManagementServiceClient({
        ...clientOptions({ host: HOST, port }),
        sslCreds: credentials.createSsl(),
      }),
    }),
  'azure-key-vault': (port) =>
    azureKeyVaultKeyWrapper({
      ...keyWrapper,
      keyId: `https://${HOST}:${port}/keys/ring/0123456789abcdef0123456789abcdef`,
      algorithm: 'A256KW',
      credential: fixedCredential('token'),
    }),
  'vault-transit': (port) =>
    vaultTransitKeyWrapper({ ...keyWrapper, address: `https://${HOST}:${port}`, keyId: 'k', token: 'token' }),
};

const STORES: Record<string, (port: number) => RingStore> = {
  redis: (port) => redisRing({ url: `rediss://${HOST}:${port}`, callTimeoutSeconds: 1 }),
  postgres: (port) => postgresRing({ connectionString: `postgres://u@${HOST}:${port}/d?sslmode=verify-full` }),
  dynamodb: (port) =>
    dynamodbRing({ table: 'sealring', client: new DynamoDBClient({ ...aws, endpoint: `https://${HOST}:${port}` }) }),
  s3: (port) =>
    s3Ring({
      bucket: 'sealring',
      key: 'ring',
      client: new S3Client({ ...aws, endpoint: `https://${HOST}:${port}`, forcePathStyle: true }),
    }),
  gcs: (port) =>
    gcsRing({
      bucket: 'sealring',
      object: 'ring',
      client: new Storage({
        apiEndpoint: `https://${HOST}:${port}`,
        projectId: 'test',
        useAuthWithCustomEndpoint: true,
        authClient: new PassThroughClient(),
      }),
    }),
  kubernetes: (port) =>
    kubernetesRing({
      namespace: 'sealring',
      name: 'ring',
      client: kubeConfig({ server: `https://${HOST}:${port}` }, 'token'),
    }),
  'azure-blob': (port) => azureBlobRing({ container: `https://${HOST}:${port}/account/sealring`, blob: 'ring' }),
};

/** The report of a failed call to an operator. */
interface Report {
  readonly kind: string;
  readonly code: string | undefined;
  readonly text: string | undefined;
}

async function reportOf(name: string, port: number): Promise<Report> {
  const wrapper = KEY_WRAPPERS[name]?.(port);
  const ring = STORES[name]?.(port);
  const error: unknown = await Promise.resolve(
    wrapper?.wrap(
      Uint8Array.from({ length: 32 }, (_, i) => i),
      { context: {} },
    ) ?? ring?.read(),
  ).catch((reason: unknown) => reason);
  await wrapper?.close?.();
  await ring?.close?.();
  if (error instanceof KeyWrapperError) return { kind: error.kind, code: error.summary.code, text: error.summary.hint };
  if (error instanceof RingStoreError) return { kind: error.kind, code: error.serviceCode, text: error.detail };
  throw new Error(`neither: ${String(error)}`);
}

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

async function portOf(server: Server): Promise<number> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => {
    sockets.add(socket);
    // A client that gives up resets the connection.
    socket.on('error', () => undefined);
  });
  server.on('tlsClientError', () => undefined);
  server.listen(0, HOST);
  await once(server, 'listening');
  closing.push(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return (server.address() as AddressInfo).port;
}

/** A port of this machine where nothing listens. */
async function freePort(): Promise<number> {
  const server = createServer();
  const port = await portOf(server);
  server.close();
  await once(server, 'close');
  return port;
}

const certificate = selfSignedCertificate();

/** A server with an untrusted certificate. PostgreSQL negotiates TLS within its own protocol first. */
function untrusted(name: string): Promise<number> {
  if (name !== 'postgres') return portOf(createTlsServer({ ...certificate, ALPNProtocols: ['h2', 'http/1.1'] }));
  return portOf(
    createServer((socket) => {
      socket.once('data', () => {
        socket.write('S');
        new TLSSocket(socket, { isServer: true, ...certificate }).on('error', () => undefined);
      });
    }),
  );
}

/** A server that answers in plaintext, as HTTP does; PostgreSQL has its own answer for it. */
function plaintext(name: string): Promise<number> {
  const answer = name === 'postgres' ? 'N' : 'HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n';
  return portOf(createServer((socket) => socket.once('data', () => socket.end(answer))));
}

const NAMES = [...Object.keys(KEY_WRAPPERS), ...Object.keys(STORES)];

describe.each(NAMES)('the %s adapter, without its service', (name) => {
  test('reports an untrusted certificate, with the remedy', async () => {
    const report = await reportOf(name, await untrusted(name));
    expect(report).toMatchObject({ kind: 'unavailable', code: 'DEPTH_ZERO_SELF_SIGNED_CERT' });
    expect(report.text).toContain('certificate of the server is not trusted');
    expect(report.text).toContain('NODE_EXTRA_CA_CERTS');
  });

  test('reports a port that does not use TLS', async () => {
    const report = await reportOf(name, await plaintext(name));
    expect(report.kind).toBe('unavailable');
    expect(report.code).toMatch(/^(?:EPROTO|ERR_SSL_WRONG_VERSION_NUMBER|ERR_POSTGRES_NO_TLS)$/);
    expect(report.text).toMatch(/TLS/);
  });

  test('reports a connection that was reset, and does not call it a timeout', async () => {
    const report = await reportOf(name, await portOf(createServer((socket) => socket.resetAndDestroy())));
    expect(report).toMatchObject({
      kind: 'unavailable',
      code: expect.stringMatching(/^(?:ECONNRESET|UND_ERR_SOCKET)$/),
    });
    expect(report.text).toContain('closed before an answer arrived');
  });

  test('reports a port where nothing listens', async () => {
    const report = await reportOf(name, await freePort());
    expect(report).toMatchObject({ kind: 'unavailable', code: 'ECONNREFUSED' });
    expect(report.text).toContain('check the host and the port');
  });
});

test('a claim on a single-use store reports an untrusted certificate with its code', async () => {
  const client = new DynamoDBClient({ ...aws, endpoint: `https://${HOST}:${await untrusted('dynamodb')}` });
  const claim = dynamodbSingleUse({ table: 'sealring', client }).claim('id', new Date(Date.now() + 60_000));
  await expect(claim).rejects.toMatchObject({
    name: 'SingleUseStoreError',
    kind: 'unavailable',
    serviceCode: 'DEPTH_ZERO_SELF_SIGNED_CERT',
  });
});
