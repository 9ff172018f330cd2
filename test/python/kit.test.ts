import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CreateTableCommand, DeleteItemCommand, DynamoDBClient, PutItemCommand } from '@aws-sdk/client-dynamodb';
import { CreateBucketCommand, DeleteObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import {
  execKeyWrapperTarget,
  execRingStoreTarget,
  type KeyWrapperControl,
  type KeyWrapperSupport,
  type KeyWrapperTarget,
  type RingStoreSupport,
  type RingStoreTarget,
  runKeyWrapperConformance,
  runRingStoreConformance,
} from '@sealring/conformance';
import { migrate } from '@sealring/postgres';
import { Pool } from 'pg';
import { createClient } from 'redis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { localstackKeys } from '../conformance/key-wrappers/aws.ts';
import { gcpKeys } from '../conformance/key-wrappers/gcp.ts';
import { vaultKeys } from '../conformance/key-wrappers/vault.ts';
import { FakeKeyVault } from '../support/azure-key-vault/fake-key-vault.ts';
import { azuriteClient, startAzurite } from '../support/azurite.ts';
import { deleteGcsObject, gcsBucket, putGcsObject, startFakeGcs } from '../support/fake-gcs.ts';
import { expectNoFindings } from '../support/findings.ts';
import { startGcpKms } from '../support/gcp-kms/index.ts';
import { startLocalstack } from '../support/localstack.ts';
import { startMoto } from '../support/moto.ts';
import { startOpenBao } from '../support/openbao.ts';
import { startPostgres } from '../support/postgres.ts';
import { startRedis } from '../support/redis.ts';
import { startOrSkip } from '../support/servers.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import { pythonWithPackage } from './python-package.ts';

const program = fileURLToPath(new URL('kit_target.py', import.meta.url));
// The program imports the modules beside it.
const env = {
  PYTHONPATH: fileURLToPath(new URL('../../packages/conformance/templates/python', import.meta.url)),
  PYTHONDONTWRITEBYTECODE: '1',
};
const folder = mkdtempSync(join(tmpdir(), 'sealring-parts-'));
const stopping: (() => unknown)[] = [];
let python = '';

beforeAll(async () => {
  python = await pythonWithPackage();
});
afterAll(async () => {
  for (const stop of stopping.toReversed()) await stop();
  rmSync(folder, { recursive: true });
});

type Stop = { readonly close: () => Promise<void> };

async function ringStore(
  name: string,
  options: object,
  supports: RingStoreSupport = {},
): Promise<RingStoreTarget & Stop> {
  const command = [python, program, 'ring-store', JSON.stringify(supports), JSON.stringify(options)];
  return execRingStoreTarget(command, { name: `${name} (Python)`, env });
}

async function keyWrapper(
  name: string,
  roles: object,
  supports: KeyWrapperSupport = {},
): Promise<KeyWrapperTarget & Stop> {
  const command = [python, program, 'key-wrapper', JSON.stringify(supports), JSON.stringify(roles)];
  return execKeyWrapperTarget(command, { name: `${name} (Python)`, env });
}

/** No test listens on it, unlike on a port that was free a moment ago. */
const UNREACHABLE = 1;
const AWS = { region: 'us-east-1', maxAttempts: 1, credentials: { accessKeyId: 'test', secretAccessKey: 'test' } };

/** A connection to a server that can be cut. */
async function behindProxy(port: number) {
  const proxy = await startTcpProxy(port);
  stopping.push(() => proxy.close());
  return {
    address: `http://127.0.0.1:${proxy.port}`,
    breakConnection: async () => {
      proxy.cut();
      return async () => proxy.mend();
    },
  };
}

async function startMotoBehindProxy() {
  const moto = await startMoto();
  stopping.push(() => moto.stop());
  const { address } = moto;
  return { address, network: await behindProxy(Number(new URL(address).port)) };
}

const DATED: RingStoreSupport = { serviceDate: true, uniqueRevisions: true };

const STORES: Readonly<Record<string, () => Promise<RingStoreTarget & Stop>>> = {
  async FileRing() {
    const pathOf = (name: string): string => join(folder, `${name}.ring`);
    return {
      ...(await ringStore('FileRing', { path: pathOf('{ring}') })),
      remove: (name) => rmSync(pathOf(name), { force: true }),
      plant: (name, document) => writeFileSync(pathOf(name), document),
    };
  },
  async RedisRing() {
    const redis = await startRedis();
    stopping.push(() => redis.stop());
    const admin = await createClient({ url: redis.address }).connect();
    stopping.push(() => admin.destroy());
    return {
      ...(await ringStore('RedisRing', { url: redis.address, key: '{ring}' }, DATED)),
      remove: async (name) => void (await admin.sendCommand(['DEL', name])),
      plant: async (name, document) =>
        void (await admin.sendCommand(['HSET', name, 'document', document, 'revision', 'x'])),
      async breakConnection() {
        redis.freeze();
        return () => redis.thaw();
      },
    };
  },
  async PostgresRing() {
    const postgres = await startPostgres();
    stopping.push(() => postgres.stop());
    const pool = new Pool({ connectionString: postgres.address });
    stopping.push(() => pool.end());
    await migrate(pool);
    // Otherwise the test could not store a document over the limit; the store must not rely on the table's own bound.
    await pool.query('ALTER TABLE sealring_ring DROP CONSTRAINT sealring_ring_document_check');
    return {
      ...(await ringStore('PostgresRing', { store: 'postgres', url: postgres.address, name: '{ring}' }, DATED)),
      remove: async (name) => void (await pool.query('DELETE FROM sealring_ring WHERE name = $1', [name])),
      plant: async (name, document) =>
        void (await pool.query('INSERT INTO sealring_ring (name, document) VALUES ($1, $2)', [name, document])),
      async breakConnection() {
        postgres.freeze();
        return () => postgres.thaw();
      },
    };
  },
  async DynamodbRing() {
    const { address, network } = await startMotoBehindProxy();
    const client = new DynamoDBClient({ ...AWS, endpoint: address });
    stopping.push(() => client.destroy());
    await client.send(
      new CreateTableCommand({
        TableName: 'rings',
        BillingMode: 'PAY_PER_REQUEST',
        AttributeDefinitions: [{ AttributeName: 'pk', AttributeType: 'S' }],
        KeySchema: [{ AttributeName: 'pk', KeyType: 'HASH' }],
      }),
    );
    const keyOf = (name: string) => ({ pk: { S: `ring#${name}` } });
    const options = { store: 'dynamodb', endpoint: network.address, table: 'rings', name: '{ring}' };
    return {
      ...(await ringStore('DynamodbRing', options, DATED)),
      remove: async (name) => void (await client.send(new DeleteItemCommand({ TableName: 'rings', Key: keyOf(name) }))),
      plant: async (name, document) => {
        const Item = { ...keyOf(name), document: { S: document }, revision: { S: 'planted' } };
        await client.send(new PutItemCommand({ TableName: 'rings', Item }));
      },
      breakConnection: network.breakConnection,
    };
  },
  async S3Ring() {
    const { address, network } = await startMotoBehindProxy();
    const client = new S3Client({ ...AWS, endpoint: address, forcePathStyle: true });
    stopping.push(() => client.destroy());
    const Bucket = 'rings';
    await client.send(new CreateBucketCommand({ Bucket }));
    return {
      ...(await ringStore('S3Ring', { bucket: Bucket, key: '{ring}', endpoint: network.address }, DATED)),
      remove: async (Key) => void (await client.send(new DeleteObjectCommand({ Bucket, Key }))),
      plant: async (Key, document) =>
        void (await client.send(new PutObjectCommand({ Bucket, Key, Body: Buffer.from(document) }))),
      breakConnection: network.breakConnection,
    };
  },
  async GcsRing() {
    const gcs = await startFakeGcs();
    stopping.push(() => gcs.stop());
    const network = await behindProxy(gcs.port);
    const options = { store: 'gcs', endpoint: network.address, bucket: gcsBucket, name: '{ring}' };
    return {
      // The vendor's client keeps no headers.
      ...(await ringStore('GcsRing', options, { ...DATED, serviceDate: false })),
      remove: (name) => deleteGcsObject(gcs.address, gcsBucket, name),
      plant: (name, document) => putGcsObject(gcs.address, gcsBucket, name, document),
      breakConnection: network.breakConnection,
    };
  },
  async AzureBlobRing() {
    const azurite = await startAzurite();
    stopping.push(() => azurite.stop());
    const network = await behindProxy(azurite.port);
    const theirs = (name: string) => azuriteClient(azurite.account).getBlockBlobClient(name);
    const { url } = azuriteClient({ ...azurite.account, address: network.address });
    const options = { store: 'azure-blob', container: url, key: azurite.account.key, name: '{ring}' };
    return {
      ...(await ringStore('AzureBlobRing', options, DATED)),
      remove: async (name) => void (await theirs(name).delete()),
      plant: async (name, document) => void (await theirs(name).upload(document, Buffer.byteLength(document))),
      breakConnection: network.breakConnection,
    };
  },
};

/**
 * Defects of an emulator, not of a store. fake-gcs-server ignores `ifGenerationMatch` of a download, so during
 * concurrent writes a document may arrive with the previous generation. Cloud Storage refuses such a download.
 */
const EMULATOR_FAILS: Readonly<Record<string, readonly string[]>> = {
  GcsRing: [
    'RING-WRITE-REVISION',
    'RING-READ-WHOLE',
    'RING-READ-OVERLAPPED',
    'RING-READ-CURRENT',
    'RING-ABORT-READ',
    'RING-ABORT-WRITE',
    'RING-ABORT-CREATE',
    'RING-ABORT-OTHERS',
  ],
};

/** A key wrapper, on an emulator of its service. */
interface Subject {
  readonly start: () => Promise<(KeyWrapperTarget & Stop) | undefined>;
  /** Defects of the emulator, not of the key wrapper: the same as for the key wrapper in TypeScript. */
  readonly emulatorFails?: readonly string[];
}

const KEY_WRAPPERS: Readonly<Record<string, Subject>> = {
  LocalKeyWrapper: {
    async start() {
      const [self, other] = [randomBytes(32), randomBytes(32)].map((key) => ({ masterKey: key.toString('base64') }));
      return keyWrapper('LocalKeyWrapper', { self, other }, { remote: false, versions: false });
    },
  },
  'AwsKmsKeyWrapper on LocalStack': {
    async start() {
      const server = await startOrSkip(startLocalstack);
      if (server === undefined) return undefined;
      stopping.push(() => server.stop());
      const endpoint = server.address;
      const { own, other, control, closed } = await localstackKeys(endpoint);
      const self = { endpoint, keyId: own };
      const roles = { self, other: { endpoint, keyId: other }, unreachable: { ...self, endpoint: closed } };
      return { ...(await keyWrapper('AwsKmsKeyWrapper', roles, { versions: false })), control };
    },
    emulatorFails: ['WRAP-CONTEXT-BOUNDARIES'],
  },
  'GcpKmsKeyWrapper on a fake Cloud KMS': {
    async start() {
      const server = await startGcpKms();
      stopping.push(() => server.stop());
      const { own, other, control } = gcpKeys(server.kms);
      const self = { cloud: 'gcp', address: `127.0.0.1:${server.port}`, keyId: own };
      const unreachable = { ...self, address: `127.0.0.1:${UNREACHABLE}` };
      return {
        ...(await keyWrapper('GcpKmsKeyWrapper', { self, other: { ...self, keyId: other }, unreachable })),
        control,
      };
    },
  },
  'AzureKeyVaultKeyWrapper on a fake Key Vault': {
    async start() {
      const vault = await FakeKeyVault.start();
      stopping.push(() => vault.stop());
      const [own, other] = [vault.createKey('own'), vault.createKey('other')];
      const signing = vault.createKey('signing', 'EC');
      const certificate = join(folder, 'certificate.pem');
      writeFileSync(certificate, vault.certificate);
      const signKeyId = vault.idOf(signing, signing.current);
      const self = { cloud: 'azure', keyId: vault.idOf(own), signKeyId, token: vault.issueToken(), certificate };
      const unreachable = { ...self, proxy: `http://127.0.0.1:${UNREACHABLE}` };
      const roles = { self, other: { ...self, keyId: vault.idOf(other) }, unreachable };
      const control: KeyWrapperControl = {
        disable: () => own.set({ enabled: false }),
        enable: () => own.set({ enabled: true }),
        deny: () => vault.deny(),
        allow: () => vault.heal(),
        rotate: () => void own.rotate(),
      };
      return { ...(await keyWrapper('AzureKeyVaultKeyWrapper', roles)), control };
    },
  },
  'VaultTransitKeyWrapper on OpenBao': {
    async start() {
      const openbao = await startOpenBao();
      stopping.push(() => openbao.close());
      const { control, token } = await vaultKeys(openbao);
      const self = { cloud: 'vault', keyId: 'own', address: openbao.address, token };
      const unreachable = { ...self, address: `http://127.0.0.1:${UNREACHABLE}` };
      return {
        ...(await keyWrapper('VaultTransitKeyWrapper', { self, other: { ...self, keyId: 'other' }, unreachable })),
        control,
      };
    },
  },
};

describe('the conformance kit on the Python package, through --exec', () => {
  // They mostly wait: for deadlines, outages and pushes.
  test.concurrent.for(Object.entries(STORES))(
    'the ring store %s of the Python package passes the conformance kit',
    async ([name, start], { onTestFinished }) => {
      const target = await start();
      onTestFinished(target.close);
      const report = await runRingStoreConformance(target, { rounds: 20, writers: 8 });
      expectNoFindings(report, EMULATOR_FAILS[name]);
      expect(report.results.filter(({ status }) => status === 'pass').length).toBeGreaterThan(20);
    },
  );

  test.for(Object.entries(KEY_WRAPPERS))(
    'the key wrapper %s of the Python package passes the conformance kit',
    async ([, { start, emulatorFails = [] }], { skip, onTestFinished }) => {
      const target = await start();
      if (target === undefined) return skip('its emulator cannot run here');
      onTestFinished(target.close);
      const report = await runKeyWrapperConformance(target);
      const findings = expectNoFindings(report, emulatorFails);
      // The test must notice an emulator that improved.
      expect(findings.length > 0).toBe(emulatorFails.length > 0);
      expect(report.results.filter(({ status }) => status === 'pass').length).toBeGreaterThan(20);
    },
  );
});
