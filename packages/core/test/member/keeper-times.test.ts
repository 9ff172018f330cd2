import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Moment } from '../../src/base/clock.ts';
import type { KmsCodecOptions } from '../../src/codec/kms-codec-options.ts';
import { keeperOf } from '../../src/codec/ring-codec.ts';
import { CodecClosedError } from '../../src/contracts/errors.ts';
import { RingConflictError, type RingStore } from '../../src/contracts/ring-store.ts';
import { formatSecretsOf } from '../../src/format-secrets.ts';
import { CallTimes } from '../support/calls-in-time.ts';
import { Draws } from '../support/draws.ts';
import { EventLog } from '../support/event-log.ts';
import { Fleet, type Member, open, seal } from '../support/fleet.ts';

const HOUR = 3_600;

let fleet: Fleet;
let draws: Draws;
let times: CallTimes;
let log: EventLog;
let startedAt: number;
beforeEach(() => {
  fleet = new Fleet();
  draws = new Draws();
  times = new CallTimes(fleet.clock);
  log = new EventLog();
});
afterEach(async () => {
  log.end();
  await fleet.close();
});

/** A member with known random numbers and recorded calls. Seconds are counted from its start. */
async function start(options: Partial<KmsCodecOptions> = {}): Promise<Member> {
  const member = await fleet.start({
    random: draws.random,
    ring: times.store(options.ring ?? fleet.store.connectUnwatched()),
    keyWrapper: times.keyWrapper(fleet.kms.connect()),
    ...(options.policy === undefined ? {} : { policy: options.policy }),
    ...(options.role === undefined ? {} : { role: options.role }),
  });
  times.clear();
  // The moment of the start, not of its detection.
  startedAt = (keeperOf(member.codec)?.view.limits.lastComplete?.steadyMs ?? Number.NaN) / 1_000;
  log.listen();
  return member;
}

/** From here on, calls are recorded and seconds are counted from zero. */
function mark(): void {
  times.clear();
  startedAt = now();
}

function now(): number {
  return Number(fleet.clock.monotonicNs()) / 1e9;
}

/** Seconds from the start, or from `from`, to the millisecond. */
function since(all: readonly number[], from = startedAt): number[] {
  return all.map((at) => Math.round((at - from) * 1e3) / 1e3);
}

/** Compares to the hundredth, because a turn is not a whole number of milliseconds. */
function about(seconds: number): number {
  return expect.closeTo(seconds, 2) as number;
}

function stepsOf(all: readonly number[]): number[] {
  return since(
    all.map((at, i) => at - (all[i - 1] ?? startedAt)),
    0,
  );
}

