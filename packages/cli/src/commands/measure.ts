import { randomBytes } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { createKmsCodec, localKeyWrapper, memoryRing } from '@sealring/core';

/** Options of {@link measure}. */
export interface MeasureOptions {
  readonly bytes: number;
  readonly format: 'sealring' | 'python';
  readonly hedge: boolean;
  readonly rounds: number;
}

/** How long one operation blocks the event loop, in microseconds. */
interface Timing {
  readonly median: number;
  readonly p99: number;
}

/** The result of {@link measure}. */
export interface Measurement {
  readonly tokenCharacters: number;
  readonly seal: Timing;
  readonly unseal: Timing;
}

/** Unmeasured rounds at the start, in which the compiler optimizes the code. */
const WARM_UP_ROUNDS = 500;
/** How long a batch of rounds blocks the event loop, in milliseconds. Between batches, progress can be printed. */
const BATCH_MS = 100;
/** The longest state, in bytes, whose token in the Python format is short enough for every server. */
export const MAX_PYTHON_BYTES = 196_573;

/** Seals and unseals a token alternately, and measures each call. */
export async function measure({ bytes, format, hedge, rounds }: MeasureOptions): Promise<Measurement> {
  const payload = randomBytes(bytes);
  await using codec = await createKmsCodec({
    keyWrapper: localKeyWrapper({ masterKey: randomBytes(32) }),
    ring: memoryRing(),
    format,
    hedge,
    maxTokenLength: 16 * 1024 * 1024,
  });
  const times = { seal: [] as number[], unseal: [] as number[] };
  let tokenCharacters = 0;
  let batchEnds = performance.now();
  for (let round = -WARM_UP_ROUNDS; round < rounds; round++) {
    if (performance.now() >= batchEnds) {
      await setImmediate();
      batchEnds = performance.now() + BATCH_MS;
    }
    const began = process.hrtime.bigint();
    const token = codec.seal(payload);
    const sealed = process.hrtime.bigint();
    codec.unseal(token);
    const unsealed = process.hrtime.bigint();
    if (round < 0) continue;
    tokenCharacters = token.length;
    times.seal.push(Number(sealed - began) / 1_000);
    times.unseal.push(Number(unsealed - sealed) / 1_000);
  }
  return { tokenCharacters, seal: timingOf(times.seal), unseal: timingOf(times.unseal) };
}

function timingOf(microseconds: readonly number[]): Timing {
  const sorted = microseconds.toSorted((a, b) => a - b);
  const below = (share: number): number => sorted[Math.floor(share * (sorted.length - 1))] ?? Number.NaN;
  return { median: below(0.5), p99: below(0.99) };
}
