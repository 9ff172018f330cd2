import { createHash, randomBytes } from 'node:crypto';
import { createKmsCodec, type KmsCodec, localKeyWrapper, memoryRing, RingStoreError } from '@sealring/core';
import { describe, expect, test } from 'vitest';
import { type KeepProgress, KeptRevocation, type RevokedKey } from '../src/revocation/kept-revocation.ts';
import { type Observation, recordedRing } from '../src/revocation/recorded-ring.ts';

const LATER = new Date('2100-01-01T00:00:00Z');
const WAIT_MS = 160_000;
const [ID, OTHER] = ['zWmwhf-E_bTV', 'AAAAAAAAAAAA'];

type By = Readonly<Record<string, string>>;

/** Bytes of the length of a MAC. */
const macOf = (text: string): string => createHash('sha256').update(text).digest('base64url');

/** A document with one key; `by` are its certificates, if it is revoked. */
function documentOf(by?: By, at = '2026-01-01T00:00:00Z', id = ID): string {
  const time = '2026-01-01T00:00:00Z';
  const times = {
    created: time,
    activates: time,
    sealsUntil: '2026-01-02T00:00:00Z',
    opensUntil: '2027-01-01T00:00:00Z',
  };
  const macs = Object.fromEntries(Object.entries(by ?? {}).map(([signer, mac]) => [signer, macOf(mac)]));
  const wraps = [{ provider: 'local', keyId: 'k', wrapped: macOf('wrapped'), mac: macOf('wrap') }];
  const key = { id, ...times, vouchers: {}, ...(by === undefined ? {} : { revoked: { at, by: macs } }), wraps };
  return JSON.stringify({ format: 'sealring/ring/1', ring: 'r', keys: [key] });
}

const read = (text: string): Observation => ({ kind: 'document', text, isOwn: false });
const KEPT = documentOf({ [ID]: 'own' });
const LOST = documentOf();

/** Waits with a simulated clock; `observations` are the store's answers from a second on. */
async function watched(
  observations: readonly (readonly [number, Observation])[],
  more: {
    readonly verifies?: (text: string) => Promise<boolean>;
    readonly stopAt?: number;
    readonly keys?: readonly RevokedKey[];
  } = {},
): Promise<{
  readonly endedAt: number;
  readonly progress: readonly KeepProgress[];
  readonly failure: string | undefined;
}> {
  const kept = new KeptRevocation();
  let nowMs = 0;
  const progress: KeepProgress[] = [];
  kept.observe({ kind: 'document', text: KEPT, isOwn: true });
  const observe = (): void => {
    const [, observation] = observations.findLast(([from]) => nowMs >= from * 1_000) ?? [];
    if (observation !== undefined) kept.observe(observation);
  };
  let failure: string | undefined;
  try {
    await kept.untilKept({
      keys: more.keys ?? [{ id: ID, unsealsUntil: LATER }],
      refreshEverySeconds: 100,
      refresh: async () => {
        observe();
        throw new Error('observes failures too');
      },
      verifies: more.verifies ?? (() => Promise.reject(new Error('not expected'))),
      time: {
        now: () => nowMs,
        wait: async (ms) => {
          nowMs += ms;
          return nowMs < (more.stopAt ?? Number.POSITIVE_INFINITY) * 1_000;
        },
      },
      onProgress: (now) => void progress.push(now),
    });
  } catch (error) {
    failure = error instanceof Error ? error.message : 'none';
  }
  return { endedAt: nowMs, progress, failure };
}

