import { beforeEach, describe, expect, test } from 'vitest';
import { type Clock, type Moment, momentOf } from '../../src/base/clock.ts';
import { RingClock } from '../../src/member/ring-clock.ts';
import { resolvePolicy } from '../../src/ring/policy.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const HOUR = 3_600;
const DAY = 24 * HOUR;
/** The largest step: clockSkew and the second that a date rounds off. */
const STEP = 301;
/** The largest deviation of a date: the deadline of a call is added. */
const TOLERATED = 306;
const policy = resolvePolicy(undefined, { storeKind: 'redis', createNow: false });

let clock: VirtualClock;
let ringClock: RingClock;
beforeEach(async () => {
  clock = new VirtualClock('2026-11-21T03:00:00Z');
  await clock.advance(DAY);
  ringClock = clockOf(clock);
});

function clockOf(machine: Clock): RingClock {
  return new RingClock(policy, machine);
}

function now(): Moment {
  return momentOf(clock);
}

/** Seconds by which the time for checks of keys is ahead of the machine's. */
function aheadBy(): number {
  return (ringClock.timeMs(now()) - clock.wallMs()) / 1_000;
}

function isConfirmed(): boolean {
  return ringClock.trouble(now()) === undefined;
}

/** An answer of a service whose clock is `seconds` ahead of this machine's. */
function note(service: 'kms' | 'store', seconds: number): void {
  ringClock.note(service, new Date(clock.wallMs() + seconds * 1_000));
}

describe('a step of the wall clock', () => {
  test('a step of the wall clock is followed at once, in either direction, up to the skew and a second', () => {
    for (const step of [STEP, -STEP]) {
      clock.step(step);
      expect([aheadBy(), isConfirmed()]).toEqual([0, true]);
      clock.step(-step);
    }
  });

  test('a step beyond the skew and a second is not followed, and is reported until the step is reverted', async () => {
    for (const step of [STEP + 0.001, -STEP - 0.001, 3 * DAY, -3 * DAY]) {
      clock.step(step);
      expect(aheadBy()).toBeCloseTo(-step, 6);
      expect(ringClock.trouble(now())).toBe(
        `this machine's clock stepped by ${Math.round(Math.abs(step))} s, and no date of the KMS or the store confirms it`,
      );
      await clock.advance(2);
      expect(aheadBy()).toBeCloseTo(-step, 6);
      clock.step(-step);
      expect([aheadBy(), isConfirmed()]).toEqual([0, true]);
    }
  });

  test('a step is checked against the time that was last trusted, not against another wrong time', () => {
    clock.step(3 * DAY);
    expect(aheadBy()).toBe(-3 * DAY);
    clock.step(-2 * DAY);
    expect(aheadBy()).toBe(-DAY);
    clock.step(-DAY);
    expect([aheadBy(), isConfirmed()]).toEqual([0, true]);
  });

  test('a step is followed as soon as a date matches it within the skew, the deadline and a second', () => {
    clock.step(3 * DAY);
    note('kms', -TOLERATED - 0.001);
    expect([aheadBy(), isConfirmed()]).toEqual([-3 * DAY, false]);
    note('kms', -TOLERATED);
    expect([aheadBy(), isConfirmed()]).toEqual([0, true]);
  });

  test('a step is not followed because of a date that does not match, however often that date is reported', () => {
    note('store', 0);
    clock.step(-2 * DAY);
    for (let i = 0; i < 5; i++) note('store', 2 * DAY);
    expect([aheadBy(), isConfirmed()]).toEqual([2 * DAY, false]);
  });

  test('a step of the wall clock makes earlier dates irrelevant, so that a later date is needed', () => {
    note('store', 0);
    clock.step(DAY);
    expect(isConfirmed()).toBe(false);
    note('kms', 0);
    expect([aheadBy(), isConfirmed(), ringClock.disputedBy(now())]).toEqual([0, true, undefined]);
  });

  test('after a step of the wall clock, the trusted time advances by the time that has passed', async () => {
    const before = ringClock.timeMs(now());
    clock.step(DAY);
    await clock.advance(600);
    expect(ringClock.timeMs(now()) - before).toBe(600_000);
  });
});

