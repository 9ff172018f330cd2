import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CreateTableCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { CreateKeyCommand, KMSClient } from '@aws-sdk/client-kms';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { FakeKeyVault } from '../support/azure-key-vault/fake-key-vault.ts';
import { type Azurite, startAzurite } from '../support/azurite.ts';
import { gcsBucket, startFakeGcs } from '../support/fake-gcs.ts';
import { startGcpKms } from '../support/gcp-kms/index.ts';
import { NAMESPACE, startFakeApiServer } from '../support/kubernetes/api-server.ts';
import { callOpenBao, type OpenBao, startOpenBao } from '../support/openbao.ts';
import { startPostgres } from '../support/postgres.ts';
import { startRedis } from '../support/redis.ts';
import { startOrSkip } from '../support/servers.ts';
import type { Service } from './consumer/services.ts';

/** Servers for every service that the adapters use. */
export interface EveryService {
  /** The services that this machine can run, with new names each time. */
  list(): Service[];
  /** Credentials of a program. */
  readonly environment: NodeJS.ProcessEnv;
  stop(): Promise<void>;
}

interface Started {
  list(): Service[];
  readonly environment?: NodeJS.ProcessEnv;
  stop?(): Promise<unknown>;
}

const CREDENTIALS = { accessKeyId: 'test', secretAccessKey: 'test' };

/** @param moto - the address of moto; empty if it cannot run. */
export async function startEveryService(moto: string): Promise<EveryService> {
  const started = await Promise.all([
    moto === '' ? Promise.resolve(undefined) : onMoto(moto),
    onGcpKms(),
    onKeyVault(),
    onOpenBao(),
    onGcs(),
    onAzurite(),
    onKubernetes(),
    onRedis(),
    onPostgres(),
  ]);
  return {
    list: () => [{ kind: 'file' }, ...started.flatMap((one) => one?.list() ?? [])],
    environment: Object.assign({}, ...started.map((one) => one?.environment)),
    async stop() {
      for (const one of started) await one?.stop?.();
    },
  };
}

async function onMoto(endpoint: string): Promise<Started> {
  const config = { endpoint, region: 'us-east-1', credentials: CREDENTIALS };
  const [kms, s3, dynamodb] = [
    new KMSClient(config),
    new S3Client({ ...config, forcePathStyle: true }),
    new DynamoDBClient(config),
  ];
  const { KeyMetadata } = await kms.send(new CreateKeyCommand({}));
  const name = `consumer-${randomUUID()}`;
  await s3.send(new CreateBucketCommand({ Bucket: name }));
  await dynamodb.send(
    new CreateTableCommand({
      TableName: name,
      BillingMode: 'PAY_PER_REQUEST',
      AttributeDefinitions: [{ AttributeName: 'pk', AttributeType: 'S' }],
      KeySchema: [{ AttributeName: 'pk', KeyType: 'HASH' }],
    }),
  );
  for (const client of [kms, s3, dynamodb]) client.destroy();
  return {
    environment: {
      AWS_ENDPOINT_URL: endpoint,
      AWS_REGION: 'us-east-1',
      AWS_ACCESS_KEY_ID: CREDENTIALS.accessKeyId,
      AWS_SECRET_ACCESS_KEY: CREDENTIALS.secretAccessKey,
    },
    list: () => [
      { kind: 'kms', title: 'aws-kms', settings: { kind: 'aws', keyId: KeyMetadata?.Arn ?? '' } },
      { kind: 's3', endpoint, bucket: name, key: randomUUID() },
      { kind: 'dynamodb', endpoint, table: name, name: randomUUID() },
    ],
  };
}

async function onGcpKms(): Promise<Started> {
  const server = await startGcpKms();
  const endpoint = `http://${server.host}:${server.port}`;
  const settings = { kind: 'gcp', keyId: server.kms.createKey(), endpoint } as const;
  return { list: () => [{ kind: 'kms', title: 'gcp-kms', settings }], stop: () => server.stop() };
}

async function onKeyVault(): Promise<Started> {
  const vault = await FakeKeyVault.start();
  const folder = await mkdtemp(join(tmpdir(), 'sealring-vault-'));
  const certificate = join(folder, 'certificate.pem');
  await writeFile(certificate, vault.certificate);
  const signing = vault.createKey('signing', 'EC');
  const [keyId, signKeyId] = [vault.idOf(vault.createKey('wrapping')), vault.idOf(signing, signing.current)];
  return {
    environment: { AZURE_EMULATOR_TOKEN: vault.issueToken(), NODE_EXTRA_CA_CERTS: certificate },
    list: () => [{ kind: 'kms', title: 'azure-key-vault', settings: { kind: 'azure', keyId, signKeyId } }],
    stop: () => Promise.all([vault.stop(), rm(folder, { recursive: true })]),
  };
}

async function onOpenBao(): Promise<Started | undefined> {
  let server: OpenBao | undefined;
  await startOrSkip(async () => {
    server = await startOpenBao();
    return server;
  });
  if (server === undefined) return undefined;
  const bao = server;
  const { address, token } = bao;
  await callOpenBao(server, 'POST', 'sys/mounts/transit', { type: 'transit' });
  await callOpenBao(server, 'POST', 'transit/keys/consumer', {});
  const settings = { kind: 'vault', address, keyId: 'consumer' } as const;
  return {
    environment: { VAULT_TOKEN: token },
    list: () => [{ kind: 'kms', title: 'vault-transit', settings }],
    stop: () => bao.close(),
  };
}

async function onGcs(): Promise<Started | undefined> {
  const server = await startOrSkip(startFakeGcs);
  if (server === undefined) return undefined;
  return {
    list: () => [{ kind: 'gcs', endpoint: server.address, bucket: gcsBucket, object: randomUUID() }],
    stop: () => server.stop(),
  };
}

async function onAzurite(): Promise<Started | undefined> {
  let server: Azurite | undefined;
  await startOrSkip(async () => {
    server = await startAzurite();
    return server;
  });
  if (server === undefined) return undefined;
  const azurite = server;
  const { account } = azurite;
  const url = `${account.address}/${account.name}/sealring`;
  return {
    list: () => [{ kind: 'azure-blob', url, account, blob: randomUUID() }],
    stop: () => azurite.stop(),
  };
}

async function onKubernetes(): Promise<Started> {
  const { server } = await startFakeApiServer();
  return {
    list: () => [{ kind: 'kubernetes', server: server.address, namespace: NAMESPACE, name: `ring-${randomUUID()}` }],
    stop: () => server.stop(),
  };
}

async function onRedis(): Promise<Started | undefined> {
  const server = await startOrSkip(startRedis);
  if (server === undefined) return undefined;
  return {
    list: () => [{ kind: 'redis', url: server.address, key: randomUUID() }],
    stop: () => server.stop(),
  };
}

async function onPostgres(): Promise<Started | undefined> {
  const server = await startOrSkip(startPostgres);
  if (server === undefined) return undefined;
  return {
    list: () => [{ kind: 'postgres', url: server.address, name: randomUUID() }],
    stop: () => server.stop(),
  };
}