describe('the wait for a revocation', () => {
  test('the wait for a revocation ends after refreshEverySeconds and a minute if the store keeps the revocation', async () => {
    const { endedAt, progress, failure } = await watched([[0, read(KEPT)]]);
    expect(failure).toBeUndefined();
    expect(endedAt).toBe(WAIT_MS);
    expect(progress[1]).toEqual({ keptSeconds: 4, waitSeconds: 160, losses: 0 });
  });

  test('the wait for a revocation ends at once if no key was revoked', async () => {
    expect(await watched([], { keys: [] })).toMatchObject({ endedAt: 0, failure: undefined });
  });

  test.each([
    ['an older document', read(LOST)],
    ['a document without the key', read(documentOf({ [ID]: 'own' }, undefined, OTHER))],
    ['a revocation without certificates', read(documentOf({}))],
    ['nothing', { kind: 'absent' }],
    ['a value that is not a document', { kind: 'foreign' }],
    ['a document that is not a ring', read('{}')],
  ] as const)('starts over if the document is replaced by %s', async (_, observation) => {
    const { endedAt, progress, failure } = await watched([
      [0, read(KEPT)],
      [80, observation],
      [90, read(KEPT)],
    ]);
    expect(failure).toBeUndefined();
    expect(endedAt).toBeGreaterThanOrEqual(90_000 + WAIT_MS);
    expect(endedAt).toBeLessThan(96_000 + WAIT_MS);
    expect(progress.at(-1)?.losses).toBe(1);
  });

  test('starts over if the revocation was lost and written again between two reads', async () => {
    const kept = new KeptRevocation();
    let nowMs = 0;
    kept.observe({ kind: 'document', text: KEPT, isOwn: true });
    await kept.untilKept({
      keys: [{ id: ID, unsealsUntil: LATER }],
      refreshEverySeconds: 100,
      refresh: async () => {
        if (nowMs === 100_000) for (const text of [LOST, KEPT]) kept.observe(read(text));
        else kept.observe(read(KEPT));
      },
      verifies: async () => false,
      time: { now: () => nowMs, wait: async (ms) => (nowMs += ms) > 0 },
      onProgress: () => undefined,
    });
    expect(nowMs).toBe(100_000 + WAIT_MS);
  });

  test('the wait ends with a failure that names the remedy if the store keeps losing the revocation', async () => {
    const { endedAt, failure } = await watched([
      [0, read(KEPT)],
      [10, read(LOST)],
    ]);
    expect(failure).toMatch(/does not keep the revocation.*permission to write to the store.*revoke again/);
    expect(endedAt).toBeGreaterThanOrEqual(3 * WAIT_MS);
  });

  test('a revocation is not confirmed while the store fails, and is confirmed once the store answers', async () => {
    const away = { kind: 'failed', error: new RingStoreError('unavailable', 'no answer in time') } as const;
    const back = await watched([
      [0, read(KEPT)],
      [50, away],
      [300, read(KEPT)],
    ]);
    expect(back).toMatchObject({ failure: undefined });
    expect(back.endedAt).toBeGreaterThanOrEqual(300_000);
    const gone = await watched([[0, away]]);
    expect(gone.failure).toMatch(
      /has failed since then: the ring store: unavailable: no answer in time\. .*sealring status/,
    );
  });

  test('a wait that is interrupted ends with a failure that says the revocation was written', async () => {
    const { failure } = await watched([[0, read(KEPT)]], { stopAt: 20 });
    expect(failure).toMatch(/^the revocation was written, but the wait .* was interrupted/);
  });

  test('does not require the document to keep the revocation of an expired key', async () => {
    const keys = [{ id: ID, unsealsUntil: new Date(0) }];
    expect(await watched([[0, read(documentOf(undefined, undefined, OTHER))]], { keys })).toMatchObject({
      failure: undefined,
    });
  });

  test('verifies an unknown certificate once, by starting a codec on that document', async () => {
    const theirs = documentOf({ [ID]: 'of another time' }, '2026-02-02T00:00:00Z');
    const asked: string[] = [];
    let isAway = true;
    const { failure } = await watched([[0, read(theirs)]], {
      async verifies(text) {
        asked.push(text);
        if (asked.length > 1) isAway = false;
        if (isAway) throw new Error('the KMS is away');
        return true;
      },
    });
    expect(failure).toBeUndefined();
    expect(asked).toEqual([theirs, theirs]);
    const forged = await watched([[0, read(theirs)]], { verifies: async () => false });
    expect(forged.failure).toMatch(/does not keep/);
  });
});

describe('the observer of a member’s reads and writes', () => {
  test('passes reads and writes through unchanged', async () => {
    const seen: Observation[] = [];
    const inner = memoryRing();
    const ring = recordedRing(inner, (observation) => void seen.push(observation));
    expect(ring.kind).toBe('memory');
    expect(await ring.read()).toBeUndefined();
    const { revision } = await ring.write('x', { expected: undefined });
    expect(await ring.read()).toEqual({ document: 'x', revision });
    await expect(ring.write('y', { expected: undefined })).rejects.toThrow('another writer changed the ring first');
    expect(seen).toEqual([
      { kind: 'absent' },
      { kind: 'document', text: 'x', isOwn: true },
      { kind: 'document', text: 'x', isOwn: false },
    ]);
    let heard = 0;
    const stop = ring.watch?.(() => heard++);
    await inner.write('z', { expected: revision });
    await Promise.resolve();
    expect(heard).toBe(1);
    stop?.();
  });

  test.each([
    [new RingStoreError('too-large', 'x', { revision: '1' }), 'foreign'],
    [new RingStoreError('corrupt', 'x'), 'failed'],
    [new RingStoreError('unavailable', 'x'), 'failed'],
  ])('%s is passed to the observer and thrown unchanged', async (error, kind) => {
    const seen: Observation[] = [];
    const refuse = async (): Promise<never> => {
      throw error;
    };
    const inner = { kind: 'x', read: refuse, write: refuse };
    await expect(recordedRing(inner, (observation) => void seen.push(observation)).read()).rejects.toBe(error);
    expect(seen).toMatchObject([{ kind }]);
  });

  test('the observer notices that a member writes a revocation again after a rollback', async () => {
    const inner = memoryRing();
    const kept = new KeptRevocation();
    const keyWrapper = localKeyWrapper({ masterKey: randomBytes(32) });
    const policy = { refreshEverySeconds: 0.5, backoffCapSeconds: 0.5 };
    const codec: KmsCodec = await createKmsCodec({ keyWrapper, ring: recordedRing(inner, kept.observe), policy });
    const old = await inner.read();
    const [key] = codec.health().keys;
    if (old === undefined || key === undefined) throw new Error('no ring');
    await codec.revoke(key.id);
    let looks = 0;
    let losses = 0;
    let nowMs = 0;
    await kept.untilKept({
      keys: [key],
      refreshEverySeconds: 0.5,
      async refresh() {
        looks += 1;
        if (looks === 2) {
          const now = await inner.read();
          await inner.write(old.document, { expected: now?.revision });
        }
        await codec.refresh();
      },
      verifies: async () => false,
      time: {
        now: () => nowMs,
        async wait(ms) {
          nowMs += Math.min(ms, 2_000);
          await new Promise((resolve) => setTimeout(resolve, 200));
          return true;
        },
      },
      onProgress: (now) => {
        losses = now.losses;
      },
    });
    expect(losses).toBe(1);
    const keys: readonly { id: string; revoked?: { by: object } }[] = JSON.parse(
      (await inner.read())?.document ?? '',
    ).keys;
    expect(keys.find(({ id }) => id === key.id)?.revoked?.by).toHaveProperty(key.id);
    await codec.close();
  });
});