describe('reads and KMS checks with every jitter at its midpoint', () => {
  test('the ring is read every 270 s, and a KMS check is made every 810 s, without further passes', async () => {
    await start();
    await fleet.clock.advance(1_700);
    expect(since(times.reads)).toEqual([270, 540, 810, 1_080, 1_350, 1_620]);
    expect(since(times.unwraps)).toEqual([810, 1_620]);
    expect(log.of('refresh')).toEqual(Array.from({ length: 6 }, () => ({ ok: true, seconds: 0 })));
  });

  test('the minimum wait between two passes does not delay a ring that is read every 100 ms', async () => {
    await start({ policy: { refreshEverySeconds: 0.1 } });
    await fleet.clock.advance(0.4);
    expect(since(times.reads).slice(0, 4)).toEqual([0.09, 0.18, 0.27, 0.36]);
  });

  test('a KMS check that is due on its own causes no read', async () => {
    draws.next = 0;
    await start({ policy: { kmsCheckEverySeconds: 100 } });
    await fleet.clock.advance(301);
    expect(since(times.unwraps)).toEqual([100, 200, 300]);
    expect(since(times.reads)).toEqual([300]);
  });

  test.each([299.999, 300.001])(
    'a KMS check due after %d s and a read due after 300 s are made in one pass',
    async (kmsCheckEverySeconds) => {
      draws.next = 0;
      await start({ policy: { kmsCheckEverySeconds } });
      await fleet.clock.advance(302);
      expect(log.of('refresh')).toHaveLength(1);
      expect([times.reads, times.unwraps].map(({ length }) => length)).toEqual([1, 1]);
    },
  );

  test('the time of a KMS check is drawn once, not at every pass, because the shortest of many draws would win', async () => {
    draws.next = 0;
    await start();
    draws.next = 0.99;
    await fleet.clock.advance(901);
    expect(since(times.unwraps)).toEqual([900]);
  });

  test('a failing store is read again after a wait halfway between 1 s and a cap of 10 s, which doubles up to 60 s (F31)', async () => {
    await start();
    fleet.store.down = true;
    await fleet.clock.advance(400);
    expect(stepsOf(times.reads).slice(0, 7)).toEqual([270, 5.5, 10.5, 20.5, 30.5, 30.5, 30.5]);
    expect(log.of('refresh').slice(0, 1)).toEqual([{ ok: false, source: 'store', kind: 'unavailable', seconds: 0 }]);
  });

  test('after a refusal, the KMS is called every 10 s until sealing stops, and then after the backoff (F10)', async () => {
    await start();
    fleet.kms.failing = 'denied';
    await fleet.clock.advance(900);
    expect(since(times.unwraps)).toEqual([810, 820, 830, 850.5, 881]);
    expect(log.of('refresh').find(({ ok }) => ok === false)).toMatchObject({ source: 'kms', kind: 'denied' });
  });

  test('the status is reported only when it changes', async () => {
    await start();
    await fleet.clock.advance(600);
    fleet.store.down = true;
    await fleet.clock.advance(600);
    fleet.store.down = false;
    await fleet.clock.advance(600);
    expect(log.of('state')).toEqual([{ status: 'ok' }, { status: 'degraded' }, { status: 'ok' }]);
  });

  test('a call notices a gap once the next pass is overdue by more than the backoff, and a KMS check follows (F28)', async () => {
    draws.next = 0;
    const member = await start();
    fleet.clock.suspend(359);
    seal(member);
    await fleet.clock.advance(0.1);
    expect([times.reads, times.unwraps]).toEqual([[], []]);
    fleet.clock.suspend(1);
    seal(member);
    await fleet.clock.advance(0.1);
    expect([times.reads, times.unwraps].map(({ length }) => length)).toEqual([1, 1]);
    // That was the one expected KMS check.
    await fleet.clock.advance(301);
    expect([times.reads, times.unwraps].map(({ length }) => length)).toEqual([2, 1]);
  });
});