describe('a machine that was suspended', () => {
  test('a suspension is distinguished from a wrong clock by the uptime, if no service gives dates', () => {
    clock.suspend(3 * DAY);
    expect([aheadBy(), isConfirmed()]).toEqual([0, true]);
    clock.step(3 * DAY);
    expect([aheadBy(), isConfirmed()]).toEqual([-3 * DAY, false]);
  });

  test('a suspension is recognized if the clock advanced by at most the skew and a second more than the suspension', () => {
    clock.suspend(HOUR);
    clock.step(STEP);
    expect(isConfirmed()).toBe(true);
    clock.suspend(HOUR);
    clock.step(STEP + 0.001);
    expect(isConfirmed()).toBe(false);
  });

  test('a suspension while the clock was wrong is recognized when the clock is right again', () => {
    clock.step(-3 * DAY);
    expect(isConfirmed()).toBe(false);
    clock.suspend(HOUR);
    expect(isConfirmed()).toBe(false);
    clock.step(3 * DAY);
    expect([aheadBy(), isConfirmed()]).toEqual([0, true]);
  });

  test('a suspension does not explain a clock that steps back', () => {
    clock.suspend(HOUR);
    clock.step(-2 * HOUR);
    expect([aheadBy(), isConfirmed()]).toEqual([HOUR, false]);
  });

  test('the uptime is not trusted after a suspension if services give dates: one of the dates must match', () => {
    note('kms', 0);
    clock.suspend(HOUR);
    expect(isConfirmed()).toBe(false);
    note('kms', 0);
    expect([aheadBy(), isConfirmed()]).toEqual([0, true]);
  });

  test('a clock stays unconfirmed after a suspension if the uptime is unknown', () => {
    const mute: Clock = { wallMs: () => clock.wallMs(), monotonicNs: () => clock.monotonicNs() };
    const without = clockOf(mute);
    clock.suspend(HOUR);
    expect(without.trouble(momentOf(mute))).toMatch(/stepped by 3600 s/);
  });

  test('each of several suspensions is recognized', () => {
    for (let i = 0; i < 5; i++) {
      clock.suspend(HOUR);
      expect(isConfirmed()).toBe(true);
    }
  });
});

describe('a machine that starts with a wrong clock', () => {
  test('a machine that starts with a wrong clock reports the error as soon as a date shows it, and recovers once the clock is right', () => {
    note('kms', -3 * DAY);
    expect(ringClock.trouble(now())).toBe(`this machine's clock is ${3 * DAY} s ahead of the clock of the KMS`);
    clock.step(-3 * DAY);
    // The date that showed it is enough to check the other time.
    expect([aheadBy(), isConfirmed()]).toEqual([0, true]);
  });

  test('a clock that was wrong at the start is not confirmed by a step to another wrong time', () => {
    note('kms', -3 * DAY);
    clock.step(-DAY);
    expect(ringClock.trouble(now())).toBe(`this machine's clock is ${2 * DAY} s ahead of the clock of the KMS`);
    clock.step(-3 * DAY);
    expect(ringClock.trouble(now())).toBe(`this machine's clock is ${DAY} s behind the clock of the KMS`);
  });

  test('a machine without dates cannot detect a wrong clock at the start, and accepts a new time while no ring is known', () => {
    expect(ringClock.startAgain(now())).toBe(false);
    clock.step(-3 * DAY);
    expect(ringClock.startAgain(now())).toBe(true);
    expect([aheadBy(), isConfirmed()]).toEqual([0, true]);
    expect(ringClock.startAgain(now())).toBe(false);
    // A date that disagrees with the new time is enough to check a third one.
    note('kms', DAY);
    clock.step(DAY);
    expect([aheadBy(), isConfirmed()]).toEqual([0, true]);
  });
});

