import { memoryRing, type RingStore, type RingStoreCallOptions } from '@sealring/core';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import {
  describeRingStore,
  RING_STORE_REQUIREMENTS,
  type RingStoreTarget,
  runRingStoreConformance,
} from '../src/index.ts';
import { pageOf, requirementsPage } from './requirements-page.ts';
import { BROKEN_RING_STORES, zooRingTarget } from './zoo/broken-ring-stores.ts';
import { ODD_RING_STORES } from './zoo/odd-ring-stores.ts';
import { bucket, file, log, memory, sqlite } from './zoo/sound-ring-stores.ts';
import { VENDOR_RING_STORES } from './zoo/vendor-ring-stores.ts';

const ids = RING_STORE_REQUIREMENTS.map(({ id }) => id);
const BROKEN = [...BROKEN_RING_STORES, ...VENDOR_RING_STORES];

test('no two requirements have the same id', () => {
  expect(new Set(ids).size).toBe(ids.length);
});

test('every requirement has a broken store that it must catch', () => {
  expect([...new Set(BROKEN.map(({ caughtBy }) => caughtBy))].toSorted()).toEqual(ids.toSorted());
});

describe.concurrent('broken ring stores', () => {
  for (const { target, caughtBy } of BROKEN) {
    // On a busy machine, a run may miss the moment that shows the fault.
    const retry = caughtBy.startsWith('RING-ABORT-') || caughtBy === 'RING-OUTAGE-UNDER-WAY' ? 2 : 0;
    test(`${caughtBy} catches this broken ring store: ${target.name}`, { retry }, async () => {
      const { results } = await runRingStoreConformance(target, {
        seed: 1,
        only: [caughtBy],
        timeoutMs: 20_000,
        // The same number as for the stores of this repository.
        rounds: 20,
      });
      const level = RING_STORE_REQUIREMENTS.find(({ id }) => id === caughtBy)?.level;
      expect(results.map(({ id, status }) => [id, status])).toEqual([[caughtBy, level === 'MUST' ? 'fail' : 'warn']]);
      expect(results[0]?.detail).not.toMatch(/^unexpected|rejected without a handler|thrown outside any call/);
    });
  }
});

// Separates the two, so that leftovers of a broken store are not reported for a sound one.
test('the page lists the inputs of each requirement', async () => {
  const page = requirementsPage('ring-store', RING_STORE_REQUIREMENTS);
  await expect(page).toMatchFileSnapshot(pageOf('ring-store'));
});

describe.concurrent('sound ring stores, with any seed', () => {
  // First, since a remote store takes as long as all others together.
  for (const target of ODD_RING_STORES) {
    test(`${target.name}, an unusual store, passes`, async () => {
      const { passed, results } = await runRingStoreConformance(target, { seed: 1, rounds: 5 });
      expect(results.filter(({ status }) => status === 'fail' || status === 'warn')).toEqual([]);
      expect(passed).toBe(true);
    });
  }

  for (const [make, seeds] of [
    [memory, 3],
    // This store writes to a disk.
    [file, 1],
    [sqlite, 3],
    [bucket, 3],
    [log, 3],
  ] as const) {
    for (let seed = 0; seed < seeds; seed++) {
      const sound = make();
      test(`${sound.target.name} passes with seed ${seed}`, async () => {
        const { passed, results } = await runRingStoreConformance(sound.target, { seed, rounds: 3 });
        expect(results.filter(({ status }) => status === 'fail' || status === 'warn')).toEqual([]);
        expect(passed).toBe(true);
        sound.end();
      });
    }
  }

  test('all requirements but one apply to the sound store', async () => {
    const { results } = await runRingStoreConformance(zooRingTarget('sound'), { seed: 1, rounds: 20 });
    expect(results.filter(({ status }) => status !== 'pass').map(({ id }) => id)).toEqual(['RING-WATCH-DECLARED']);
  });

  test('a store that does not check its arguments passes, with a warning', async () => {
    const stores = new Map<string, RingStore>();
    const create = (name: string): { store: RingStore } => {
      const sound = stores.get(name) ?? memoryRing();
      stores.set(name, sound);
      const read = (options?: RingStoreCallOptions) => sound.read(typeof options === 'object' ? { ...options } : {});
      const write: RingStore['write'] = (document, options) =>
        sound.write(typeof document === 'string' && document !== '' ? document : 'x', {
          ...options,
          expected: options?.expected ?? undefined,
        });
      return { store: { kind: 'lax', read, write } };
    };
    const { passed, results } = await runRingStoreConformance({ name: 'lax', create }, { seed: 1, rounds: 20 });
    expect(results.filter(({ status }) => status === 'fail')).toEqual([]);
    // It writes something where nothing was given.
    expect(results.filter(({ status }) => status === 'warn').map(({ id }) => id)).toEqual(['RING-WRITE-ARGUMENTS']);
    expect(passed).toBe(true);
  });
});

describeRingStore(zooRingTarget('the suite as tests of a runner:'), { describe, test }, { rounds: 10 });

