import { describe, expect, test } from 'vitest';
import { createRequestStateCodec } from '../../src/index.ts';
import { clockAt } from '../support/exchange.ts';
import { typescriptVectors } from '../support/vectors.ts';

const { keys, mints, vectors, construction } = typescriptVectors;
const ctx = Object.create(null);

function keyOf(name: string): Uint8Array | string {
  const key = keys.find((candidate) => candidate.name === name);
  if (key === undefined) throw new Error(`no key ${name} in the vectors`);
  return key.text ?? Buffer.from(key.hex, 'hex');
}

function codecOf({ key, bind, nowMs }: { key: string; bind: string | null; nowMs: number }, ttlSeconds = 600) {
  const clock = clockAt(nowMs);
  return createRequestStateCodec({
    key: keyOf(key),
    ttlSeconds,
    clock,
    ...(bind === null ? {} : { bind: () => bind }),
  });
}

type Vector = (typeof vectors)[number];

/** The possible results of a vector. */
function allowedBy(vector: Vector): readonly object[] {
  const anyRefusal = ['malformed', 'mac', 'expired', 'bind'].map((reason) => ({ reason }));
  if (vector.expect === 'accept') {
    const accepted = { payload: vector.payloadAbsent === true ? undefined : vector.payload };
    return vector.lenient === true ? [accepted, ...anyRefusal] : [accepted];
  }
  // A token over 256 KiB is refused unread, with one word.
  const reason = vector.class === 'huge' ? 'malformed' : (vector.reason ?? null);
  return vector.reasonMayDiffer === true || reason === null ? anyRefusal : [{ reason }];
}

describe('vectors of createRequestStateCodec in the TypeScript SDK 2.4.0', () => {
  test('the file has as many vectors as its README states', () => {
    expect([mints.length, vectors.length, construction.length]).toEqual([104, 566, 10]);
  });

  test.each(mints)('$name is minted byte for byte', async (mint) => {
    const payload = mint.payloadAbsent === true ? undefined : mint.payload;
    expect(await codecOf(mint, mint.ttlSeconds).mint(payload, ctx)).toBe(mint.token);
  });

  test.each(vectors)('the result of verifying the token of the vector $name is $expect', async (vector) => {
    const token = vector.token ?? (vector.tokenPieces ?? []).map(([text, n]) => text.repeat(n)).join('');
    const verified = codecOf(vector)
      .verify(token, ctx)
      .then(
        (payload) => ({ payload }),
        (error: Error) => ({ reason: error.message }),
      );
    expect(allowedBy(vector)).toContainEqual(await verified);
  });

  test.each(construction)('$name: the options are rejected', async ({ options, error, message }) => {
    const { key, ttlSeconds, bind, mint } = options;
    const given: unknown = {
      key:
        typeof key === 'string'
          ? keyOf(key)
          : typeof key === 'number'
            ? key
            : 'text' in key
              ? key.text
              : new Uint8Array(key.bytes),
      ...(ttlSeconds === undefined ? {} : { ttlSeconds: ttlSeconds.startsWith('"') ? '600' : Number(ttlSeconds) }),
      ...(bind === undefined ? {} : { bind: () => bind }),
    };
    const construct: (options: unknown) => ReturnType<typeof createRequestStateCodec> = (o) =>
      Reflect.apply(createRequestStateCodec, undefined, [o]);
    const payload = mint === '1n' ? 1n : 1;
    const thrown: unknown = await (async () => construct(given).mint(payload))().catch((caught: unknown) => caught);
    expect(thrown).toMatchObject({ name: error, message });
  });
});