describe('a pass that a push causes', () => {
  /** The keys that a member holds, oldest first. */
  const held = (member: Member) => member.codec.health().keys.map((key) => key.held);

  test.each<[string, object, boolean, number]>([
    ['half a minute later', {}, false, 30],
    [
      'after half of refreshEvery if that is shorter',
      { refreshEverySeconds: 20, propagationSeconds: 4_500 },
      false,
      10,
    ],
    [
      'after half of a quarter of the remaining time if that is shorter still',
      { refreshEverySeconds: 20, backoffCapSeconds: 19, clockSkewSeconds: 1, propagationSeconds: 4_500 },
      true,
      5,
    ],
  ])('the ring is read at once, and the new key is unwrapped %s', async (_, policy, emergency, seconds) => {
    const writer = await fleet.start({ policy });
    const member = await start({ policy, ring: fleet.store.connect() });
    mark();
    await writer.codec.rotate({ emergency });
    await fleet.clock.advance(0);
    expect(since(times.reads)).toEqual([0]);
    expect(times.unwraps).toEqual([]);
    expect(held(member)).toEqual([true, false]);
    await fleet.clock.advance(seconds - 0.001);
    expect(times.unwraps).toEqual([]);
    await fleet.clock.advance(0.001);
    expect(since(times.unwraps)).toEqual([seconds]);
    expect(held(member)).toEqual([true, true]);
  });

  test.each([300, 0])(
    'the successor of a revoked key is unwrapped at once, because it already seals (skew %d s)',
    async (skew) => {
      const policy = { clockSkewSeconds: skew };
      const writer = await fleet.start({ policy });
      const member = await start({ policy, ring: fleet.store.connect() });
      mark();
      await writer.codec.revokeAllBefore(new Date(fleet.clock.wallMs() + 1_000));
      await fleet.clock.advance(0);
      expect(open(member, seal(writer))).toBe('state');
      expect(open(writer, seal(member))).toBe('state');
      // No call was left for later.
      await fleet.clock.advance(31);
      expect(since(times.reads)).toEqual([0]);
    },
  );

  test('a KMS check is made only when it is due', async () => {
    const writer = await fleet.start();
    await start({ ring: fleet.store.connect() });
    await fleet.clock.advance(800);
    mark();
    await writer.codec.rotate();
    await fleet.clock.advance(0);
    expect(since(times.reads)).toEqual([0]);
    expect(times.unwraps).toEqual([]);
  });

  test('a push does not cause a failed KMS check to be repeated earlier (F45)', async () => {
    const writer = await fleet.start();
    await start({ ring: fleet.store.connect() });
    await fleet.clock.advance(800);
    fleet.kms.failing = 'denied';
    await fleet.clock.advance(11);
    expect(since(times.unwraps)).toEqual([810]);
    fleet.kms.failing = undefined;
    mark();
    await writer.codec.rotate();
    await fleet.clock.advance(0);
    expect(since(times.reads)).toEqual([0]);
    expect(times.unwraps).toEqual([]);
    expect(log.of('refresh').at(-1)).toEqual({ ok: true, seconds: 0 });
    // The call after a refusal keeps its time, whatever notifications arrive meanwhile.
    await fleet.clock.advance(20);
    expect(times.unwraps.length).toBeGreaterThan(0);
  });

  test('many notifications cause one pass at once, and one more after missRefresh and its jitter (F29)', async () => {
    let changed = (): void => undefined;
    const inner = fleet.store.connectUnwatched();
    const ring: RingStore = { ...inner, watch: (told) => ((changed = told), () => undefined) };
    await start({ ring });
    mark();
    for (let i = 0; i < 100; i++) {
      for (let j = 0; j < 10; j++) changed();
      await fleet.clock.advance(0.05);
    }
    expect(since(times.reads)).toEqual([0]);
    await fleet.clock.advance(60);
    expect(since(times.reads)).toEqual([0, 11]);
  });
});

