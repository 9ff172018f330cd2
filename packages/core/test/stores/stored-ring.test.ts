import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Closing } from '../../src/base/closing.ts';
import { keeperOf } from '../../src/codec/ring-codec.ts';
import {
  RingConflictError,
  type RingStore,
  RingStoreError,
  type RingStoreErrorKind,
} from '../../src/contracts/ring-store.ts';
import { StoredRingDocument } from '../../src/stores/stored-ring.ts';
import { EventLog } from '../support/event-log.ts';
import { Fleet, type Member, open, seal } from '../support/fleet.ts';

const CANARY = 'postgres://user:canary@host';
const KINDS: readonly RingStoreErrorKind[] = ['unavailable', 'denied', 'corrupt', 'too-large', 'read-only'];

let fleet: Fleet;
let answer: (() => unknown) | undefined;
let loseRace: (() => unknown) | undefined;
beforeEach(() => {
  fleet = new Fleet();
  answer = undefined;
  loseRace = undefined;
});
afterEach(() => fleet.close());

/** A member whose store answers reads with the result or error of `answer`, and writes according to `loseRace`. */
async function start(): Promise<Member> {
  const inner = fleet.store.connect();
  const ring: RingStore = {
    ...inner,
    read: async (options) => (answer === undefined ? inner.read(options) : (answer() as never)),
    write: async (document, options) => {
      const race = loseRace;
      loseRace = undefined;
      race?.();
      return inner.write(document, options);
    },
  };
  return fleet.start({ ring });
}

/** The result of a read that fails with `thrown`. */
async function failureOf(member: Member, thrown: unknown): Promise<unknown> {
  answer = () => {
    throw thrown;
  };
  return member.codec.refresh().then(
    () => 'no failure',
    (error: unknown) => error,
  );
}

/** An error of the store's own copy of the classes. */
function foreign(name: string, members: object = {}): Error {
  return Object.assign(new Error(CANARY), { name }, members);
}

describe('an error from a ring store (F33)', () => {
  test('an instance of this package’s own error class is passed on unchanged', async () => {
    const member = await start();
    for (const own of [new RingStoreError('denied', 'the policy of the bucket'), new RingConflictError()]) {
      expect(await failureOf(member, own)).toBe(own);
    }
  });

  test.each(KINDS)('an instance of a copy of the error class keeps its kind, %s, but not its message', async (kind) => {
    const member = await start();
    const failure = await failureOf(member, foreign('RingStoreError', { kind }));
    expect(failure).toBeInstanceOf(RingStoreError);
    expect(failure).toMatchObject({ kind });
    expect(String(failure)).not.toContain('canary');
    expect(member.codec.health().lastError).toMatchObject({ source: 'store', kind });
  });

  test.each<[string, unknown]>([
    ['that is not a RingStoreError', foreign('PostgresError', { kind: 'denied' })],
    ['with an unknown kind', foreign('RingStoreError', { kind: 'sleepy' })],
    ['without a kind', foreign('RingStoreError')],
    ['that is a plain object', { name: 'RingStoreError', kind: 'denied' }],
    ['that is a plain object named like a lost race', { name: 'RingConflictError' }],
    ['that is a string', CANARY],
    ['that is undefined', undefined],
  ])('a thrown value %s is reported as unavailable, without its text', async (_, thrown) => {
    const member = await start();
    const failure = await failureOf(member, thrown);
    expect(failure).toBeInstanceOf(RingStoreError);
    expect(failure).toMatchObject({ kind: 'unavailable' });
    expect(String(failure)).not.toContain('canary');
  });

  test('a lost race reported by another copy of the class causes the write to be repeated', async () => {
    const member = await start();
    loseRace = () => {
      throw foreign('RingConflictError');
    };
    const rotated = member.codec.rotate();
    await fleet.clock.advance(1);
    await rotated;
    expect(member.codec.health().keys).toHaveLength(2);
  });
});

describe('store content that is not a document of the ring', () => {
  const revision = 'r';

  test.each<readonly [string, Error, unknown]>([
    ['junk with a revision can be overwritten', new RingStoreError('corrupt', 'x', { revision }), revision],
    ['too much with a revision can be overwritten', new RingStoreError('too-large', 'x', { revision }), revision],
    [
      'junk that another copy of the class reports can be overwritten',
      foreign('RingStoreError', { kind: 'corrupt', revision }),
      revision,
    ],
    ['junk without a revision is an error', new RingStoreError('corrupt', 'x'), 'corrupt'],
    [
      'junk with a revision that is not a string is an error',
      foreign('RingStoreError', { kind: 'corrupt', revision: 5 }),
      'corrupt',
    ],
    ['any other error is passed on', new RingStoreError('denied', 'x', { revision }), 'denied'],
    [
      'a store cannot report by an error that the ring is absent',
      foreign('RingStoreError', { kind: 'absent' }),
      'unavailable',
    ],
  ])('%s', async (_, thrown, expected) => {
    const store: RingStore = { ...fleet.store.connect(), read: () => Promise.reject(thrown) };
    const closing = new Closing();
    const onServiceDate = (): void => undefined;
    const stored = new StoredRingDocument({
      store,
      ring: 'r',
      clock: fleet.clock,
      timeoutSeconds: 5,
      closing,
      onServiceDate,
    });
    const outcome = await stored.read().catch((error: RingStoreError) => error.kind);
    expect(typeof outcome === 'string' ? outcome : outcome?.revision).toBe(expected);
    expect(stored.latest?.document).toBeUndefined();
  });
});

describe('an answer from a ring store', () => {
  test.each([
    ['bytes for a document', { document: Buffer.from('x') }],
    ['no document', { document: undefined }],
    ['a number for a revision', { revision: 5 }],
    ['no revision', { revision: undefined }],
  ])('an answer with %s is corrupt, and nothing is read from it', async (_, change) => {
    const member = await start();
    const stored = await fleet.store.connect().read();
    answer = () => ({ ...stored, ...change });
    await expect(member.codec.refresh()).rejects.toMatchObject({ name: 'RingStoreError', kind: 'corrupt' });
    expect(open(member, seal(member))).toBe('state');
  });

  test('an unchanged answer leaves the member with the same snapshot object', async () => {
    const member = await start();
    const view = keeperOf(member.codec)?.view;
    await member.codec.refresh();
    const before = view?.snapshot;
    await member.codec.refresh();
    expect(view?.snapshot).toBe(before);
    // Stored again, it has another revision, which the next write needs.
    await fleet.store.put((await fleet.store.document()) ?? '');
    await member.codec.rotate();
    expect(member.codec.health().keys).toHaveLength(2);
  });

  test('a successful call to a ring store is reported with its operation', async () => {
    const log = new EventLog();
    const member = await start();
    log.listen();
    await member.codec.refresh();
    await member.codec.rotate();
    log.end();
    const told = { store: 'memory', ok: true, seconds: 0 };
    expect(log.of('store-call').slice(0, 3)).toEqual([
      { ...told, operation: 'read' },
      { ...told, operation: 'read' },
      { ...told, operation: 'write' },
    ]);
  });
});
