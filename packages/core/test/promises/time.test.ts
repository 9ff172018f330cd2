import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { pause } from '../../src/base/clock.ts';
import type { KmsCodecOptions } from '../../src/codec/kms-codec-options.ts';
import { KeyWrapperError } from '../../src/contracts/key-wrapper.ts';
import type { RingStore } from '../../src/contracts/ring-store.ts';
import { encodeDocument, parseDocument } from '../../src/ring/document.ts';
import { Fleet, type Member, open, seal } from '../support/fleet.ts';
import { MachineClock } from '../support/machine-clock.ts';
import { Thief } from '../support/thief.ts';

const HOUR = 3_600;
const DAY = 24 * HOUR;
const UNKNOWN = 'InvalidRequestState: unknown key';

let fleet: Fleet;
beforeEach(() => {
  fleet = new Fleet();
});
afterEach(() => fleet.close());

interface Machine extends Member {
  readonly clock: MachineClock;
}

/** A member on its own machine. */
async function start(options: Partial<KmsCodecOptions> & { readonly offsetSeconds?: number } = {}): Promise<Machine> {
  const { offsetSeconds, ...rest } = options;
  const clock = new MachineClock(fleet.clock, offsetSeconds);
  return { ...(await fleet.start({ ...rest, clock })), clock };
}

async function entries() {
  return parseDocument((await fleet.store.document()) ?? '', 'default').entries;
}

/** Every member seals, and every member unseals each token, when it is new and shortly before its hour is over. */
async function workFor(seconds: number, step: number, members: readonly Member[]): Promise<void> {
  const old: (readonly string[])[] = [];
  for (let passed = 0; passed < seconds; passed += step) {
    const tokens = members.map((member) => seal(member));
    old.push(tokens);
    const ending = old.length * step >= HOUR ? (old.shift() ?? []) : [];
    for (const token of [...tokens, ...ending]) {
      expect(members.map((to) => open(to, token))).toEqual(members.map(() => 'state'));
    }
    await fleet.clock.advance(step);
  }
}

