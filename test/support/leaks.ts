import { inspect } from 'node:util';

/** Spellings of a key in text: hex, the base64 alphabets, characters, JSON of a Buffer, a list of numbers. */
export function spellingsOf(key: Uint8Array): string[] {
  const bytes = Buffer.from(key);
  return [
    bytes.toString('base64'),
    bytes.toString('hex'),
    bytes.toString('base64url'),
    bytes.toString('latin1'),
    bytes.toString('hex').toUpperCase(),
    bytes.toString('hex').replace(/(..)(?=.)/g, '$1 '),
    [...bytes].join(),
    [...bytes].join(', '),
  ];
}

/** Everything a logger could print of a value and of its causes. */
function everySinkOf(value: unknown): string {
  const sinks: string[] = [];
  const whole = { depth: Infinity, showHidden: true, maxArrayLength: Infinity, maxStringLength: Infinity };
  for (let error = value; error !== undefined && error !== null; error = Object(error).cause) {
    const names = Reflect.ownKeys(Object(error));
    sinks.push(
      inspect(error, { ...whole, getters: true }),
      inspect(error, { ...whole, getters: true, customInspect: false }),
      JSON.stringify(error) ?? '',
      JSON.stringify(error, names.map(String)) ?? '',
      `${Object(error)}`,
      String(Object(error).stack),
      ...names.map((name) => String(Object(error)[name])),
    );
  }
  return sinks.join('\n');
}

/** Spellings of a key, or of a part of it, and other secrets in anything that a logger could print of a value. */
export function leaksIn(value: unknown, key: Uint8Array, others: readonly string[] = []): string[] {
  const text = everySinkOf(value);
  // Includes parts at every offset of a base64 triple, because a truncated text still reveals part of a key.
  const parts = [0, 1, 2, 16, 32, 48].map((from) => key.subarray(from, from + 16)).filter((part) => part.length === 16);
  // Without its last characters, which depend on the following bytes if a part is in the middle of a base64 text.
  const spellings = parts.flatMap(spellingsOf).map((spelling) => spelling.replace(/=+$/, '').slice(0, -2));
  return [...spellings, ...others].filter((secret) => text.includes(secret));
}

/** The error of a call that must fail. */
export async function rejectionOf(call: Promise<unknown>): Promise<unknown> {
  try {
    await call;
  } catch (error) {
    return error;
  }
  throw new Error('it was expected to fail');
}
