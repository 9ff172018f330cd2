import { setTimeout as pause } from 'node:timers/promises';
import type { RingStoreInstance } from '@sealring/conformance';
import type { RingStore, RingStoreErrorKind } from '@sealring/core';
import { afterEach, describe, expect, test } from 'vitest';
import type { TestServer } from '../support/redis.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { until } from '../support/until.ts';

/** A store on a server of the test, and its behaviour under faults. */
export interface FaultTarget {
  /** Undefined if the server cannot run; these tests are then skipped. */
  server(): TestServer | undefined;
  open(name: string, options: { callTimeoutSeconds: number; port?: number }): RingStoreInstance;
  /** Whether documents survive a killed server. */
  readonly keepsItsData: boolean;
  /** Whether a store is notified of writes by another one. Default: true. */
  readonly hasPush?: boolean;
}

const failed = (kind: RingStoreErrorKind) => ({ name: 'RingStoreError', kind });

/** Tests of a store whose server or network fails: calls fail in time, and work again afterwards. */
export function describeFaults(title: string, target: FaultTarget): void {
  describe(`a ${title} ring store with faults`, () => {
    const closing: (() => Promise<void> | undefined)[] = [];
    let names = 0;
    afterEach(async () => {
      for (const close of closing.splice(0).toReversed()) await close();
    });

    function open(
      options: { callTimeoutSeconds: number; port?: number },
      name = `faults-${++names}-${Date.now()}`,
    ): RingStore {
      const opened = target.open(name, options);
      closing.push(async () => opened.close?.());
      return opened.store;
    }

    async function proxy(): Promise<TcpProxy> {
      const started = await startTcpProxy(target.server()?.port ?? 0);
      closing.push(() => started.close());
      return started;
    }

    function server(): TestServer {
      const started = target.server();
      if (started === undefined) throw new Error('not started');
      return started;
    }

    test('the store works again once its killed server is restarted', async () => {
      const store = open({ callTimeoutSeconds: 1 });
      const { revision } = await store.write('before', { expected: undefined });
      await server().kill();
      await expect(store.read()).rejects.toMatchObject(failed('unavailable'));
      await expect(store.write('x', { expected: revision })).rejects.toMatchObject(failed('unavailable'));
      await server().start();
      await until(() =>
        store.read().then(
          () => true,
          () => false,
        ),
      );
      const found = await store.read();
      expect(found).toEqual(target.keepsItsData ? { document: 'before', revision } : undefined);
      await store.write('after', { expected: found?.revision });
      expect((await store.read())?.document).toBe('after');
    });

    test('a server that restarts under load makes calls unavailable, but loses no acknowledged write', async () => {
      const name = `load-${Date.now()}`;
      const stores = [1, 2, 3].map(() => open({ callTimeoutSeconds: 1 }, name));
      const ended = new AbortController();
      const kinds = new Set<string>();
      let acknowledged = 0;
      const work = stores.map(async (store) => {
        while (!ended.signal.aborted) {
          try {
            const found = await store.read();
            await store.write(`${Number(found?.document ?? 0) + 1}`, { expected: found?.revision });
            acknowledged++;
          } catch (error) {
            kinds.add(kindOf(error));
          }
          await pause(1);
        }
      });
      await until(() => acknowledged > 50);
      await server().kill();
      await until(() => kinds.size > 0);
      const soFar = acknowledged;
      await server().start();
      await until(() => acknowledged > soFar + 50);
      ended.abort();
      await Promise.all(work);
      expect(acknowledged).toBeGreaterThan(soFar + 50);
      // A call may also have waited until the server was back.
      expect([...kinds].filter((kind) => kind !== 'RingConflictError' && kind !== 'unavailable')).toEqual([]);
      // A server without a disk loses only what it acknowledged before it was killed.
      const count = Number((await stores[0]?.read())?.document);
      expect(count).toBeGreaterThanOrEqual(target.keepsItsData ? acknowledged : acknowledged - soFar);
    });

    test('every call to a frozen server ends by its deadline, and an abandoned call is not sent later (F29)', async () => {
      const store = open({ callTimeoutSeconds: 1 });
      const { revision } = await store.write('before', { expected: undefined });
      server().freeze();
      try {
        const calls = await Promise.race([
          Promise.allSettled([store.read(), ...Array.from({ length: 30 }, () => store.read())]),
          pause(10_000, 'late' as const, { ref: false }),
        ]);
        expect(calls).not.toBe('late');
        for (const call of calls) expect(call).toMatchObject({ status: 'rejected', reason: failed('unavailable') });
      } finally {
        server().thaw();
      }
      await until(() =>
        store.read().then(
          () => true,
          () => false,
        ),
      );
      expect(await store.read()).toEqual({ document: 'before', revision });
    });

    test('an aborted call returns to the caller immediately', async () => {
      const store = open({ callTimeoutSeconds: 60 });
      await store.write('x', { expected: undefined });
      server().freeze();
      try {
        const signal = AbortSignal.timeout(100);
        const outcome = await Promise.race([
          Promise.allSettled([store.read({ signal }), store.write('y', { expected: undefined, signal })]),
          pause(20_000, 'late' as const, { ref: false }),
        ]);
        const letGo = { status: 'rejected', reason: failed('unavailable') };
        expect(outcome).toMatchObject([letGo, letGo]);
      } finally {
        server().thaw();
      }
    });

    test('when connections are reset, only the calls on them fail', async () => {
      const network = await proxy();
      const store = open({ callTimeoutSeconds: 2, port: network.port });
      const { revision } = await store.write('x', { expected: undefined });
      for (let i = 0; i < 5; i++) {
        network.reset();
        await until(() =>
          store.read().then(
            () => true,
            () => false,
          ),
        );
        expect(await store.read()).toEqual({ document: 'x', revision });
      }
    });

    test('calls fail as unavailable while the network is cut, and succeed once it is restored (F9)', async () => {
      const network = await proxy();
      const store = open({ callTimeoutSeconds: 1, port: network.port });
      const { revision } = await store.write('x', { expected: undefined });
      network.cut();
      for (let i = 0; i < 3; i++) await expect(store.read()).rejects.toMatchObject(failed('unavailable'));
      await expect(store.write('y', { expected: revision })).rejects.toMatchObject(failed('unavailable'));
      network.mend();
      await until(() =>
        store.read().then(
          () => true,
          () => false,
        ),
      );
      expect(await store.read()).toEqual({ document: 'x', revision });
    });

    test('a slow network makes no call fail', async () => {
      const network = await proxy();
      const store = open({ callTimeoutSeconds: 5, port: network.port });
      network.delay(60);
      const { revision } = await store.write('x', { expected: undefined });
      expect(await store.read()).toEqual({ document: 'x', revision });
      await expect(store.write('y', { expected: undefined })).rejects.toMatchObject({ name: 'RingConflictError' });
    });

    test('a call without an answer is reported as unavailable, and a read shows whether a write succeeded (F29)', async () => {
      const network = await proxy();
      const name = `half-open-${Date.now()}`;
      const [near, far] = [
        open({ callTimeoutSeconds: 1 }, name),
        open({ callTimeoutSeconds: 1, port: network.port }, name),
      ];
      const { revision } = await near.write('x', { expected: undefined });
      expect((await far.read())?.revision).toBe(revision);
      network.hang();
      await expect(far.write('y', { expected: revision })).rejects.toMatchObject(failed('unavailable'));
      await expect(far.read()).rejects.toMatchObject(failed('unavailable'));
      network.mend();
      network.reset();
      await until(() =>
        far.read().then(
          () => true,
          () => false,
        ),
      );
      expect(await far.read()).toEqual(await near.read());
    });

    test.skipIf(target.hasPush === false)(
      'push resumes once the server is back, and notifies of changes that may have been missed',
      async () => {
        const name = `push-${Date.now()}`;
        const [store, other] = [open({ callTimeoutSeconds: 2 }, name), open({ callTimeoutSeconds: 2 }, name)];
        let heard = 0;
        const unwatch = store.watch?.(() => heard++);
        await until(() => heard > 0);
        await server().kill();
        heard = 0;
        await server().start();
        await until(() => heard > 0);
        expect(heard).toBeGreaterThan(0);
        await until(() =>
          other.read().then(
            () => true,
            () => false,
          ),
        );
        heard = 0;
        await other.write('x', { expected: (await other.read())?.revision });
        await until(() => heard > 0);
        expect(heard).toBeGreaterThan(0);
        unwatch?.();
      },
    );
  });
}

function kindOf(error: unknown): string {
  if (error instanceof Error && 'kind' in error) return String(error.kind);
  return error instanceof Error ? error.name : 'no error';
}
