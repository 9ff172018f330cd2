import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { KeyWrapper, KeyWrapperErrorKind } from '../../src/contracts/key-wrapper.ts';
import { type RingStore, RingStoreError } from '../../src/contracts/ring-store.ts';
import { localKeyWrapper } from '../../src/kms/local-key-wrapper.ts';
import { parseDocument } from '../../src/ring/document.ts';
import { Fleet, type Member, open, seal } from '../support/fleet.ts';

const HOUR = 3_600;
/** When the successor of a ring's first key is due: rotateEvery − propagation after its activation. */
const DUE = 86_400 - 4_500 - 300;

let fleet: Fleet;
beforeEach(() => {
  fleet = new Fleet();
});
afterEach(() => fleet.close());

async function ring(): Promise<ReturnType<typeof parseDocument>> {
  return parseDocument((await fleet.store.document()) ?? '', 'default');
}

/** Lets time pass; each minute every member unseals what every member seals. */
async function workFor(seconds: number, members: readonly Member[]): Promise<void> {
  for (let passed = 0; passed < seconds; passed += 60) {
    await fleet.clock.advance(60);
    for (const from of members) {
      const token = seal(from);
      for (const to of members) expect(open(to, token)).toBe('state');
    }
  }
}

/** The same key wrapper with another answer to `generate`, and optionally to the unwrap of that key. */
function generating(
  inner: KeyWrapper,
  change: (made: Generated) => Promise<Generated>,
  isUnwrapChanged = false,
): KeyWrapper {
  const changed = new Set<Uint8Array>();
  return {
    ...inner,
    async generate(options) {
      const made = await inner.generate?.(options);
      if (made === undefined) throw new Error('this key wrapper generates nothing');
      if (!isBroken) return made;
      if (isUnwrapChanged) changed.add(made.wrapped.wrapped);
      return change(made);
    },
    async unwrap(wrapped, options) {
      const dataKey = await inner.unwrap(wrapped, options);
      return changed.has(wrapped.wrapped) ? dataKey.toReversed() : dataKey;
    },
  };
}

type Generated = Awaited<ReturnType<NonNullable<KeyWrapper['generate']>>>;
let isBroken = false;

describe('a new key that cannot be used (F7)', () => {
  beforeEach(() => {
    isBroken = false;
  });

  const faults: Readonly<Record<string, (inner: KeyWrapper) => KeyWrapper>> = {
    'unwraps its new wraps to another key': (inner) => generating(inner, async (made) => made, true),
    'cannot unwrap its new wraps': (inner) =>
      generating(inner, async ({ dataKey, wrapped }) => {
        return { dataKey, wrapped: { ...wrapped, wrapped: wrapped.wrapped.toReversed() } };
      }),
    'returns a data key together with the wrap of another key': (inner) =>
      generating(inner, async ({ wrapped }) => ({ dataKey: new Uint8Array(randomBytes(32)), wrapped })),
  };

  for (const [title, faulty] of Object.entries(faults)) {
    test(`a KMS that ${title} when a rotation is due causes no write and no failed seal, and a successor follows once it is repaired`, async () => {
      const connect = (): KeyWrapper => faulty(fleet.kms.connect());
      const members = [await fleet.start({ keyWrapper: connect() }), await fleet.start({ keyWrapper: connect() })];
      await fleet.clock.advance(DUE - 600);
      const before = await fleet.store.document();
      const first = members[0]?.codec.health().sealingKey;
      const { generate } = fleet.kms.calls;
      isBroken = true;
      await workFor(2 * HOUR, members);
      expect(fleet.kms.calls.generate).toBeGreaterThan(generate);
      expect(await fleet.store.document()).toBe(before);
      for (const { codec } of members) expect(codec.health()).toMatchObject({ sealingKey: first, ready: true });
      isBroken = false;
      await workFor(2 * HOUR, members);
      expect((await ring()).entries).toHaveLength(2);
      await workFor(HOUR, members);
      for (const { codec } of members) expect(codec.health().sealingKey).not.toBe(first);
    });
  }

  test('a store that accepts no write when a rotation is due leaves the new key unknown to all members, and the old one in use', async () => {
    const refusing = (inner: RingStore): RingStore => ({
      ...inner,
      write: (document, options) =>
        isBroken ? Promise.reject(new RingStoreError('unavailable', 'no')) : inner.write(document, options),
    });
    const connect = (): RingStore => refusing(fleet.store.connect());
    const members = [await fleet.start({ ring: connect() }), await fleet.start({ ring: connect() })];
    await fleet.clock.advance(DUE - 600);
    const { generate } = fleet.kms.calls;
    isBroken = true;
    await workFor(2 * HOUR, members);
    expect(fleet.kms.calls.generate).toBeGreaterThan(generate);
    for (const { codec } of members) expect(codec.health().keys).toHaveLength(1);
    isBroken = false;
    await workFor(2 * HOUR, members);
    expect((await ring()).entries).toHaveLength(2);
  });
});

