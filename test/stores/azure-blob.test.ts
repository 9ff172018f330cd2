import { azureBlobRing } from '@sealring/azure-blob';
import type { RingStoreInstance } from '@sealring/conformance';
import { afterAll, beforeAll, describe } from 'vitest';
import { type Azurite, azuriteClient, startAzurite } from '../support/azurite.ts';
import { startOrSkip } from '../support/servers.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { describeFaults } from './fault-laws.ts';
import { describeFleet } from './fleet-laws.ts';
import { describeOurRingStore } from './our-ring-store.ts';

let server: Azurite | undefined;
await startOrSkip(async () => {
  server = await startAzurite();
  return server;
});
afterAll(() => server?.stop());
const account = server?.account ?? { address: '', name: 'none', key: '' };

function open(name: string, options: { callTimeoutSeconds?: number; port?: number } = {}): RingStoreInstance {
  const { callTimeoutSeconds = 5, port } = options;
  const at = port === undefined ? account : { ...account, address: `http://127.0.0.1:${port}` };
  const store = azureBlobRing({ container: azuriteClient(at), blob: `${name}/ring`, callTimeoutSeconds });
  return { store, close: () => store.close() };
}

describe.skipIf(server === undefined)('Azure Blob Storage', () => {
  let network: TcpProxy | undefined;
  beforeAll(async () => {
    network = await startTcpProxy(server?.port ?? 0);
  });
  afterAll(() => network?.close());

  const theirs = (name: string) => azuriteClient(account).getBlockBlobClient(`${name}/ring`);

  describeOurRingStore({
    name: 'azure-blob',
    supports: { push: false, serviceDate: true, uniqueRevisions: true },
    create: async (name) => open(name, network === undefined ? {} : { port: network.port }),
    remove: async (name) => void (await theirs(name).delete()),
    plant: async (name, document) => void (await theirs(name).upload(document, Buffer.byteLength(document))),
    async breakConnection() {
      network?.cut();
      return async () => network?.mend();
    },
  });

  describeFaults('azure-blob', { server: () => server, open, keepsItsData: false, hasPush: false });

  describeFleet('azure-blob', {
    hasPush: false,
    create: async (name) => open(name),
    async flush() {
      await server?.kill();
      await server?.start();
    },
    document: async (name) => (await theirs(name).downloadToBuffer()).toString(),
  });
});
