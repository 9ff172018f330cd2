import * as v from 'valibot';

/** Any function: its result is checked when it is called. */
export const aFunction: v.GenericSchema = v.function('must be a function');
export const aText: v.GenericSchema<string> = v.pipe(v.string('must be a string'), v.nonEmpty('must not be empty'));
export const aFlag: v.GenericSchema<boolean> = v.boolean('must be true or false');

export function aWholeNumber(least: number, most: number): v.GenericSchema<number> {
  const words = `must be a whole number from ${least} to ${most}`;
  return v.pipe(v.number(words), v.integer(words), v.minValue(least, words), v.maxValue(most, words));
}

/** An object with the members in `entries`. Unknown members are refused. */
export function anObject<T extends v.ObjectEntries>(entries: T): v.StrictObjectSchema<T, string> {
  return v.strictObject(entries, 'must be an object');
}

/**
 * Validates an argument against a schema.
 *
 * @throws {TypeError} for a wrong type or an unknown name, and {@link RangeError} for a value out of range. The message
 * contains the owner, the path to the value, and what was received.
 */
export function checkArgument(owner: string, schema: v.GenericSchema, given: unknown): void {
  const result = v.safeParse(schema, given, { abortEarly: true });
  if (result.success) return;
  const [issue] = result.issues;
  const path = v.getDotPath(issue);
  const { kind, type, expected, received, message } = issue;
  if (type === 'strict_object' && expected === 'never') throw new TypeError(`${owner}: unknown option "${path}"`);
  const isMissing = type === 'strict_object' && path !== null;
  const text = `${owner}: ${path ?? 'the argument'} ${isMissing ? 'is missing' : `${message}, got ${received}`}`;
  throw kind === 'schema' ? new TypeError(text) : new RangeError(text);
}

/** Options of every suite. */
export interface ConformanceOptions {
  /** Ids of the requirements to check. Default: all. */
  readonly only?: readonly string[];
  /** Seed of all random inputs, 0 to 2^31 − 1. Default: a random seed, which the report shows. */
  readonly seed?: number;
  /** Time limit for one requirement, in milliseconds; 100 to 3 600 000. Default 60 000. */
  readonly timeoutMs?: number;
  /** Called before each requirement is checked, and once at the end with an empty id. */
  readonly onProgress?: (done: number, total: number, id: string) => void;
}

/** Validated options. */
export interface Settings {
  readonly only: ReadonlySet<string> | undefined;
  readonly seed: number;
  readonly timeoutMs: number;
  readonly onProgress: (done: number, total: number, id: string) => void;
}

export const LARGEST_SEED: number = 2 ** 31 - 1;

const COMMON = {
  only: v.optional(v.array(aText, 'must be an array of requirement ids')),
  seed: v.optional(aWholeNumber(0, LARGEST_SEED)),
  timeoutMs: v.optional(aWholeNumber(100, 3_600_000)),
  onProgress: v.optional(aFunction),
};

/**
 * @throws {TypeError} for an unknown option or a wrong type.
 * @throws {RangeError} for a value out of range, or an id that the suite does not have.
 */
export function readOptions(
  owner: string,
  given: ConformanceOptions | undefined,
  ids: readonly string[],
  defaultTimeoutMs: number,
  others: v.ObjectEntries = {},
): Settings {
  checkArgument(owner, v.optional(anObject({ ...COMMON, ...others })), given);
  const { only, seed, timeoutMs, onProgress } = given ?? {};
  const unknown = only?.find((id) => !ids.includes(id));
  if (unknown !== undefined) {
    throw new RangeError(`${owner}: only: this suite has no requirement ${JSON.stringify(unknown)}`);
  }
  return {
    only: only === undefined ? undefined : new Set(only),
    seed: seed ?? Math.floor(Math.random() * LARGEST_SEED),
    timeoutMs: timeoutMs ?? defaultTimeoutMs,
    onProgress: onProgress ?? (() => undefined),
  };
}