describe('a rotation with every wait at its midpoint (F7)', () => {
  /** R × ln(1 + u(e^10 − 1)) / 10, half of it for each turn. */
  const TURN = (300 * Math.log(1 + 0.5 * (Math.E ** 10 - 1))) / 10 / 2;
  /** rotateEvery − propagation after the activation, S before the start. */
  const DUE = 86_400 - 4_500 - 300;

  /** Starts a member that finds a due rotation at its next read. */
  async function startBeforeDue(): Promise<Member> {
    const member = await start();
    // The machine is suspended, so there are no reads in between, and the wall clock alone decides.
    fleet.clock.suspend(DUE - 200);
    await member.codec.refresh();
    mark();
    return member;
  }

  test('is made after two turns, each of which ends with a read of the ring', async () => {
    const member = await startBeforeDue();
    await fleet.clock.advance(1_000);
    // The rotation is found due at 270 s. The reads in between continue.
    expect(since(times.reads)).toEqual([270, 270 + TURN, 540, 270 + 2 * TURN, 810].map(about));
    expect(since(times.generates)).toEqual([about(270 + 2 * TURN)]);
    expect(log.of('rotation')).toMatchObject([{ reason: 'scheduled' }]);
    expect(member.codec.health()).toMatchObject({ status: 'ok', lastError: undefined });
  });

  test('a failed rotation is reported at once, and tried again after a turn plus ¾ of a backoff that doubles from 120 s to kmsCheckEvery', async () => {
    const member = await startBeforeDue();
    fleet.kms.wrapFailing = 'corrupt';
    await fleet.clock.advance(560);
    expect(log.of('rotation-failed')).toMatchObject([{ reason: 'scheduled', source: 'kms', kind: 'corrupt' }]);
    expect(log.of('state').at(-1)).toEqual({ status: 'degraded' });
    expect(member.codec.health()).toMatchObject({ status: 'degraded', lastError: { source: 'kms', kind: 'corrupt' } });
    await fleet.clock.advance(2_700);
    const waits = [90, 180, 360, 675, 675].map((backoff) => about(backoff + TURN));
    expect(stepsOf(times.generates).slice(1)).toEqual(waits);
  });

  test('a rotation that is overdue when the member starts begins its turns at once', async () => {
    const first = await fleet.start();
    await first.codec.close();
    fleet.clock.suspend(DUE + 10);
    await start();
    await fleet.clock.advance(400);
    expect(since(times.generates)).toEqual([about(2 * TURN)]);
  });

  test('a rotation becomes due at its exact time, not a millisecond earlier', async () => {
    draws.next = 0;
    const member = await start();
    fleet.clock.suspend(DUE - 300 - (now() - startedAt));
    await member.codec.refresh();
    await fleet.clock.advance(299.999);
    expect(times.generates).toEqual([]);
    await fleet.clock.advance(0.001);
    expect(times.generates).toHaveLength(1);
  });

  test('a rotation ends within twice refreshEvery of its due time, whatever waits are drawn', async () => {
    const took: number[] = [];
    for (const draw of [0, 0.2, 0.5, 0.8, 0.999]) {
      draws.next = draw;
      const member = await start();
      const [first] = member.codec.health().keys;
      const due = (first?.activates.getTime() ?? 0) + (86_400 - 4_500) * 1_000;
      // The ring was read half an interval before it is due: the read that finds it due is as late as possible.
      fleet.clock.suspend((due - fleet.clock.wallMs()) / 1_000 - 1);
      await member.codec.refresh();
      while (member.codec.health().keys.length === 1) await fleet.clock.advance(1);
      took.push((fleet.clock.wallMs() - due) / 1_000);
      await fleet.close();
      fleet = new Fleet();
    }
    expect(Math.max(...took)).toBeLessThanOrEqual(2 * 300 + 1);
    // A single member may take longer than one.
    expect(Math.max(...took)).toBeGreaterThan(300);
  });

  test('a rotation that loses its race does not count as failed', async () => {
    let lost = 0;
    const inner = fleet.store.connectUnwatched();
    await start({
      ring: {
        ...inner,
        write: async (document, options) => {
          if (now() - startedAt < 1 || lost > 0) return inner.write(document, options);
          lost += 1;
          throw new RingConflictError();
        },
      },
    });
    fleet.clock.suspend(DUE);
    await fleet.clock.advance(1_600);
    expect(lost).toBe(1);
    expect(log.of('rotation-failed')).toEqual([]);
    expect(log.of('state')).toEqual([{ status: 'ok' }]);
    expect(log.of('conflict')).toEqual([{ keys: 2 }]);
    expect(log.of('rotation')).toHaveLength(1);
  });

  test('a rotation is not tried while sealing is stopped, and so does not fail', async () => {
    const member = await start();
    fleet.kms.failing = 'disabled';
    await fleet.clock.advance(900);
    fleet.clock.suspend(DUE);
    await fleet.clock.advance(HOUR);
    expect(member.codec.health().canSeal).toBe(false);
    expect(times.generates).toEqual([]);
    expect(log.of('rotation-failed')).toEqual([]);
  });

  test('a rotation is not tried by a member with a wrong clock, and so does not fail', async () => {
    await startBeforeDue();
    fleet.store.date = () => new Date(fleet.clock.wallMs() + HOUR * 1_000);
    await fleet.clock.advance(HOUR);
    expect(times.generates).toEqual([]);
    expect(log.of('rotation-failed')).toEqual([]);
  });

  test('makes one KMS check at the end of its first turn, without retries because no caller waits', async () => {
    await startBeforeDue();
    await fleet.clock.advance(400);
    times.clear();
    fleet.kms.failing = 'unavailable';
    await fleet.clock.advance(20);
    expect(since(times.unwraps)).toEqual([about(270 + TURN)]);
    expect(log.of('rotation-failed')).toMatchObject([{ source: 'kms', kind: 'unavailable' }]);
  });

  test('causes only one unwrap of a key that it learned at the end of its turn', async () => {
    const writer = await fleet.start({ ring: fleet.store.connectUnwatched() });
    const member = await startBeforeDue();
    await fleet.clock.advance(400);
    await writer.codec.rotate();
    times.clear();
    fleet.kms.failNext = 1;
    await fleet.clock.advance(20);
    expect(since(times.unwraps)).toEqual([about(270 + TURN)]);
    expect(member.codec.health().keys).toHaveLength(2);
  });

  test('is timed from the newest key that is not revoked', async () => {
    const member = await start();
    await member.codec.rotate();
    const propagating = member.codec.health().keys[1]?.id ?? '';
    await member.codec.revoke(propagating);
    times.clear();
    fleet.clock.suspend(DUE);
    await fleet.clock.advance(HOUR / 2);
    expect(times.generates).toHaveLength(1);
  });
});

