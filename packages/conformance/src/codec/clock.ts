import type { RequestStateCodec } from '@sealring/core';
import { answerOf, type CodecChecks, type CodecTrial } from './trial.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const BYTES = 48;

/** Differences between two clocks, and the words for them. */
const SKEWS: readonly (readonly [number, string])[] = [
  [MINUTE, 'ahead'],
  [-MINUTE, 'behind'],
];
/** Less than the default lifetime of a requestState in the SDKs, 600 seconds. */
const LIFETIME = 9 * MINUTE;

export const CLOCK_CHECKS: CodecChecks = {
  'CODEC-CLOCK-SKEW': async (trial) => {
    const [codec, peer] = [await trial.create(), await trial.createPeer()];
    for (const [skew, word] of SKEWS) {
      const what = `a token of a peer whose clock is a minute ${word}`;
      inTime(trial, [peer, codec], skew, (moment) => `${what}, ${moment},`);
    }
  },
  'CODEC-AGE': async (trial) => {
    const codec = await trial.create();
    inTime(trial, [codec, codec], -LIFETIME, (moment) => `a token that is nine minutes old, ${moment},`);
  },
};

/**
 * Seals with one codec and unseals with the other, whose clock shows a different time. Does so around the current time,
 * around the start of the next hour, and around the next midnight.
 *
 * @param skew - How far the clock of the first codec is ahead of the other clock, in milliseconds.
 */
function inTime(
  trial: CodecTrial,
  [sealer, unsealer]: readonly [RequestStateCodec, RequestStateCodec],
  skew: number,
  what: (moment: string) => string,
): void {
  const now = Date.now();
  for (const [moment, name] of [
    [now, 'now'],
    [Math.ceil(now / HOUR) * HOUR, 'around the start of an hour'],
    [Math.ceil(now / DAY) * DAY, 'around midnight'],
  ] as const) {
    const [sealed, unsealed] = [moment + skew / 2, moment - skew / 2];
    const payload = trial.bytes(BYTES);
    // Another requirement tests a codec that refuses its own token at once, or does not seal at that time.
    const token = atTime(sealed, () => answerOf(() => sealer.seal(payload)));
    const isOwn = typeof token === 'string' && atTime(sealed, () => answerOf(() => sealer.unseal(token))) !== undefined;
    if (isOwn) atTime(unsealed, () => trial.expectPayload(unsealer, token, payload, what(name)));
  }
}

/**
 * Calls `use` while the system clock shows `ms`, in milliseconds since 1970. No other code sees that time, since the
 * call is synchronous.
 */
export function atTime<T>(ms: number, use: () => T): T {
  const SystemDate = globalThis.Date;
  const now = SystemDate.now;
  class OtherDate extends SystemDate {
    constructor(...given: readonly unknown[]) {
      super(...((given.length === 0 ? [ms] : given) as [number]));
    }
  }
  // A codec may hold a reference to the class, but probably not to its function `now`.
  SystemDate.now = () => ms;
  globalThis.Date = OtherDate as DateConstructor;
  try {
    return use();
  } finally {
    globalThis.Date = SystemDate;
    SystemDate.now = now;
  }
}
