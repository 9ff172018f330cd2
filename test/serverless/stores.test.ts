import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CreateTableCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import {
  ContainerSASPermissions,
  generateBlobSASQueryParameters,
  StorageSharedKeyCredential,
} from '@azure/storage-blob';
import { migrate } from '@sealring/postgres';
import { Pool } from 'pg';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { azuriteClient, startAzurite } from '../support/azurite.ts';
import { startPostgres } from '../support/postgres.ts';
import { startRedis } from '../support/redis.ts';
import { bundleForWorkerd, hasWorkerd, startWorkers } from '../support/workerd.ts';

const moto = inject('moto');

/** Starts the server of a store. @returns the variables that its Worker reads. */
const started: Readonly<Record<string, () => Promise<Record<string, string>>>> = {
  async dynamodb() {
    const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
    const client = new DynamoDBClient({ endpoint: moto, region: 'us-east-1', credentials });
    await client.send(
      new CreateTableCommand({
        TableName: 'workers',
        BillingMode: 'PAY_PER_REQUEST',
        AttributeDefinitions: [{ AttributeName: 'pk', AttributeType: 'S' }],
        KeySchema: [{ AttributeName: 'pk', KeyType: 'HASH' }],
      }),
    );
    client.destroy();
    return { ENDPOINT: moto };
  },
  async redis() {
    const server = await startRedis();
    onTestFinished(() => server.stop());
    return { URL: server.address };
  },
  async postgres() {
    const server = await startPostgres();
    onTestFinished(() => server.stop());
    const pool = new Pool({ connectionString: server.address });
    await migrate(pool);
    await pool.end();
    return { URL: server.address };
  },
  async 'azure-blob'() {
    const server = await startAzurite();
    onTestFinished(() => server.stop());
    const { account } = server;
    const { url, containerName } = azuriteClient(account);
    const permissions = ContainerSASPermissions.parse('rcwl');
    const expiresOn = new Date(Date.now() + 3_600_000);
    const credential = new StorageSharedKeyCredential(account.name, account.key);
    const sas = generateBlobSASQueryParameters({ containerName, permissions, expiresOn }, credential);
    return { URL: `${url}?${sas.toString()}` };
  },
};

describe.skipIf(!hasWorkerd || moto === '')('ring stores in workerd', () => {
  test.each([
    ['dynamodb', 'worker'],
    ['redis', 'worker'],
    ['postgres', 'worker'],
    // The build of its SDK for browsers needs `document` when it is loaded.
    ['azure-blob', 'node'],
  ] as const)('a ring in %s is created, read and replaced once (bundled for %s)', async (store, conditions) => {
    const folder = mkdtempSync(join(tmpdir(), 'sealring-workerd-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const input = fileURLToPath(new URL(`stores/${store}.js`, import.meta.url));
    const file = await bundleForWorkerd(input, folder, conditions);
    const running = await startWorkers(folder, [{ file, bindings: (await started[store]?.()) ?? {} }]);
    onTestFinished(() => running.stop());
    const answer = await fetch(running.origins[0] ?? '', { method: 'POST', signal: AbortSignal.timeout(60_000) });
    expect(await answer.json()).toEqual([
      'absent',
      'written',
      'RingConflictError',
      'written',
      'RingConflictError',
      'second',
    ]);
  });
});