describe('a server whose clock is wrong for two seconds (F40)', () => {
  const dated: Record<string, () => void> = {
    'no service gives dates': () => undefined,
    'the KMS gives dates': () => void (fleet.kms.date = () => new Date(fleet.clock.wallMs())),
    'the store gives dates': () => void (fleet.store.date = () => new Date(fleet.clock.wallMs())),
    'both give dates': () => {
      fleet.kms.date = () => new Date(fleet.clock.wallMs());
      fleet.store.date = () => new Date(fleet.clock.wallMs());
    },
  };

  for (const [title, give] of Object.entries(dated)) {
    for (const days of [3, -3]) {
      test(`a clock that is off by ${days} days for two seconds invalidates no token: ${title}`, async () => {
        give();
        const [wrong, a, b] = [await start(), await start(), await start()];
        const all = [wrong, a, b];
        await workFor(20 * HOUR, HOUR, all);
        const before = await entries();
        const token = seal(a);
        wrong.clock.offsetSeconds = days * DAY;
        const tried = Promise.allSettled([wrong.codec.refresh(), wrong.codec.rotate(), wrong.codec.prepare(token)]);
        await fleet.clock.advance(1);
        open(wrong, token);
        expect(wrong.codec.health()).toMatchObject({ status: 'failing', ready: false });
        expect(wrong.codec.health().problems.map(({ kind }) => kind)).toEqual(['clock']);
        await fleet.clock.advance(1);
        expect((await tried)[1]).toMatchObject({ status: 'rejected', reason: { name: 'RingStoreError' } });
        wrong.clock.offsetSeconds = 0;
        // The first step of a request.
        const prepared = wrong.codec.prepare(token);
        await fleet.clock.advance(0);
        await prepared;
        expect(all.map((to) => open(to, token))).toEqual(['state', 'state', 'state']);
        expect(await entries()).toEqual(before);
        await fleet.clock.advance(3);
        for (const { codec } of all) expect(codec.health()).toMatchObject({ status: 'ok', ready: true, problems: [] });
        await workFor(3 * DAY, HOUR, all);
        // One key a day, as usual; none because of the wrong time.
        expect(fleet.kms.calls.generate).toBeLessThanOrEqual(5);
      });
    }
  }

  test('a server whose clock was eight hours ahead for two seconds refuses no valid token once the clock is right again', async () => {
    const wrong = await start();
    const a = await start();
    // The key of these has less than eight hours left.
    await fleet.clock.advance(25 * HOUR);
    const tokens = [seal(a), seal(wrong)];
    await fleet.clock.advance(HOUR / 2);
    wrong.clock.offsetSeconds = 8 * HOUR;
    for (let i = 0; i < 20; i++) {
      open(wrong, tokens[0] ?? '');
      await fleet.clock.advance(0.1);
    }
    wrong.clock.offsetSeconds = 0;
    expect(tokens.map((token) => open(wrong, token))).toEqual(['state', 'state']);
    await fleet.clock.advance(3);
    expect(wrong.codec.health()).toMatchObject({ status: 'ok', ready: true });
    await workFor(10 * HOUR, HOUR / 2, [wrong, a]);
  });

  test('a server whose clock stays days ahead publishes and removes nothing, and reports the wrong clock throughout', async () => {
    const [wrong, a] = [await start(), await start()];
    await fleet.clock.advance(20 * HOUR);
    wrong.clock.offsetSeconds = 3 * DAY;
    for (let hour = 0; hour < 48; hour++) {
      await fleet.clock.advance(HOUR);
      expect(wrong.codec.health()).toMatchObject({ status: 'failing', ready: false });
      expect(open(a, seal(a))).toBe('state');
      for (const { created } of await entries()) expect(created).toBeLessThanOrEqual(fleet.clock.wallMs() + 1_000);
    }
    expect(a.codec.health().status).toBe('ok');
  });

  for (const isDated of [true, false]) {
    test(`the others keep their ring when a machine starts with its clock days ahead, ${isDated ? 'with' : 'without'} dates from a service`, async () => {
      if (isDated) fleet.store.date = () => new Date(fleet.clock.wallMs());
      const a = await start();
      const token = seal(a);
      const before = (await entries()).map(({ id }) => id);
      // By this machine's clock all keys of the ring have expired.
      const starting = Promise.allSettled([start({ offsetSeconds: 3 * DAY })]);
      await fleet.clock.advance(150);
      const [result] = await starting;
      // oxlint-disable-next-line vitest/no-conditional-expect
      if (isDated) expect(result).toMatchObject({ status: 'rejected', reason: { name: 'RingStoreError' } });
      await fleet.clock.advance(HOUR / 2);
      expect([open(a, token), open(a, seal(a))]).toEqual(['state', 'state']);
      // oxlint-disable-next-line vitest/no-conditional-expect
      if (isDated) expect((await entries()).map(({ id }) => id)).toEqual(before);
      if (result.status === 'fulfilled') {
        // It cannot know, and the two overwrite each other: neither accepts a key that was made in the future.
        // oxlint-disable-next-line vitest/no-conditional-expect
        expect(a.codec.health()).toMatchObject({ ready: true });
        // oxlint-disable-next-line vitest/no-conditional-expect
        expect(a.codec.health().keys.map(({ id }) => id)).toEqual(before);
        await result.value.codec.close();
        await fleet.clock.advance(600);
        // oxlint-disable-next-line vitest/no-conditional-expect
        expect((await entries()).map(({ id }) => id)).toEqual(before);
      }
      const members = [a, await start()];
      await workFor(5 * DAY, HOUR, members);
      for (const { codec } of members) expect(codec.health()).toMatchObject({ status: 'ok', problems: [] });
    });
  }

  test('a server that starts twenty hours ahead neither drops nor publishes a key once a date reveals the error', async () => {
    const a = await start();
    await fleet.clock.advance(6 * HOUR);
    // By its clock the successor is overdue, and eight hours later the key has expired.
    const wrong = await start({ offsetSeconds: 20 * HOUR });
    fleet.store.date = () => new Date(fleet.clock.wallMs());
    const [key] = await entries();
    await fleet.clock.advance(8 * HOUR);
    expect(wrong.codec.health().status).toBe('failing');
    expect(wrong.codec.health().problems.map(({ kind }) => kind)).toContain('clock');
    expect(wrong.codec.health().keys.map(({ id }) => id)).toEqual([key?.id]);
    expect((await entries()).map(({ id }) => id)).toEqual([key?.id]);
    wrong.clock.offsetSeconds = 0;
    await fleet.clock.advance(400);
    expect(wrong.codec.health()).toMatchObject({ status: 'ok', ready: true });
    await workFor(2 * HOUR, 300, [a, wrong]);
  });
});

