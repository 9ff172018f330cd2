import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RingConflictError, type RingStoreErrorKind } from '@sealring/core';
import { afterAll, afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
// @boundaries-ignore the servers that the tests share are not a package
import {
  type ApiServer,
  kubeConfig,
  NAMESPACE,
  startFakeApiServer,
} from '../../../test/support/kubernetes/api-server.ts';
// @boundaries-ignore the servers that the tests share are not a package
import { startRealApiServerOrSkip } from '../../../test/support/kubernetes/real-api-server.ts';
// @boundaries-ignore the servers that the tests share are not a package
import { runProgram } from '../../../test/support/run-program.ts';
import { type KubernetesRingOptions, kubernetesRing } from '../src/index.ts';

const fake = await startFakeApiServer();
const real = await startRealApiServerOrSkip();
const servers: readonly (readonly [title: string, api: ApiServer])[] = [
  ['the fake API server', fake],
  ...(real === undefined ? [] : ([['kube-apiserver', real]] as const)),
];
const folder = mkdtempSync(join(tmpdir(), 'sealring-kubeconfig-'));
afterEach(() => void vi.unstubAllEnvs());
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  for (const [, { server }] of servers) await server.stop();
});

const failed = (kind: RingStoreErrorKind, detail: string) => ({
  name: 'RingStoreError',
  kind,
  detail: expect.stringContaining(detail),
});
const secrets = `/api/v1/namespaces/${NAMESPACE}/secrets`;
let names = 0;

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const member = (value: unknown, ...path: readonly string[]): unknown =>
  path.reduce<unknown>((found, name) => Reflect.get(Object(found), name), value);

