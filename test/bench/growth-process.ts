/**
 * `node --expose-gc growth-process.ts memory <keys> <salts>` prints the bytes that each further key of a ring and each
 * further remembered salt keep in use. `… heap <warm-up> <tokens> <samples>` seals and unseals this many tokens and
 * prints the bytes in use after each part of them, as a JSON array. Bytes are counted on V8's heap and in buffers;
 * memory that OpenSSL holds is not counted.
 */
import { type Clock, createKmsCodec, type KmsCodec } from '@sealring/core';
import { countedServices } from './fleet-costs-counting.ts';
import { type GrownRing, joinRing, ringOf, tokensOfOthers } from './growth-rings.ts';
import { payloadOf } from './payload.ts';
import { medianOf } from './statistics.ts';

const PAYLOAD_BYTES = 358;
/** Salts that a codec remembers: MAX_TOKEN_KEYS of packages/core/src/keys/envelope-key-cache.ts. */
const MOST_SALTS = 10_000;
/** Number of codecs on each ring. */
const CODECS = 20;
const WARM_UP_LOOKS = 50;
const SALT_PAUSE_MS = 2_000;

const { payload } = payloadOf(PAYLOAD_BYTES);
const [, , what, ...given] = process.argv;
const [first = 0, second = 0, third = 0] = given.map(Number);
const result = what === 'memory' ? await memory(first, second) : await heap(first, second, third);
process.stdout.write(JSON.stringify(result));

/** Measures without a pause: Node's own memory for pauses grows for hundreds of them. */
function used(): number {
  // The second collection frees what finalizers hold.
  globalThis.gc?.();
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

async function memory(keys: number, salts: number): Promise<{ readonly perKey: number; readonly perSalt: number }> {
  const rings = [await ringOf(1), await ringOf(keys)] as const;
  const tokens = await tokensOfOthers(rings[0], salts, payload);
  // Everything is compiled, and created once, before the count.
  for (const ring of rings) await (await joinRing(ring)).close();
  used();
  const codecs: KmsCodec[] = [];
  // The median: some other memory of the process may be freed between two readings.
  const join = async (ring: GrownRing): Promise<number> => {
    const kept: number[] = [];
    for (let i = 0; i < CODECS; i++) {
      const before = used();
      codecs.push(await joinRing(ring));
      kept.push(used() - before);
    }
    return medianOf(kept);
  };
  const [ofOne, ofMany] = [await join(rings[0]), await join(rings[1])];
  if (codecs.at(-1)?.health().keys.length !== keys) throw new Error('a key is missing');
  const ofSalts = codecs.slice(0, CODECS).map((codec) => {
    const before = used();
    for (const token of tokens) codec.unseal(token);
    return used() - before;
  });
  const perSalt = medianOf(ofSalts) / salts;
  for (const codec of codecs) await codec.close();
  return { perKey: (ofMany - ofOne) / (keys - 1), perSalt };
}

async function heap(warmUp: number, tokens: number, samples: number): Promise<readonly number[]> {
  let wallMs = Date.now();
  const clock: Clock = { wallMs: () => wallMs, monotonicNs: () => process.hrtime.bigint() };
  const { keyWrapper, ring } = countedServices();
  await using codec = await createKmsCodec({ keyWrapper, ring, clock });
  const run = (count: number): void => {
    for (let i = 0; i < count; i++) {
      if (codec.unseal(codec.seal(payload)).length !== payload.length) throw new Error('a token lost its payload');
    }
  };
  // Fill the cache, so that it does not grow during the count, and then once more, because V8 allocates records for a
  // function only after some calls: the functions that draw and forget a salt run once in a million tokens, so this
  // would happen during the count.
  for (let i = 0; i < 2 * MOST_SALTS; i++) {
    // A pause of the clock may mean that the machine was cloned: the next token has another salt.
    wallMs += i % 2 === 0 ? SALT_PAUSE_MS : -SALT_PAUSE_MS;
    run(1);
  }
  // Full before the first sample, and sampled often enough that the measurement itself does not grow.
  const sampled = new Float64Array(samples);
  for (let i = 0; i < WARM_UP_LOOKS; i++) {
    run(warmUp / WARM_UP_LOOKS);
    used();
  }
  for (let i = 0; i < samples; i++) {
    run(tokens / samples);
    sampled[i] = used();
  }
  return Array.from(sampled);
}