describe('a write that loses its race (F8)', () => {
  test('a write that loses its race is repeated after a growing wait, and given up after 64 more attempts', async () => {
    const writes: number[] = [];
    const inner = fleet.store.connectUnwatched();
    let losing = false;
    const member = await start({
      ring: {
        ...inner,
        write: async (document, options) => {
          if (!losing) return inner.write(document, options);
          writes.push(now());
          throw new RingConflictError();
        },
      },
    });
    losing = true;
    mark();
    const outcome = member.codec.rotate().catch((error: unknown) => error);
    await fleet.clock.advance(60);
    expect(await outcome).toBeInstanceOf(RingConflictError);
    expect(writes).toHaveLength(65);
    const waits = [0, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.5, 0.5];
    expect(stepsOf(writes).slice(0, 10)).toEqual(waits);
    expect(log.of('rotation-failed')).toMatchObject([{ reason: 'requested', source: 'store', kind: 'conflict' }]);
  });

  test('a write that loses its race in a pass is not a failure, and the ring is read again within 5 s', async () => {
    const inner = fleet.store.connectUnwatched();
    let losing = false;
    const member = await start({
      ring: {
        ...inner,
        write: async (document, options) => {
          const written = await inner.write(document, options);
          // Another member was slightly faster, and wrote the same.
          if (losing) throw new RingConflictError();
          return written;
        },
      },
    });
    losing = true;
    fleet.store.flush();
    mark();
    await expect(member.codec.refresh()).rejects.toMatchObject({ kind: 'unavailable' });
    await fleet.clock.advance(5.1);
    expect(log.of('refresh').map((event) => [event['source'], event['kind']])).toEqual([
      ['store', 'unavailable'],
      ['store', 'conflict'],
      [undefined, undefined],
    ]);
    expect(since(times.reads)).toEqual([0, 2.5, 5]);
    expect(member.codec.health()).toMatchObject({ status: 'ok', lastError: undefined });
  });
});