describe('a member that cannot unwrap every live key (F8, F9)', () => {
  const kinds: readonly KeyWrapperErrorKind[] = [
    'throttled',
    'unavailable',
    'denied',
    'disabled',
    'not-found',
    'corrupt',
  ];

  for (const kind of kinds) {
    test(`the start fails if the KMS answers ${kind} to every unwrap`, async () => {
      const a = await fleet.start();
      const token = seal(a);
      const before = await fleet.store.document();
      const { writes } = fleet.store;
      fleet.kms.failing = kind;
      await expect(fleet.start()).rejects.toMatchObject({ name: 'KeyWrapperError', kind });
      expect(fleet.store.writes).toBe(writes);
      fleet.kms.failing = undefined;
      const b = await fleet.start();
      expect(await fleet.store.document()).toBe(before);
      expect([open(b, token), open(a, seal(b))]).toEqual(['state', 'state']);
    });
  }

  test('the start fails if one of two live keys cannot be unwrapped', async () => {
    const a = await fleet.start();
    const [first] = (await ring()).entries;
    const token = seal(a);
    await a.codec.rotate({ emergency: true });
    await fleet.clock.advance(HOUR / 2);
    const { writes } = fleet.store;
    const inner = fleet.kms.connect();
    const keyWrapper: KeyWrapper = {
      ...inner,
      unwrap: (wrapped, options) => {
        const isFirst = first?.wraps.some((wrap) => Buffer.from(wrap.wrapped).equals(wrapped.wrapped)) === true;
        if (isFirst) fleet.kms.failNext = 1;
        return inner.unwrap(wrapped, options);
      },
    };
    await expect(fleet.start({ keyWrapper })).rejects.toMatchObject({ name: 'KeyWrapperError', kind: 'unavailable' });
    expect(fleet.store.writes).toBe(writes);
    expect(open(await fleet.start(), token)).toBe('state');
  });

  test('a member that starts during an outage of the KMS waits, and then uses the existing ring', async () => {
    const a = await fleet.start();
    const before = await fleet.store.document();
    // The first call, its three retries, and all of that once more.
    fleet.kms.failNext = 8;
    const b = await fleet.start();
    expect(fleet.kms.failNext).toBe(0);
    expect(await fleet.store.document()).toBe(before);
    expect(open(a, seal(b))).toBe('state');
  });
});

describe('the loser of a race (F8)', () => {
  for (const emergency of [false, true]) {
    test(`twenty members that receive a request for ${emergency ? 'an emergency' : 'a'} rotation at once create one successor`, async () => {
      const members = await fleet.startAll(20);
      const rotated = Promise.all(members.map(({ codec }) => codec.rotate({ emergency })));
      await fleet.clock.advance(60);
      await rotated;
      const { entries } = await ring();
      expect(entries).toHaveLength(2);
      await workFor(6_000, members);
      for (const { codec } of members) expect(codec.health().sealingKey).toBe(entries[1]?.id);
    });
  }

  test('no member seals with a successor until a member cut off for a tolerated outage has it', async () => {
    const a = await fleet.start();
    const late = await fleet.start();
    // A KMS check has just passed; then neither the KMS nor the store answers for as long as is tolerated.
    await late.codec.refresh();
    late.ring.cut = true;
    late.keyWrapper.cut = true;
    await a.codec.rotate();
    for (let passed = 0; passed < 2_620; passed += 60) {
      await fleet.clock.advance(60);
      expect([open(late, seal(a)), open(a, seal(late))]).toEqual(['state', 'state']);
    }
    late.ring.cut = false;
    late.keyWrapper.cut = false;
    await workFor(HOUR, [a, late]);
    expect(late.codec.health().sealingKey).toBe((await ring()).entries[1]?.id);
  });
});

describe('a change of the KMS key that does not involve the ring (F11)', () => {
  test('a new wrap names the new version of the KMS key, and keys wrapped by the old version are still unwrapped', async () => {
    const [old, next] = [randomBytes(32), randomBytes(32)];
    const versions = [localKeyWrapper({ masterKey: old }), localKeyWrapper({ masterKey: next })].map(
      ({ keyId }) => keyId,
    );
    const before = await fleet.start({ keyWrapper: localKeyWrapper({ masterKey: old }) });
    const token = seal(before);
    // The service changes to another version by itself; old ones only unwrap.
    const rotated = () => localKeyWrapper({ masterKey: next, alsoUnwrap: [old] });
    const a = await fleet.start({ keyWrapper: rotated() });
    expect(open(a, token)).toBe('state');
    expect((await ring()).entries.map(({ wraps }) => wraps.map(({ keyId }) => keyId))).toEqual([[versions[0]]]);
    await a.codec.rotate({ emergency: true });
    expect((await ring()).entries.map(({ wraps }) => wraps.map(({ keyId }) => keyId))).toEqual([
      [versions[0]],
      [versions[1]],
    ]);
    await fleet.clock.advance(1_000);
    // A member that starts now need not guess either version.
    const b = await fleet.start({ keyWrapper: rotated() });
    for (const each of [token, seal(a)]) expect([open(a, each), open(b, each)]).toEqual(['state', 'state']);
    expect(seal(a).slice(4, 16)).not.toBe(token.slice(4, 16));
  });

  test('a member that cannot unwrap with the previous KMS key version unwraps the newer keys, and leaves the older one to the others', async () => {
    const [old, next] = [randomBytes(32), randomBytes(32)];
    const before = await fleet.start({ keyWrapper: localKeyWrapper({ masterKey: old, alsoUnwrap: [next] }) });
    const token = seal(before);
    const a = await fleet.start({ keyWrapper: localKeyWrapper({ masterKey: next, alsoUnwrap: [old] }) });
    await a.codec.rotate({ emergency: true });
    await fleet.clock.advance(1_000);
    const late = await fleet.start({ keyWrapper: localKeyWrapper({ masterKey: next }) });
    expect([open(late, token), open(late, seal(a))]).toEqual(['InvalidRequestState: unknown key', 'state']);
    // Its document lacks the key that it cannot check; a member that holds that key writes it back.
    await late.codec.rotate();
    await fleet.clock.advance(1_000);
    expect((await ring()).entries).toHaveLength(3);
    for (const member of [before, a]) expect(open(member, token)).toBe('state');
    // Without any permitted version it does not start.
    await expect(fleet.start({ keyWrapper: localKeyWrapper({ masterKey: randomBytes(32) }) })).rejects.toMatchObject({
      name: 'KeyWrapperError',
      kind: 'corrupt',
    });
  });
});
