import * as v from 'valibot';

/** A function of any kind; what it returns shows when it is called. */
export const aFunction: v.GenericSchema = v.function('must be a function');
export const aText: v.GenericSchema<string> = v.pipe(v.string('must be a string'), v.nonEmpty('must not be empty'));
export const aFlag: v.GenericSchema<boolean> = v.boolean('must be true or false');

/** A whole number within bounds. */
export function aWholeNumber(least: number, most: number): v.GenericSchema<number> {
  const words = `must be a whole number from ${least} to ${most}`;
  return v.pipe(v.number(words), v.integer(words), v.minValue(least, words), v.maxValue(most, words));
}

/** The object `entries` describe, and nothing more in it: an unknown name is refused. */
export function anObject<T extends v.ObjectEntries>(entries: T): v.StrictObjectSchema<T, string> {
  return v.strictObject(entries, 'must be an object');
}

/**
 * Holds what a caller gave against a schema.
 *
 * @throws {TypeError} for a wrong type or an unknown name, {@link RangeError} for a value outside its bounds; each with
 * the owner, the path to the value and the value.
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