describe('the dates of two services', () => {
  test('the clock stays confirmed if only one of two services disagrees, and that service is named', () => {
    note('kms', 0);
    expect(ringClock.disputedBy(now())).toBeUndefined();
    note('store', -HOUR);
    expect([isConfirmed(), ringClock.disputedBy(now())]).toEqual([true, 'store']);
    note('store', 0);
    note('kms', HOUR);
    expect([isConfirmed(), ringClock.disputedBy(now())]).toEqual([true, 'kms']);
    note('kms', 0);
    expect(ringClock.disputedBy(now())).toBeUndefined();
  });

  test('the clock is not confirmed if both services disagree, whether they agree with each other or not', () => {
    note('kms', HOUR);
    note('store', HOUR);
    expect([isConfirmed(), ringClock.disputedBy(now())]).toEqual([false, undefined]);
    note('store', -HOUR);
    expect([isConfirmed(), ringClock.disputedBy(now())]).toEqual([false, undefined]);
  });

  test('only the last date of each service counts', () => {
    for (const seconds of [HOUR, -HOUR, 0]) note('kms', seconds);
    expect(isConfirmed()).toBe(true);
    note('kms', -HOUR);
    expect(isConfirmed()).toBe(false);
  });

  test('a step is confirmed if the date of either service matches it', () => {
    note('kms', 0);
    note('store', 0);
    clock.step(DAY);
    note('kms', -DAY);
    expect(isConfirmed()).toBe(false);
    note('store', 0);
    expect([isConfirmed(), ringClock.disputedBy(now())]).toEqual([true, 'kms']);
  });

  test('the date of a service may be off by at most the skew, the deadline and a second', () => {
    for (const sign of [1, -1]) {
      note('kms', sign * TOLERATED);
      expect(isConfirmed()).toBe(true);
      note('kms', sign * (TOLERATED + 0.001));
      expect(ringClock.trouble(now())).toBe(
        `this machine's clock is 306 s ${sign > 0 ? 'behind' : 'ahead of'} the clock of the KMS`,
      );
    }
  });

  test('invalid dates from a service are ignored', () => {
    for (const date of [new Date(Number.NaN), '2020-01-01', 5, undefined, null]) ringClock.note('kms', date);
    expect(isConfirmed()).toBe(true);
  });
});

describe('a wall clock that is corrected slowly', () => {
  /** Lets `seconds` pass in steps of an hour, and moves the wall clock by `share` of them. */
  async function slewed(share: number, seconds: number): Promise<void> {
    for (let passed = 0; passed < seconds; passed += HOUR) {
      await clock.advance(HOUR);
      clock.step(HOUR * share);
      ringClock.tick(now());
    }
  }

  test('a clock that is corrected slowly is always followed, up to twice the limit of NTP, in either direction', async () => {
    for (const share of [0.000_5, -0.000_5, 0.001, -0.001]) {
      await slewed(share, 10 * DAY);
      // 432 or 864 s in all: more than the largest step.
      expect([aheadBy(), isConfirmed()]).toEqual([0, true]);
    }
  });

  test('a correction that is faster than twice the limit of NTP becomes a step', async () => {
    await slewed(0.002, 3 * DAY);
    // A thousandth of it was followed, 259 s; the rest of 518 s is within a step.
    expect(isConfirmed()).toBe(true);
    await slewed(0.002, DAY);
    expect(isConfirmed()).toBe(false);
  });

  test('reads of the time, which clients can cause, do not make the clock follow a slow correction', async () => {
    for (let passed = 0; passed < 10 * DAY; passed += HOUR) {
      await clock.advance(HOUR);
      clock.step(HOUR * 0.000_5);
      ringClock.timeMs(now());
      ringClock.trouble(now());
    }
    expect(isConfirmed()).toBe(false);
  });

  test('a slow correction is not followed while a step of the clock is unconfirmed', async () => {
    clock.step(STEP + 1);
    await slewed(0, 10 * DAY);
    expect([aheadBy(), isConfirmed()]).toEqual([-STEP - 1, false]);
  });
});