describe('a server whose clock steps after the end of a revoked key', () => {
  test('a server whose clock stepped accepts no revoked key from a document written before the revocation', async () => {
    const member = await start();
    const [revoked] = await entries();
    const id = revoked?.id ?? '';
    await fleet.clock.advance(20 * HOUR);
    const backup = await entries();
    expect(backup.map((entry) => entry.id)).toContain(id);
    const revoking = member.codec.revoke(id);
    await fleet.clock.advance(60);
    await revoking;
    await fleet.clock.advance(40 * HOUR);
    expect(member.codec.health().keys.map((key) => key.id)).not.toContain(id);
    member.clock.offsetSeconds = 3 * DAY;
    const old = backup.filter((entry) => entry.id === id);
    const document = { ring: 'default', claim: undefined, entries: [...old, ...(await entries())] };
    await fleet.store.put(encodeDocument(document));
    await fleet.clock.advance(400);
    expect(member.codec.health().problems.map(({ kind }) => kind)).toContain('clock');
    expect(member.codec.health().keys.map((key) => key.id)).not.toContain(id);
  });
});

describe('a server that started with its clock ten hours ahead, so that an older key seems to have expired', () => {
  /** The two live keys of a ring, the older first; and such a server, corrected by a date. No other member runs. */
  async function alone() {
    const a = await start();
    await fleet.clock.advance(24.5 * HOUR);
    fleet.store.date = () => new Date(fleet.clock.wallMs());
    await a.codec.close();
    const [older, newer, ...others] = (await entries()).map(({ id }) => id);
    expect(others).toEqual([]);
    const wrong = await start({ offsetSeconds: 10 * HOUR });
    expect(wrong.codec.health()).toMatchObject({ status: 'failing', problems: [{ kind: 'clock' }] });
    return { wrong, older: older ?? '', newer: newer ?? '' };
  }

  for (const isKmsAway of [false, true]) {
    const title = isKmsAway ? ', even if the expired key cannot be unwrapped' : '';
    test(`a server that started ten hours ahead leaves the expired key unchanged when revoking another key${title}`, async () => {
      const { wrong, older, newer } = await alone();
      wrong.keyWrapper.cut = isKmsAway;
      const revoking = wrong.codec.revoke(newer);
      await fleet.clock.advance(60);
      await revoking;
      const left = new Map((await entries()).map(({ id, revoked }) => [id, revoked !== undefined]));
      expect(left).toEqual(
        new Map([
          [older, false],
          [newer, true],
        ]),
      );
    });
  }

  test('a server that started ten hours ahead also revokes the expired key when revoking all keys', async () => {
    const { wrong, older, newer } = await alone();
    await wrong.codec.revokeAllBefore(new Date(fleet.clock.wallMs()));
    expect((await entries()).map(({ id, revoked }) => [id, revoked !== undefined])).toEqual([
      [older, true],
      [newer, true],
    ]);
  });

  test('a server that started ten hours ahead reports a failure when revoking all keys if the expired key cannot be unwrapped', async () => {
    const { wrong, older } = await alone();
    wrong.keyWrapper.cut = true;
    const revoking = Promise.allSettled([wrong.codec.revokeAllBefore(new Date(fleet.clock.wallMs()))]);
    await fleet.clock.advance(60);
    const reason: unknown = expect.objectContaining({ name: 'RingStoreError', kind: 'unavailable' });
    expect(await revoking).toEqual([{ status: 'rejected', reason }]);
    expect((await entries()).map(({ id }) => id)).toContain(older);
  });
});