describe.each(servers)('on %s', (_title, api) => {
  function newRing(options: Partial<KubernetesRingOptions> = {}) {
    const name = options.name ?? `ring-${++names}`;
    const ring = kubernetesRing({ namespace: NAMESPACE, name, client: api.config(), ...options });
    onTestFinished(() => ring.close());
    return { name, ring, path: `${secrets}/${name}` };
  }

  describe('the stored object', () => {
    test('a new ring is an Opaque Secret with the document in base64', async () => {
      const { name, ring, path } = newRing();
      await ring.write('{"é":1}\n', { expected: undefined });
      expect(ring.location).toBe(`kubernetes Secret ${NAMESPACE}/${name}`);
      const { body } = await api.call('GET', path);
      expect(body).toMatchObject({
        kind: 'Secret',
        type: 'Opaque',
        metadata: { name, labels: { 'app.kubernetes.io/managed-by': 'sealring' } },
        data: { ring: base64('{"é":1}\n') },
      });
    });

    test('a ring in a ConfigMap is readable text', async () => {
      const { name, ring } = newRing({ kind: 'ConfigMap', key: 'payments.ring' });
      await ring.write('{"é":1}\n', { expected: undefined });
      const { body } = await api.call('GET', `/api/v1/namespaces/${NAMESPACE}/configmaps/${name}`);
      expect(member(body, 'data')).toEqual({ 'payments.ring': '{"é":1}\n' });
      expect(body).not.toHaveProperty('type');
      expect(await ring.read()).toMatchObject({ document: '{"é":1}\n' });
    });

    test('other entries, labels and annotations survive a write', async () => {
      const { name, ring, path } = newRing();
      const metadata = { name, labels: { team: 'payments' }, annotations: { note: 'kept' } };
      await api.call('POST', secrets, { kind: 'Secret', metadata, data: { theirs: base64('kept') } });
      expect(await ring.read()).toBeUndefined();
      const { revision } = await ring.write('one', { expected: undefined });
      await ring.write('two', { expected: revision });
      const { body } = await api.call('GET', path);
      expect(member(body, 'data')).toEqual({ theirs: base64('kept'), ring: base64('two') });
      expect(body).toMatchObject({ metadata: { labels: { team: 'payments' }, annotations: { note: 'kept' } } });
    });

    test('an object that was created empty counts as an absent ring, and needs no permission to create', async () => {
      const { name, path } = newRing();
      const token = await api.token([`get secrets/${name}`, `patch secrets/${name}`]);
      const { ring } = newRing({ name, client: api.config({ token }) });
      await expect(ring.write('one', { expected: undefined })).rejects.toMatchObject(failed('denied', 'permissions'));
      await api.call('POST', secrets, { kind: 'Secret', metadata: { name } });
      const { revision } = await ring.write('one', { expected: undefined });
      expect(await ring.read()).toEqual({ document: 'one', revision });
      expect((await api.call('GET', path)).status).toBe(200);
    });
  });

  describe('compare-and-swap', () => {
    test('exactly one of two writers of the same document succeeds', async () => {
      const { name, ring } = newRing();
      const { revision } = await ring.write('same', { expected: undefined });
      const { ring: other } = newRing({ name });
      const writes = await Promise.allSettled([
        ring.write('same', { expected: revision }),
        other.write('same', { expected: revision }),
      ]);
      expect(writes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
      const lost = writes.find((write) => write.status === 'rejected');
      expect(lost?.reason).toBeInstanceOf(RingConflictError);
    });

    test('a write that expects no ring is a conflict if a ring exists, and a read reports the date of the server', async () => {
      const { ring } = newRing();
      await ring.write('one', { expected: undefined });
      await expect(ring.write('two', { expected: undefined })).rejects.toBeInstanceOf(RingConflictError);
      const dates: Date[] = [];
      await ring.read({ onServiceDate: (date) => dates.push(date) });
      expect(dates).toHaveLength(1);
      expect(Math.abs(Number(dates[0]) - Date.now())).toBeLessThan(60_000);
    });

    test('a ring that was deleted and recreated is a different ring, even with an equal resourceVersion', async () => {
      const { ring, path } = newRing();
      const { revision } = await ring.write('one', { expected: undefined });
      await api.call('DELETE', path);
      await expect(ring.write('two', { expected: revision })).rejects.toBeInstanceOf(RingConflictError);
      const { revision: second } = await ring.write('three', { expected: undefined });
      const [uid] = revision.split('/');
      const [, version] = second.split('/');
      await expect(ring.write('four', { expected: `${uid}/${version}` })).rejects.toBeInstanceOf(RingConflictError);
      expect((await ring.read())?.document).toBe('three');
    });
  });

  describe('a document that is not a ring', () => {
    test.each([
      ['an entry that is empty', '', 'corrupt', 'empty'],
      ['an entry that is not UTF-8', Buffer.from([0xff, 0xfe]).toString('base64'), 'corrupt', 'UTF-8'],
      ['a document over the bound', Buffer.alloc(262_145, 0x61).toString('base64'), 'too-large', '262144'],
    ] as const)('%s is reported with a kind and the revision needed to replace it', async (_, entry, kind, detail) => {
      const { name, ring } = newRing();
      await api.call('POST', secrets, { kind: 'Secret', metadata: { name }, data: { ring: entry } });
      const error: unknown = await ring.read().catch((thrown: unknown) => thrown);
      expect(error).toMatchObject(failed(kind, detail));
      await ring.write('mended', { expected: String(member(error, 'revision')) });
      expect((await ring.read())?.document).toBe('mended');
    });

    test('a ConfigMap entry that is not UTF-8, which is in binaryData, is corrupt and can be replaced', async () => {
      const { name, ring } = newRing({ kind: 'ConfigMap' });
      const path = `/api/v1/namespaces/${NAMESPACE}/configmaps`;
      const binaryData = { ring: '/w==', theirs: '/w==' };
      await api.call('POST', path, { kind: 'ConfigMap', metadata: { name }, binaryData });
      const error: unknown = await ring.read().catch((thrown: unknown) => thrown);
      expect(error).toMatchObject(failed('corrupt', 'UTF-8'));
      await expect(ring.write('x', { expected: undefined })).rejects.toBeInstanceOf(RingConflictError);
      await ring.write('repaired', { expected: String(member(error, 'revision')) });
      expect((await ring.read())?.document).toBe('repaired');
      const { body } = await api.call('GET', `${path}/${name}`);
      expect(member(body, 'binaryData')).toEqual({ theirs: '/w==' });
    });

    test.runIf(api === fake)('a write fails as unavailable if an admission webhook changed the document', async () => {
      const { ring } = newRing({ name: `mutated-${++names}` });
      await expect(ring.write('x', { expected: undefined })).rejects.toMatchObject(failed('unavailable', 'webhooks'));
    });

    test('an immutable object is read-only', async () => {
      const { name, ring } = newRing();
      await api.call('POST', secrets, {
        kind: 'Secret',
        metadata: { name },
        data: { ring: base64('x') },
        immutable: true,
      });
      const { revision } = (await ring.read()) ?? { revision: '' };
      await expect(ring.write('y', { expected: revision })).rejects.toMatchObject(failed('read-only', 'immutable'));
    });

    test('an object that grows beyond the Kubernetes size limit is too large', async () => {
      const { name, ring } = newRing();
      const theirs = Buffer.alloc(900_000).toString('base64');
      await api.call('POST', secrets, { kind: 'Secret', metadata: { name }, data: { theirs } });
      await expect(ring.write('x'.repeat(200_000), { expected: undefined })).rejects.toMatchObject(
        failed('too-large', 'larger than Kubernetes allows'),
      );
    });
  });

  describe('refusals', () => {
    test('an unknown token is denied, and the error says why', async () => {
      const { ring } = newRing({ client: api.config({ token: 'expired' }) });
      await expect(ring.read()).rejects.toMatchObject(failed('denied', 'credentials are missing, wrong or expired'));
    });

    test('each missing permission causes a denial only at the call that needs it', async () => {
      const { name } = newRing();
      const reader = await api.token([`get secrets/${name}`]);
      const { ring } = newRing({ name });
      const { revision } = await ring.write('one', { expected: undefined });
      const { ring: readable } = newRing({ name, client: api.config({ token: reader }) });
      expect((await readable.read())?.document).toBe('one');
      await expect(readable.write('two', { expected: revision })).rejects.toMatchObject({
        kind: 'denied',
        serviceCode: 'Forbidden',
      });
      const { ring: other } = newRing({ name: `${name}-other`, client: api.config({ token: reader }) });
      await expect(other.read()).rejects.toMatchObject(failed('denied', 'permissions'));
    });

    test('a caller without permission to write is denied, even if the write would be a conflict', async () => {
      const { name, ring } = newRing();
      await ring.write('one', { expected: undefined });
      const token = await api.token([`get secrets/${name}`]);
      const { ring: readable } = newRing({ name, client: api.config({ token }) });
      await expect(readable.write('two', { expected: undefined })).rejects.toMatchObject({
        kind: 'denied',
        serviceCode: 'Forbidden',
      });
    });

    test('a namespace that does not exist is reported as denied at the first write', async () => {
      const { ring } = newRing({ namespace: 'nowhere' });
      expect(await ring.read()).toBeUndefined();
      await expect(ring.write('x', { expected: undefined })).rejects.toMatchObject(
        failed('denied', 'namespace does not exist'),
      );
    });

    test('a 404 from another server does not mean that the ring is absent', async () => {
      const server = `${api.server.address}/not-the-api`;
      const { ring } = newRing({ client: kubeConfig({ server, skipTLSVerify: true }, 'admin') });
      await expect(ring.read()).rejects.toMatchObject(failed('unavailable', 'no API server for Secrets'));
    });

    test('a refused connection is reported as unavailable, with its error code', async () => {
      const { ring } = newRing({ client: api.config({ port: 1 }) });
      await expect(ring.read()).rejects.toMatchObject(failed('unavailable', 'ECONNREFUSED'));
    });

    test('a client without a current cluster is reported as unavailable', async () => {
      const client = { getCurrentCluster: () => null, applyToHTTPSOptions: async () => undefined };
      const { ring } = newRing({ client });
      await expect(ring.read()).rejects.toMatchObject(failed('unavailable', 'no connection, or no credentials'));
    });

    test('the kubeconfig file that KUBECONFIG names is used by default', async () => {
      const { name, ring } = newRing();
      await ring.write('one', { expected: undefined });
      const kubeconfig = join(folder, name);
      writeFileSync(kubeconfig, api.config().exportConfig());
      vi.stubEnv('KUBECONFIG', kubeconfig);
      const byDefault = kubernetesRing({ namespace: NAMESPACE, name });
      onTestFinished(() => byDefault.close());
      expect((await byDefault.read())?.document).toBe('one');
    });

    test('a kubeconfig that cannot be read is reported as unavailable, and the error says what to check', async () => {
      const kubeconfig = join(folder, 'broken');
      writeFileSync(kubeconfig, 'hunter2: [');
      vi.stubEnv('KUBECONFIG', kubeconfig);
      const ring = kubernetesRing({ namespace: NAMESPACE, name: 'x' });
      onTestFinished(() => ring.close());
      const error: unknown = await ring.read().catch((thrown: unknown) => thrown);
      expect(error).toMatchObject(failed('unavailable', 'check the kubeconfig'));
      expect(String(error)).not.toContain('hunter2');
    });

    test('no message repeats text from the API server or the client', async () => {
      const client = {
        getCurrentCluster: () => ({ server: api.server.address }),
        applyToHTTPSOptions: () => Promise.reject(new Error('token hunter2 has expired')),
      };
      const { ring } = newRing({ client });
      const error: unknown = await ring.read().catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ kind: 'unavailable' });
      expect(JSON.stringify(error) + String(error)).not.toContain('hunter2');
    });
  });

  describe('watch', () => {
    const heardBy = (ring: ReturnType<typeof newRing>['ring']) => {
      let heard = 0;
      const unwatch = ring.watch(() => heard++);
      onTestFinished(unwatch);
      return () => heard;
    };

    /** A watched ring with one document, a count of its watches, and one of their notifications. */
    const watched = async () => {
      let nowMs = 5_000;
      const clock = vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
      onTestFinished(() => clock.mockRestore());
      const config = api.config();
      let requests = 0;
      const client = {
        getCurrentCluster: () => config.getCurrentCluster(),
        applyToHTTPSOptions: (options: object) => {
          requests += 1;
          return config.applyToHTTPSOptions(options);
        },
      };
      const { name, ring } = newRing();
      const { revision } = await ring.write('one', { expected: undefined });
      const heard = heardBy(newRing({ name, client }).ring);
      await expect.poll(heard).toBeGreaterThan(1);
      // A watch that ends within a second is not resumed: a new one starts after a pause.
      const endWatches = async (lastedMs = 1_000): Promise<void> => {
        nowMs += lastedMs;
        const before = requests;
        await fake.endWatches();
        await expect.poll(() => requests).toBeGreaterThan(before);
      };
      return { ring, revision, heard, endWatches };
    };

    test('reports writes and a deletion, and no other change in the namespace', async () => {
      const { name, ring, path } = newRing();
      const { revision } = await ring.write('one', { expected: undefined });
      const heard = heardBy(ring);
      await expect.poll(heard).toBeGreaterThan(1);
      const before = heard();
      await newRing({ name: `${name}-other` }).ring.write('x', { expected: undefined });
      await ring.write('two', { expected: revision });
      await expect.poll(heard).toBe(before + 1);
      await api.call('DELETE', path);
      await expect.poll(heard).toBe(before + 2);
    });

    test('needs only the permission to watch this object', async () => {
      const { name, ring } = newRing();
      const token = await api.token([`watch secrets/${name}`]);
      const heard = heardBy(newRing({ name, client: api.config({ token }) }).ring);
      await expect.poll(heard).toBeGreaterThan(0);
      const before = heard();
      await ring.write('one', { expected: undefined });
      await expect.poll(heard).toBeGreaterThan(before);
    });

    test.runIf(api === fake)(
      'resumes a watch at the version where it ended, without missing a write or reporting one twice',
      async () => {
        const { ring, revision, heard, endWatches } = await watched();
        const before = heard();
        await endWatches();
        await endWatches();
        const second = await ring.write('two', { expected: revision });
        await expect.poll(heard).toBe(before + 1);
        await endWatches();
        await ring.write('three', { expected: second.revision });
        await expect.poll(heard).toBe(before + 2);
      },
    );

    test.runIf(api === fake)('a watch that ended within a second is not resumed, and counts as a change', async () => {
      const { heard, endWatches } = await watched();
      const before = heard();
      await endWatches(999);
      await expect.poll(heard).toBeGreaterThan(before);
    });

    test.runIf(api === fake)('starts again if its version is too old, and counts that as a change (410)', async () => {
      const { ring, revision, heard, endWatches } = await watched();
      await newRing().ring.write('x', { expected: undefined });
      const before = heard();
      await api.compact();
      await endWatches();
      await expect.poll(heard).toBeGreaterThan(before);
      const after = heard();
      await ring.write('two', { expected: revision });
      await expect.poll(heard).toBeGreaterThan(after);
    });

    test.runIf(api === fake)('resumes at a bookmark, which is not a change', async () => {
      const { ring, revision, heard, endWatches } = await watched();
      await newRing().ring.write('x', { expected: undefined });
      const before = heard();
      await fake.bookmarks();
      await api.compact();
      await endWatches();
      expect(heard()).toBe(before);
      await ring.write('two', { expected: revision });
      await expect.poll(heard).toBe(before + 1);
    });

    test('pauses before the next watch if every watch ends at once', async () => {
      const pauses = vi.spyOn(globalThis, 'setTimeout');
      onTestFinished(() => pauses.mockRestore());
      let asked = 0;
      const http = createServer((_, response) => {
        asked += 1;
        response.end();
      });
      onTestFinished(() => void http.close());
      await new Promise<void>((listening) => http.listen(0, '127.0.0.1', listening));
      const address = http.address();
      const server = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
      const random = vi.spyOn(Math, 'random').mockReturnValue(0.4);
      onTestFinished(() => random.mockRestore());
      heardBy(newRing({ client: kubeConfig({ server, skipTLSVerify: true }, 'any') }).ring);
      await expect.poll(() => asked).toBeGreaterThan(1);
      expect(pauses.mock.calls.map(([, delayMs]) => delayMs)).toContain(40);
    });

    test('does not keep the process alive', async () => {
      const program = `
      import { KubeConfig } from '@kubernetes/client-node';
      import { kubernetesRing } from '@sealring/kubernetes';
      const client = new KubeConfig();
      client.loadFromString(process.argv[1]);
      const ring = kubernetesRing({ namespace: '${NAMESPACE}', name: 'alive', client });
      ring.watch(() => console.log('heard'));
      await new Promise((heard) => setTimeout(heard, 500));
    `;
      const { code, output } = await runProgram(
        process.execPath,
        ['--input-type=module', '--eval', program, api.config().exportConfig()],
        { cwd: import.meta.dirname, timeoutMs: 20_000 },
      );
      expect(output).toContain('heard');
      expect(code).toBe(0);
    });
  });
});