describe('calls with and without a waiting caller', () => {
  /** A member that has not read the newest key. */
  async function behind(): Promise<Member> {
    const writer = await fleet.start({ ring: fleet.store.connectUnwatched() });
    const member = await start();
    await writer.codec.rotate();
    mark();
    fleet.kms.failNext = 1;
    return member;
  }

  const asked: readonly [string, (member: Member) => Promise<void>][] = [
    ['a refresh', ({ codec }) => codec.refresh()],
    ['a rotation', ({ codec }) => codec.rotate()],
    ['a revocation', ({ codec }) => codec.revokeAllBefore(new Date(fleet.clock.wallMs() + 1_000))],
  ];
  test.each(asked)('%s that was requested calls the KMS again after a failure', async (_, run) => {
    const member = await behind();
    const done = run(member);
    await fleet.clock.advance(1);
    await expect(done).resolves.toBeUndefined();
    expect(since(times.unwraps).slice(0, 2)).toEqual([0, 0.1]);
  });

  test.each<readonly [string, (member: Member) => Promise<void> | undefined]>([
    ['a token', (member) => member.codec.prepare(seal(member))],
    ['a token of another format', ({ codec }) => formatSecretsOf(codec, 'python').noteUnknownKey()],
  ])('an overdue pass for which %s waits calls the KMS again after a failure', async (_, wait) => {
    const member = await start();
    fleet.clock.suspend(1_000);
    mark();
    fleet.kms.failNext = 1;
    const waited = wait(member);
    await fleet.clock.advance(1);
    await waited;
    expect(since(times.unwraps).slice(0, 2)).toEqual([0, 0.1]);
  });

  test('a token of an unknown key causes one read of the ring per missRefresh, and one KMS call (F5)', async () => {
    const writer = await fleet.start({ ring: fleet.store.connectUnwatched() });
    const member = await start();
    await writer.codec.revokeAllBefore(new Date(fleet.clock.wallMs() + 1_000));
    const token = seal(writer);
    fleet.kms.failNext = 1;
    mark();
    for (let i = 0; i < 9; i++) {
      expect(open(member, token)).toBe('InvalidRequestState: unknown key');
      await fleet.clock.advance(0.5);
    }
    expect(since(times.reads)).toEqual([0]);
    expect(since(times.unwraps)).toEqual([0]);
    // The backoff of 10 s, drawn at a half.
    await fleet.clock.advance(1);
    expect(open(member, token)).toBe('state');
    expect(since(times.reads)).toEqual([0, 5]);
  });

  test('tokens of keys that do not exist cause one read of the ring in 10 s (F5)', async () => {
    const member = await start();
    const token = seal(member);
    const unknown = `${token.slice(0, 4)}${'A'.repeat(12)}${token.slice(16)}`;
    mark();
    for (const seconds of [0, 0, 5, 4.9, 0.1]) {
      await fleet.clock.advance(seconds);
      expect(open(member, unknown)).toBe('InvalidRequestState: unknown key');
    }
    await fleet.clock.advance(0);
    expect(since(times.reads)).toEqual([0, 10]);
  });

  test('a token of a known key that may no longer be used causes no read', async () => {
    const member = await start();
    const token = seal(member);
    await member.codec.revokeAllBefore(new Date(fleet.clock.wallMs() + 1_000));
    times.clear();
    expect(open(member, token)).toBe('InvalidRequestState: unknown key');
    await fleet.clock.advance(1);
    expect(times.reads).toEqual([]);
  });

  test('a token that names no key causes a read of the ring', async () => {
    const ring = times.store(fleet.store.connectUnwatched());
    const member = await fleet.start({ random: draws.random, ring, accept: ['sealring', 'python'] });
    times.clear();
    const python = await fleet.start({ format: 'python', ringName: 'other', ring: new Fleet().store.connect() });
    expect(open(member, seal(python))).toBe('InvalidRequestState: unknown key');
    await fleet.clock.advance(0);
    expect(times.reads).toHaveLength(1);
  });

  /** Whether a token waits for a refresh, this many seconds after the last good read, or after `from`. */
  function waits(member: Member, id: string | undefined, seconds: number, from?: Moment): boolean | undefined {
    const keeper = keeperOf(member.codec);
    const { wallMs, steadyMs } = from ?? keeper?.view.limits.lastRead ?? { wallMs: 0, steadyMs: 0 };
    const at = { wallMs: wallMs + seconds * 1_000, steadyMs: steadyMs + seconds * 1_000 };
    return keeper?.causedReads.isWorthWaitingFor(id, at);
  }

  test('a token waits if the last read of the ring is older than refreshEvery, or its key is unknown', async () => {
    const member = await start();
    const id = member.codec.health().sealingKey;
    expect([0, 300, 300.001].map((seconds) => waits(member, id, seconds))).toEqual([false, false, true]);
    expect([0, 300, 300.001].map((seconds) => waits(member, undefined, seconds))).toEqual([false, false, true]);
    expect(waits(member, 'unknown', 0)).toBe(true);
  });

  test('a token waits if the last KMS check is older than kmsCheckEvery', async () => {
    const policy = {
      refreshEverySeconds: 2_000,
      propagationSeconds: 7_900,
      rotateEverySeconds: 31_600,
    };
    const member = await start({ policy });
    expect([0, 900, 900.001].map((seconds) => waits(member, undefined, seconds))).toEqual([false, false, true]);
  });

  test('while passes fail, tokens do not wait for overdue reads or checks until the last failure is 80 s old (F29)', async () => {
    const member = await start();
    fleet.store.down = true;
    await fleet.clock.advance(400);
    await member.codec.refresh().catch(() => undefined);
    const failed = keeperOf(member.codec)?.view.now();
    expect([0, 61, 80, 80.001].map((seconds) => waits(member, undefined, seconds, failed))).toEqual([
      false,
      false,
      false,
      true,
    ]);
    expect(waits(member, 'unknown', 0)).toBe(true);
  });
});

