import * as v from 'valibot';
import { aWholeNumber, checkArgument } from '../arguments.ts';
import { type ConformanceOptions, readOptions, type Settings } from '../options.ts';

/** How the suite of ring stores is run. */
export interface RingStoreOptions extends ConformanceOptions {
  /** Longest time for one requirement, milliseconds; 100 to 3 600 000. Default 600 000. */
  readonly timeoutMs?: number;
  /** Contests between writers; 1 to 100 000. Default as many as three seconds allow, 20 to 200. */
  readonly rounds?: number;
  /** Writers in a contest; 2 to 1 000. Default 20. Fewer for a service that refuses so many calls at once. */
  readonly writers?: number;
}

/** Validated options. */
export interface RingStoreSettings extends Settings {
  readonly rounds: number;
  readonly writers: number;
  /** Longest time for the contests of one requirement that were not asked for by their number. */
  readonly contestsMs: number;
}

const CONTESTS_MS = 3_000;
/** A store far away takes its time for 200 contests. */
const TIMEOUT_MS = 600_000;

const OWN_OPTIONS = v.optional(
  v.looseObject(
    { rounds: v.optional(aWholeNumber(1, 100_000)), writers: v.optional(aWholeNumber(2, 1_000)) },
    'must be an object',
  ),
);

/** @throws {TypeError | RangeError} as {@link readOptions} does. */
export function readRingStoreOptions(
  owner: string,
  given: RingStoreOptions | undefined,
  ids: readonly string[],
): RingStoreSettings {
  checkArgument(owner, OWN_OPTIONS, given);
  const { rounds = 200, writers = 20, ...rest } = given ?? {};
  const contestsMs = given?.rounds === undefined ? CONTESTS_MS : Number.POSITIVE_INFINITY;
  return { ...readOptions(owner, rest, ids, TIMEOUT_MS), rounds, writers, contestsMs };
}
