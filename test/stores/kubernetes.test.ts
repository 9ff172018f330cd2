import { createHash } from 'node:crypto';
import type { RingStoreInstance } from '@sealring/conformance';
import { kubernetesRing } from '@sealring/kubernetes';
import { afterAll, beforeAll, describe } from 'vitest';
import { type ApiServer, NAMESPACE, startFakeApiServer } from '../support/kubernetes/api-server.ts';
import { startRealApiServerOrSkip } from '../support/kubernetes/real-api-server.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { describeFaults } from './fault-laws.ts';
import { describeFleet } from './fleet-laws.ts';
import { describeOurRingStore } from './our-ring-store.ts';

const servers: readonly (readonly [title: string, api: ApiServer | undefined, keepsItsData: boolean])[] = [
  ['the fake API server', await startFakeApiServer(), false],
  ['kube-apiserver', await startRealApiServerOrSkip(), true],
];
afterAll(async () => {
  for (const [, api] of servers) await api?.server.stop();
});

describe.each(servers)('on %s', (_, api, keepsItsData) => {
  describe.skipIf(api === undefined).each(['Secret', 'ConfigMap'] as const)('a ring in a %s', (kind) => {
    let network: TcpProxy | undefined;
    beforeAll(async () => {
      network = await startTcpProxy(api?.server.port ?? 0);
    });
    afterAll(() => network?.close());

    const resource = kind === 'Secret' ? 'secrets' : 'configmaps';
    const collection = `/api/v1/namespaces/${NAMESPACE}/${resource}`;
    // The kit uses names with characters that no object of a cluster can have.
    const nameOf = (name: string): string => `ring-${createHash('sha256').update(name).digest('hex').slice(0, 40)}`;

    function open(name: string, options: { callTimeoutSeconds?: number; port?: number } = {}): RingStoreInstance {
      const { callTimeoutSeconds = 5, port } = options;
      const client = api?.config({ port });
      const store = kubernetesRing({
        namespace: NAMESPACE,
        name: nameOf(name),
        kind,
        callTimeoutSeconds,
        ...(client && { client }),
      });
      return { store, close: () => store.close() };
    }

    async function plant(name: string, document: string | Buffer): Promise<void> {
      const bytes = Buffer.from(document);
      const data = { ring: kind === 'Secret' ? bytes.toString('base64') : bytes.toString('utf8') };
      const path = `${collection}/${nameOf(name)}`;
      const patched = await api?.call('PATCH', path, { data });
      if (patched?.status !== 404) return;
      await api?.call('POST', collection, { apiVersion: 'v1', kind, metadata: { name: nameOf(name) }, data });
    }

    describeOurRingStore({
      name: `kubernetes ${kind}`,
      supports: { push: true, serviceDate: true, uniqueRevisions: true },
      create: async (name) => open(name, network === undefined ? {} : { port: network.port }),
      async remove(name) {
        await api?.call('DELETE', `${collection}/${nameOf(name)}`);
      },
      plant,
      async breakConnection() {
        network?.cut();
        return async () => network?.mend();
      },
    });

    describeFaults(`kubernetes ${kind}`, { server: () => api?.server, open, keepsItsData });

    describeFleet(`kubernetes ${kind}`, {
      create: async (name) => open(name),
      async flush() {
        const listed = await api?.call('GET', collection);
        if (listed?.status === 200) {
          const items: unknown = Reflect.get(Object(listed.body), 'items');
          for (const item of Array.isArray(items) ? items : []) {
            await api?.call('DELETE', `${collection}/${item.metadata.name}`);
          }
        }
      },
      async document(name) {
        const found = await api?.call('GET', `${collection}/${nameOf(name)}`);
        const entry: unknown = Reflect.get(Object(Reflect.get(Object(found?.body), 'data')), 'ring');
        if (typeof entry !== 'string') return undefined;
        return kind === 'Secret' ? Buffer.from(entry, 'base64').toString() : entry;
      },
    });
  });
});