describe('a publisher that was delayed (F41)', () => {
  /** The same store, whose next write is delivered only on request, as by a network that holds it. */
  function held(inner: RingStore) {
    const network = { isHolding: false, isSilent: false, deliver: async (): Promise<unknown> => undefined };
    const ring: RingStore = {
      ...inner,
      write: (document, options) => {
        if (!network.isHolding) return inner.write(document, options);
        network.isHolding = false;
        return new Promise((resolve, reject) => {
          network.deliver = () => {
            // The requester has given up long ago.
            const written = inner.write(document, { expected: options.expected });
            if (!network.isSilent) written.then(resolve, reject);
            return written;
          };
        });
      },
    };
    return { network, ring };
  }

  for (const isEmergency of [false, true]) {
    test(`a publisher that was stopped for longer than the propagation publishes no ${isEmergency ? 'emergency' : 'planned'} key`, async () => {
      const gate = { wait: Promise.resolve(), open: (): void => undefined };
      const inner = fleet.kms.connect();
      const frozen = await start({
        keyWrapper: {
          ...inner,
          generate: async (options) => {
            await gate.wait;
            if (inner.generate === undefined) throw new Error('it generates');
            return inner.generate(options);
          },
        },
      });
      const members = [await start(), await start()];
      gate.wait = new Promise((resolve) => {
        gate.open = resolve;
      });
      const rotated = Promise.allSettled([frozen.codec.rotate({ emergency: isEmergency })]);
      await fleet.clock.advance(0.1);
      frozen.clock.stop();
      await workFor(5_400, 600, members);
      const before = await entries();
      // The answer is there before any of its timers runs.
      gate.open();
      await fleet.clock.advance(0);
      frozen.clock.resume();
      await fleet.clock.advance(30);
      expect(await rotated).toMatchObject([
        { status: 'rejected', reason: { name: 'RingStoreError', kind: 'unavailable' } },
      ]);
      expect(await entries()).toEqual(before);
      await workFor(HOUR, 60, [...members, frozen]);
    });
  }

  test('a publisher whose write was held for longer than the propagation seals with the key only after all members have it', async () => {
    const { network, ring } = held(fleet.store.connectUnwatched());
    const late = await start({ ring });
    // Each reads at its own time: none is notified of a write.
    const members = [late];
    for (let i = 0; i < 5; i++) {
      members.push(await start({ ring: fleet.store.connectUnwatched() }));
      await fleet.clock.advance(50);
    }
    network.isHolding = true;
    const rotated = Promise.allSettled([late.codec.rotate()]);
    await fleet.clock.advance(10);
    expect(await rotated).toMatchObject([{ status: 'rejected', reason: { kind: 'unavailable' } }]);
    await workFor(5_400, 600, members);
    expect(await entries()).toHaveLength(1);
    await network.deliver();
    const [, second] = await entries();
    expect(second?.activates).toBeLessThan(fleet.clock.wallMs());
    await workFor(2 * HOUR, 10, members);
    for (const { codec } of members) expect(codec.health().sealingKey).toBe(second?.id);
  });

  for (const isAnswered of [false, true]) {
    test(`a publisher that was stopped during its write does not seal with the key before all members have it: ${isAnswered ? 'the answer is waiting when it continues' : 'no answer ever arrives'}`, async () => {
      const { network, ring } = held(fleet.store.connectUnwatched());
      const late = await start({ ring });
      const members = [late];
      for (let i = 0; i < 3; i++) {
        members.push(await start({ ring: fleet.store.connectUnwatched() }));
        await fleet.clock.advance(50);
      }
      network.isHolding = true;
      const rotated = Promise.allSettled([late.codec.rotate()]);
      await fleet.clock.advance(1);
      late.clock.stop();
      await workFor(5_400, 600, members.slice(1));
      network.isSilent = !isAnswered;
      await network.deliver();
      await fleet.clock.advance(0);
      late.clock.resume();
      await fleet.clock.advance(3);
      expect(await rotated).toMatchObject([{ status: 'rejected', reason: { kind: 'unavailable' } }]);
      expect(await entries()).toHaveLength(2);
      await workFor(2 * HOUR, 10, members);
      const [, second] = await entries();
      for (const { codec } of members) expect(codec.health().sealingKey).toBe(second?.id);
    });
  }

  test('a publisher that was stopped dates an answer of the store by the time of the request, not by the time at which it resumed', async () => {
    const gate = { answer: Promise.resolve(), open: (): void => undefined };
    const inner = fleet.store.connectUnwatched();
    const late = await start({
      ring: {
        ...inner,
        read: async (options) => {
          const stored = await inner.read(options);
          await gate.answer;
          return stored;
        },
      },
    });
    const a = await start();
    const token = seal(late);
    gate.answer = new Promise((resolve) => {
      gate.open = resolve;
    });
    const refreshed = Promise.allSettled([late.codec.refresh()]);
    await fleet.clock.advance(1);
    late.clock.stop();
    await a.codec.revoke(token.slice(4, 16));
    await fleet.clock.advance(2 * HOUR);
    gate.answer = Promise.resolve();
    gate.open();
    await fleet.clock.advance(0);
    late.clock.resume();
    await fleet.clock.advance(15);
    expect(await refreshed).toMatchObject([{ status: 'rejected', reason: { kind: 'unavailable' } }]);
    expect(open(late, token)).toBe(UNKNOWN);
  });

  test('a publisher does not mistake a late write for a successful one', async () => {
    const { network, ring } = held(fleet.store.connect());
    const late = await start({ ring });
    const a = await start();
    network.isHolding = true;
    const rotated = Promise.allSettled([late.codec.rotate()]);
    await fleet.clock.advance(10);
    await rotated;
    expect(late.codec.health().keys).toHaveLength(1);
    await a.codec.rotate();
    await expect(network.deliver()).rejects.toMatchObject({ name: 'RingConflictError' });
    await fleet.clock.advance(100);
    expect(await entries()).toHaveLength(2);
    expect(late.codec.health().keys.map(({ id }) => id)).toEqual((await entries()).map(({ id }) => id));
  });

  test('a rotation whose retries take longer than R discards its key and creates another', async () => {
    // Each attempt loses its race after four minutes: the key of the first one is not written by the second.
    const inner = fleet.store.connectUnwatched();
    const a = await start({
      policy: { kmsTimeoutSeconds: 300 },
      ring: {
        ...inner,
        write: async (document, options) => {
          const added = parseDocument(document, 'default').entries.filter(
            ({ created }) => created > fleet.clock.wallMs() - DAY * 1_000,
          );
          for (const { created } of added.slice(1)) expect(fleet.clock.wallMs() - created).toBeLessThanOrEqual(301_000);
          await pause(fleet.clock, 240_000);
          return inner.write(document, options);
        },
      },
    });
    const b = await start({ ring: fleet.store.connectUnwatched() });
    const rotated = Promise.allSettled([a.codec.rotate({ emergency: true })]);
    await fleet.clock.advance(120);
    await b.codec.rotate();
    await fleet.clock.advance(1_000);
    expect(await rotated).toMatchObject([{ status: 'fulfilled' }]);
    const all = (await entries()).toSorted((one, other) => one.created - other.created);
    expect(all).toHaveLength(3);
    await workFor(2 * HOUR, 60, [a, b]);
  });
});

