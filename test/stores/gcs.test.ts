import { Storage } from '@google-cloud/storage';
import type { RingStoreInstance } from '@sealring/conformance';
import { gcsRing } from '@sealring/gcs';
import { PassThroughClient } from 'google-auth-library';
import { afterAll, beforeAll, describe } from 'vitest';
import { deleteGcsObject, gcsBucket, getGcsObject, putGcsObject, startFakeGcs } from '../support/fake-gcs.ts';
import type { TestServer } from '../support/redis.ts';
import { startOrSkip } from '../support/servers.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { describeFaults } from './fault-laws.ts';
import { describeFleet } from './fleet-laws.ts';
import { describeOurRingStore } from './our-ring-store.ts';

let server: TestServer | undefined;
await startOrSkip(async () => {
  server = await startFakeGcs();
  return server;
});
afterAll(() => server?.stop());
const address = server?.address ?? '';
const objectOf = (name: string): string => `${name}/ring`;

function open(name: string, options: { callTimeoutSeconds?: number; port?: number } = {}): RingStoreInstance {
  const { callTimeoutSeconds = 5, port = server?.port } = options;
  const client = new Storage({
    apiEndpoint: `http://127.0.0.1:${port}`,
    projectId: 'test',
    useAuthWithCustomEndpoint: true,
    authClient: new PassThroughClient(),
  });
  const store = gcsRing({ bucket: gcsBucket, object: objectOf(name), client, callTimeoutSeconds });
  return { store, close: () => store.close() };
}

describe.skipIf(server === undefined)('Google Cloud Storage', () => {
  let network: TcpProxy | undefined;
  beforeAll(async () => {
    network = await startTcpProxy(server?.port ?? 0);
  });
  afterAll(() => network?.close());

  describeOurRingStore({
    name: 'gcs',
    supports: { push: false, serviceDate: true, uniqueRevisions: true },
    create: async (name) => open(name, network === undefined ? {} : { port: network.port }),
    remove: (name) => deleteGcsObject(address, gcsBucket, objectOf(name)),
    plant: (name, document) => putGcsObject(address, gcsBucket, objectOf(name), document),
    async breakConnection() {
      network?.cut();
      return async () => network?.mend();
    },
  });

  describeFaults('gcs', { server: () => server, open, keepsItsData: false, hasPush: false });

  describeFleet('gcs', {
    hasPush: false,
    create: async (name) => open(name),
    async flush() {
      await server?.kill();
      await server?.start();
    },
    document: async (name) => (await getGcsObject(address, gcsBucket, objectOf(name))).toString(),
  });
});