describe('targets that misbehave', () => {
  const target: RingStoreTarget = { name: 'odd', create: () => ({ store: memoryRing() }) };

  test('a target that cannot start causes a finding', async () => {
    const { passed, results } = await runRingStoreConformance(
      { ...target, create: () => Promise.reject(new Error('secret')) },
      { only: ['RING-ABSENT'] },
    );
    expect(passed).toBe(false);
    expect(results[0]).toMatchObject({ status: 'fail', detail: expect.stringMatching(/^create failed: Error /) });
  });

  test('a store that never answers causes a finding', async () => {
    const store = {
      kind: 'silent',
      read: () => new Promise(() => undefined),
      write: () => new Promise(() => undefined),
    };
    const { results } = await runRingStoreConformance(
      { ...target, create: () => ({ store: store as unknown as RingStore }) },
      { only: ['RING-ABSENT'], timeoutMs: 200 },
    );
    expect(results[0]).toMatchObject({
      status: 'fail',
      detail: expect.stringContaining('did not end within 200 ms: waiting for a read'),
    });
  });

  test('a call that never ends is found long before the time limit of its requirement', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    onTestFinished(() => void vi.useRealTimers());
    const never = (): Promise<never> => new Promise(() => undefined);
    const create = () => ({ store: { ...memoryRing(), read: never } });
    const running = runRingStoreConformance({ ...target, create }, { only: ['RING-ABSENT'] });
    await vi.advanceTimersByTimeAsync(100_000);
    const { results } = await running;
    expect(results[0]?.detail).toContain('did not end within 60000 ms: waiting for a read');
  });

  test('a store in which no write wins is found long before the time limit', async () => {
    const sound = zooRingTarget('one version behind after a conflict');
    const create = async (name: string) => {
      const { store } = await sound.create(name);
      let last: Awaited<ReturnType<RingStore['read']>>;
      let isBehind = false;
      const read = async () => {
        if (!isBehind) last = await store.read();
        return last;
      };
      const write: RingStore['write'] = (document, options) =>
        store.write(document, options).catch((error: unknown) => {
          isBehind = true;
          throw error;
        });
      return { store: { kind: 'behind', read, write } };
    };
    const only = ['RING-WRITE-REVISION', 'RING-NO-LOST-UPDATE'];
    const { results } = await runRingStoreConformance({ ...sound, create }, { only, timeoutMs: 2_000 });
    expect(results.map(({ detail }) => detail)).toEqual([
      expect.stringContaining('no write won against concurrent ones within 0.5 s'),
      expect.stringContaining('no addition won within 0.5 s'),
    ]);
  });

  test('a close that never ends is reported once, and written rings are removed', async () => {
    const removed = new Set<string>();
    const sound = zooRingTarget('never closes');
    const { results } = await runRingStoreConformance(
      {
        ...sound,
        create: async (name) => ({ ...(await sound.create(name)), close: () => new Promise<void>(() => undefined) }),
        remove: (name) => void removed.add(name),
      },
      { only: ['RING-ABSENT', 'RING-ROUNDTRIP', 'RING-DURABLE', 'RING-INSTANCE-CLOSES', 'RING-CLOSE-OTHERS'] },
    );
    expect(results.filter(({ status }) => status !== 'pass')).toMatchObject([
      {
        id: 'RING-INSTANCE-CLOSES',
        detail: expect.stringContaining('closing an instance took longer than 5000 ms'),
      },
    ]);
    expect(removed.size).toBeGreaterThan(2);
  });

  test('requirements for absent features are reported as not applicable, with the reason', async () => {
    const { target: plain } = memory();
    const only = ['RING-TOO-LARGE-THERE', 'RING-REMOVED', 'RING-UNREACHABLE', 'RING-SERVICE-DATE'];
    const { results, passed } = await runRingStoreConformance(plain, { only });
    expect(passed).toBe(true);
    expect(results.map(({ status, detail }) => [status, detail])).toEqual([
      ['not-applicable', 'the target has no plant'],
      ['not-applicable', 'the target has no remove'],
      ['not-applicable', 'the target has no breakConnection'],
      ['not-applicable', 'supports.serviceDate is not declared'],
    ]);
  });

  test('every store is closed, broken connections are restored, and written rings are removed', async () => {
    let open = 0;
    let broken = 0;
    const removed = new Set<string>();
    const named = new Set<string>();
    const sound = zooRingTarget('sound');
    await runRingStoreConformance(
      {
        ...sound,
        async create(name) {
          open++;
          named.add(name);
          return { ...(await sound.create(name)), close: () => void open-- };
        },
        remove: (name) => void removed.add(name),
        async breakConnection() {
          broken++;
          const mend = await sound.breakConnection?.();
          return () => {
            broken--;
            return mend?.();
          };
        },
      },
      { only: ['RING-ABSENT', 'RING-UNREACHABLE', 'RING-NAMES-SEPARATE', 'RING-DURABLE'] },
    );
    expect([open, broken, [...removed].toSorted()]).toEqual([0, 0, [...named].toSorted()]);
  });

  test('invalid targets and options are rejected with an error that names them', async () => {
    const wrong = (change: object, options: object = {}): Promise<unknown> =>
      runRingStoreConformance({ ...target, ...change }, options);
    await expect(wrong({ create: 1 })).rejects.toThrow(/create must be a function/);
    await expect(wrong({ supports: { pull: true } })).rejects.toThrow(/unknown option "supports.pull"/);
    await expect(wrong({ supports: { maxDocumentBytes: 9 } })).rejects.toThrow(RangeError);
    await expect(wrong({}, { only: ['RING-NONE'] })).rejects.toThrow(/RING-NONE/);
    await expect(wrong({}, { rounds: 0 })).rejects.toThrow(/rounds must be/);
    await expect(wrong({}, { rounds: 100_001 })).rejects.toThrow(RangeError);
    await expect(wrong({}, { rounds: '1' })).rejects.toThrow(TypeError);
    await expect(wrong({}, { writers: 1 })).rejects.toThrow(/writers must be/);
    await expect(wrong({}, { rouns: 1 })).rejects.toThrow(/unknown option "rouns"/);
    expect(() => describeRingStore(target, { describe, test }, { writers: 1.5 })).toThrow(/writers must be/);
  });
});