describe('a policy with very short times', () => {
  const policy = {
    clockSkewSeconds: 0,
    refreshEverySeconds: 1,
    kmsCheckEverySeconds: 1,
    sealOutageSeconds: 3,
    storeOutageSeconds: 4,
    rotateEverySeconds: 20,
    tokenLifetimeSeconds: 60,
  };

  /** How many tokens ready members refuse in this time, of those that each member seals in every fifth of a second. */
  async function refusedFor(seconds: number, members: readonly Member[]): Promise<number> {
    let refused = 0;
    for (let i = 0; i < 5 * seconds; i++) {
      const tokens = members.flatMap((from) => (from.codec.health().canSeal ? [seal(from)] : []));
      const ready = members.filter(({ codec }) => codec.health().ready);
      refused += tokens.filter((token) => ready.some((to) => open(to, token) !== 'state')).length;
      await fleet.clock.advance(0.2);
    }
    return refused;
  }

  const threeWith = async (options: Partial<KmsCodecOptions>): Promise<readonly Member[]> => {
    const members: Member[] = [];
    for (let i = 0; i < 3; i++) members.push(await start({ ring: fleet.store.connectUnwatched(), ...options }));
    return members;
  };

  test('a backoffCap longer than sealOutage, with which members would make keys without end, is refused', async () => {
    await expect(start({ policy })).rejects.toThrow(/backoffCapSeconds \(60\) .* sealOutageSeconds \(3\)/);
  });

  test('with the longest backoffCap for its sealOutage, a fleet makes scheduled keys only, and refuses no token', async () => {
    const members = await threeWith({ policy: { ...policy, backoffCapSeconds: 3 } });
    expect(await refusedFor(200, members)).toBe(0);
    // The first key, and a successor every 20 s.
    expect(fleet.kms.calls.generate).toBeLessThanOrEqual(1 + 200 / 20 + 1);
  });

  test('no member seals with an emergency key that a slow KMS delayed until the others could not have read it', async () => {
    const times = { clockSkewSeconds: 4, refreshEverySeconds: 5, backoffCapSeconds: 3, storeOutageSeconds: 20 };
    const members = await threeWith({ policy: { ...policy, ...times, rotateEverySeconds: 80 } });
    // A new key takes two calls.
    for (const seconds of [0.5, 1, 4]) {
      fleet.kms.latency = () => pause(fleet.clock, seconds * 1_000);
      const asked = Promise.allSettled([members[0]?.codec.rotate({ emergency: true })]);
      expect(await refusedFor(30, members)).toBe(0);
      const [{ status }] = await asked;
      expect([seconds, status]).toEqual([seconds, seconds < 4 ? 'fulfilled' : 'rejected']);
    }
  });
});

