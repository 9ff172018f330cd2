import * as v from 'valibot';
import { aFunction, anObject, aText, aWholeNumber, checkArgument } from './arguments.ts';

/** How a suite is run. */
export interface ConformanceOptions {
  /** Ids of the requirements to try. Default all. */
  readonly only?: readonly string[];
  /** Everything random follows from it; 0 to 2^31 − 1. Default: drawn, and in the report. */
  readonly seed?: number;
  /** Longest time for one requirement, milliseconds; 100 to 3 600 000. Default 60 000. */
  readonly timeoutMs?: number;
  /** Called before each requirement is tried, and once at the end with an empty id. */
  readonly onProgress?: (done: number, total: number, id: string) => void;
}

/** Validated options. */
export interface Settings {
  readonly only: ReadonlySet<string> | undefined;
  readonly seed: number;
  readonly timeoutMs: number;
  readonly onProgress: (done: number, total: number, id: string) => void;
}

const LARGEST_SEED = 2 ** 31 - 1;
const TIMEOUT_MS = 60_000;

const OPTIONS = v.optional(
  anObject({
    only: v.optional(v.array(aText, 'must be an array of requirement ids')),
    seed: v.optional(aWholeNumber(0, LARGEST_SEED)),
    timeoutMs: v.optional(aWholeNumber(100, 3_600_000)),
    onProgress: v.optional(aFunction),
  }),
);

/**
 * @throws {TypeError} for an unknown option or a wrong type.
 * @throws {RangeError} for a value outside its bounds, or an id that the suite does not have.
 */
export function readOptions(
  owner: string,
  given: ConformanceOptions | undefined,
  ids: readonly string[],
  defaultTimeoutMs: number = TIMEOUT_MS,
): Settings {
  checkArgument(owner, OPTIONS, given);
  const { only, seed, timeoutMs, onProgress } = given ?? {};
  const unknown = only?.find((id) => !ids.includes(id));
  if (unknown !== undefined) {
    throw new RangeError(`${owner}: only names no requirement of this suite: ${JSON.stringify(unknown)}`);
  }
  return {
    only: only === undefined ? undefined : new Set(only),
    seed: seed ?? Math.floor(Math.random() * LARGEST_SEED),
    timeoutMs: timeoutMs ?? defaultTimeoutMs,
    onProgress: onProgress ?? (() => undefined),
  };
}
