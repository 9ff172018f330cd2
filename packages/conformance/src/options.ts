import { integerWithin, listOf, refuseUnknownOptions, textMatching, wrongType } from '@sealring/core/adapter';

/** How a suite is run. */
export interface ConformanceOptions {
  /** Ids of the requirements to try. Default all. */
  readonly only?: readonly string[];
  /** Everything random follows from it; 0 to 2^31 − 1. Default: drawn, and in the report. */
  readonly seed?: number;
  /** Longest time for one requirement, milliseconds; 100 to 600 000. Default 60 000. */
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

/**
 * @throws {TypeError} for an unknown option or a wrong type.
 * @throws {RangeError} for a value outside its bounds, or an id that the suite does not have.
 */
export function readOptions(owner: string, given: unknown, ids: readonly string[]): Settings {
  const options: ConformanceOptions = given === undefined ? {} : (given as ConformanceOptions);
  refuseUnknownOptions(owner, options, ['only', 'seed', 'timeoutMs', 'onProgress']);
  const { only, seed, timeoutMs = 60_000, onProgress } = options;
  if (onProgress !== undefined && typeof onProgress !== 'function') {
    throw wrongType(owner, 'onProgress', 'a function', onProgress);
  }
  return {
    only: only === undefined ? undefined : new Set(listOf(owner, 'only', only, 'requirement ids', ids.length, known)),
    seed:
      seed === undefined
        ? Math.floor(Math.random() * LARGEST_SEED)
        : integerWithin(owner, 'seed', seed, 0, LARGEST_SEED),
    timeoutMs: integerWithin(owner, 'timeoutMs', timeoutMs, 100, 600_000),
    onProgress: onProgress ?? (() => undefined),
  };

  function known(name: string, entry: unknown): string {
    const id = textMatching(owner, name, entry, /^[A-Z0-9-]{1,64}$/);
    if (!ids.includes(id)) throw new RangeError(`${owner}: ${name} is no requirement of this suite: ${id}`);
    return id;
  }
}
