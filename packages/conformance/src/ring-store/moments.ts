import { setImmediate as otherWork } from 'node:timers/promises';
import type { RingStore } from '@sealring/core';

/** Number of calls that are timed before the first abort. */
const TIMED = 5;
/** Moments of an abort, as fractions of the duration of a call; more than 1 is after its end. */
const PARTS: readonly number[] = [0.05, 0.15, 0.25, 0.35, 0.45, 0.5, 0.55, 0.65, 0.75, 0.85, 0.95, 1.1, 1.5];
/** Moments for a fast store, counted in turns of the event loop. */
const TURNS: readonly number[] = [0, 1, 2, 3, 4, 6, 8];
/** As many stores as the caller requests, two or more. The type names four, so that callers can destructure them. */
export type Stores = readonly [RingStore, RingStore, RingStore, RingStore, ...RingStore[]];
export type Moment = (began: number) => Promise<void>;

/**
 * Moments at which to abort a call, derived from the measured duration of a call. `once` makes one call, or prepares it
 * and returns a function that makes it.
 */
export async function moments(once: () => Promise<void | (() => Promise<unknown>)>): Promise<readonly Moment[]> {
  const times: number[] = [];
  for (let i = 0; i < TIMED; i++) {
    let began = performance.now();
    const prepared = await once();
    if (prepared !== undefined) {
      began = performance.now();
      await prepared();
    }
    times.push(performance.now() - began);
  }
  const tookMs = times.toSorted((one, other) => one - other)[Math.floor(TIMED / 2)] ?? 0;
  return [
    ...TURNS.map((turns) => async () => {
      for (let i = 0; i < turns; i++) await otherWork();
    }),
    // Timers are too coarse for calls of about two milliseconds, so this waits in a loop.
    ...PARTS.map((part) => async (began: number) => {
      while (performance.now() - began < part * tookMs) await otherWork();
    }),
  ];
}