describe('closing', () => {
  /** The same clock, which counts the pending timers. */
  function counting() {
    const pending = new Set<object>();
    const { clock } = fleet;
    return {
      pending,
      wallMs: () => clock.wallMs(),
      monotonicNs: () => clock.monotonicNs(),
      uptimeMs: () => clock.uptimeMs(),
      schedule(callback: () => void, delayMs: number) {
        const timer = {};
        pending.add(timer);
        const cancel = clock.schedule(() => {
          pending.delete(timer);
          callback();
        }, delayMs);
        return () => {
          pending.delete(timer);
          cancel();
        };
      },
    };
  }

  test('close cancels every timer and the watch on the store, and stops sealing immediately', async () => {
    let watched = 0;
    const inner = fleet.store.connectUnwatched();
    const ring: RingStore = { ...inner, watch: () => (watched++, () => void watched--) };
    const clock = counting();
    const member = await fleet.start({ ring, clock });
    expect([clock.pending.size, watched]).toEqual([1, 1]);
    const closing = member.codec.close();
    expect(() => seal(member)).toThrow(CodecClosedError);
    await closing;
    await member.codec.close();
    expect([clock.pending.size, watched]).toEqual([0, 0]);
  });

  test('close ends a rotation that waits for its turn', async () => {
    const clock = counting();
    const member = await fleet.start({ clock });
    fleet.clock.suspend(86_400);
    // The first turn makes a KMS check, and only then may a key be published.
    await member.codec.refresh();
    await member.codec.refresh();
    // The next pass, and the turn.
    expect(clock.pending.size).toBe(2);
    await member.codec.close();
    expect(clock.pending.size).toBe(0);
  });

  test('close ends pending calls, which reject as closed and are not reported', async () => {
    const member = await start();
    const silent = async (run: () => Promise<void>, expected: object): Promise<void> => {
      const outcome = run().catch((error: unknown) => error);
      await fleet.clock.advance(0);
      log.clear();
      await Promise.all([member.codec.close(), fleet.clock.advance(1)]);
      expect(await outcome).toMatchObject(expected);
      for (const channel of ['refresh', 'rotation-failed', 'state', 'store-call', 'kms-call']) {
        expect(log.of(channel)).toEqual([]);
      }
    };
    fleet.store.hanging = true;
    await silent(() => member.codec.refresh(), { name: 'CodecClosedError' });
  });

  test('close ends a requested rotation, and no failure is reported', async () => {
    const member = await start();
    fleet.kms.hanging = true;
    const outcome = member.codec.rotate().catch((error: unknown) => error);
    await fleet.clock.advance(0);
    expect(times.generates).toHaveLength(1);
    await Promise.all([member.codec.close(), fleet.clock.advance(1)]);
    expect(await outcome).toBeInstanceOf(Error);
    expect(log.of('rotation-failed')).toEqual([]);
  });

  test('close ends a scheduled rotation, and no failure is reported', async () => {
    const member = await start();
    fleet.clock.suspend(86_400);
    // The first turn makes a KMS check, and only then may a key be published.
    await member.codec.refresh();
    await member.codec.refresh();
    await fleet.clock.advance(200);
    fleet.kms.hanging = true;
    await fleet.clock.advance(80);
    expect(times.generates).toHaveLength(1);
    await Promise.all([member.codec.close(), fleet.clock.advance(1)]);
    expect(log.of('rotation-failed')).toEqual([]);
  });
});