describe('one service with a wrong date (F42)', () => {
  for (const service of ['kms', 'store'] as const) {
    for (const hours of [3, -3]) {
      test(`a ${service} whose date is wrong by ${hours} hours stops no server and blocks nothing if the date of the other service agrees`, async () => {
        let off = 0;
        const wrong = (): Date => new Date(fleet.clock.wallMs() + off * 1_000);
        const right = (): Date => new Date(fleet.clock.wallMs());
        [fleet.kms.date, fleet.store.date] = service === 'kms' ? [wrong, right] : [right, wrong];
        const members = [await start(), await start()];
        off = hours * HOUR;
        // Later than the next KMS check of either member.
        await fleet.clock.advance(1_000);
        for (const { codec } of members) {
          expect(codec.health()).toMatchObject({
            status: 'degraded',
            ready: true,
            problems: [{ kind: 'service-clock' }],
          });
          expect(codec.health().problems[0]?.detail).toContain(service === 'kms' ? 'the KMS' : 'the store');
        }
        const [a, b] = members as [Machine, Machine];
        await a.codec.rotate();
        const token = seal(b);
        await b.codec.revoke(token.slice(4, 16));
        expect(open(b, seal(b))).toBe('state');
        await fleet.clock.advance(400);
        expect(open(a, token)).toBe(UNKNOWN);
        await workFor(DAY, HOUR, members);
        off = 0;
        await fleet.clock.advance(1_000);
        for (const { codec } of members) expect(codec.health()).toMatchObject({ status: 'ok', problems: [] });
      });
    }
  }

  test('a machine whose own clock is wrong publishes nothing, but still revokes', async () => {
    fleet.kms.date = () => new Date(fleet.clock.wallMs());
    fleet.store.date = () => new Date(fleet.clock.wallMs());
    const [wrong, a] = [await start(), await start()];
    const token = seal(a);
    wrong.clock.offsetSeconds = HOUR;
    await fleet.clock.advance(1_000);
    expect(wrong.codec.health()).toMatchObject({ status: 'failing', problems: [{ kind: 'clock' }] });
    await expect(wrong.codec.rotate()).rejects.toMatchObject({ name: 'RingStoreError' });
    await wrong.codec.revoke(token.slice(4, 16));
    expect((await entries()).map(({ revoked }) => revoked !== undefined)).toEqual([true]);
    // The member with the right clock makes the successor.
    await fleet.clock.advance(30);
    expect(open(a, token)).toBe(UNKNOWN);
    expect(open(a, seal(a))).toBe('state');
    expect(await entries()).toHaveLength(2);
  });
});

describe('the revocation of all keys created before now (F43)', () => {
  test('revokeAllBefore(now) includes the key that a server ahead by the skew created a moment ago', async () => {
    const fast = await start({ offsetSeconds: 290 });
    const right = await start();
    await fleet.clock.advance(HOUR);
    await fast.codec.rotate();
    await fast.codec.rotate({ emergency: true });
    const old = (await entries()).map(({ id }) => id);
    expect(old).toHaveLength(3);
    await fleet.clock.advance(1);
    await right.codec.revokeAllBefore(new Date(right.clock.wallMs()));
    const now = await entries();
    expect(
      now
        .filter(({ revoked }) => revoked !== undefined)
        .map(({ id }) => id)
        .toSorted(),
    ).toEqual(old.toSorted());
    expect(now).toHaveLength(4);
    for (let passed = 0; passed < 3 * HOUR; passed += 300) {
      await fleet.clock.advance(300);
      for (const member of [fast, right]) expect(old).not.toContain(seal(member).slice(4, 16));
    }
  });

  test('revokeAllBefore(now) includes a key created in the same second', async () => {
    const a = await start();
    await fleet.clock.advance(HOUR + 0.25);
    await a.codec.rotate();
    await fleet.clock.advance(0.1);
    await a.codec.revokeAllBefore(new Date(a.clock.wallMs()));
    expect((await entries()).filter(({ revoked }) => revoked === undefined)).toHaveLength(1);
    expect((await entries()).filter(({ revoked }) => revoked !== undefined)).toHaveLength(2);
  });

  test('revokeAllBefore(now) includes a key that was created while a thief’s entries claimed a future time', async () => {
    const thief = new Thief();
    const inner = thief.spy(fleet.kms.connect());
    const a = await start({
      keyWrapper: {
        ...inner,
        // Anything but a wrap of this service is answered late, so that it is carried and not recorded as junk.
        unwrap: async (wrapped, options) => {
          if (wrapped.keyId !== inner.keyId) {
            throw new KeyWrapperError('unavailable', { provider: 'local', operation: 'unwrap' });
          }
          return inner.unwrap(wrapped, options);
        },
      },
    });
    const [stolen = ''] = thief.stolen;
    for (let i = 0; i < 3; i++) {
      const now = fleet.clock.wallMs();
      const times = {
        created: now + 363_000,
        activates: now,
        sealsUntil: now + 90_000_000,
        opensUntil: now + 95_000_000,
      };
      const late = await thief.newEntry(times, { vouchedBy: [stolen] });
      await fleet.store.put(
        encodeDocument({ ring: 'default', claim: undefined, entries: [...(await entries()), late] }),
      );
      const revoked = a.codec.revoke(a.codec.health().sealingKey ?? '');
      await fleet.clock.advance(30);
      await revoked;
    }
    // It reports that one of the thief's keys could not be revoked.
    const all = a.codec.revokeAllBefore(new Date(a.clock.wallMs())).catch(() => undefined);
    await fleet.clock.advance(30);
    await all;
    const own = (await entries()).filter(({ id }) => !thief.made.includes(id));
    expect(own).toHaveLength(5);
    expect(own.filter(({ revoked }) => revoked === undefined).map(({ id }) => id)).toEqual([
      a.codec.health().sealingKey,
    ]);
  });

  test('several servers that revoke all keys at once spare the successor that one of them created, so that one key seals', async () => {
    const members: Machine[] = [];
    for (const offsetSeconds of [0, 100, -100, 250]) {
      members.push(await start({ offsetSeconds, ring: fleet.store.connectUnwatched() }));
    }
    const [old] = await entries();
    fleet.kms.latency = () => pause(fleet.clock, 500);
    const wish = new Date(fleet.clock.wallMs());
    const revoked = Promise.all(members.map(({ codec }) => codec.revokeAllBefore(wish)));
    await fleet.clock.advance(60);
    await revoked;
    fleet.kms.latency = undefined;
    const now = await entries();
    expect(now.filter((entry) => entry.revoked !== undefined).map(({ id }) => id)).toEqual([old?.id]);
    expect(now.length).toBe(2);
    await fleet.clock.advance(400);
    for (const from of members) {
      const token = seal(from);
      expect(members.map((to) => open(to, token))).toEqual(members.map(() => 'state'));
    }
  });
});
