import { createCipheriv, createDecipheriv, createSecretKey, randomBytes } from 'node:crypto';
import { createKmsCodec, localKeyWrapper, memoryRing } from '@sealring/core';

export interface BenchOptions {
  readonly bytes: number;
  readonly format: 'sealring' | 'python';
  readonly hedge: boolean;
  readonly rounds: number;
}

/** One operation beside the bare cipher, over all rounds. */
interface BenchResult {
  readonly operation: 'seal' | 'unseal';
  /** How many times the bare cipher it costs, in batches of one round: the median, and the middle half. */
  readonly times: { readonly median: number; readonly low: number; readonly high: number };
  /** Microseconds each, medians; of this machine and this moment only. */
  readonly microseconds: { readonly sealring: number; readonly bare: number };
}

export interface BenchReport {
  readonly tokenCharacters: number;
  readonly results: readonly BenchResult[];
}

/** Long enough for the clock to count, short enough for a neighbour to disturb both alike. */
const BATCH_MS = 2;
const WARM_UP_ROUNDS = 10;
const ALGORITHM = 'aes-256-gcm';

/**
 * Seals and unseals beside AES-256-GCM of `node:crypto` with a random nonce and base64url: what anybody would write.
 * In turns, so that what slows the machine down slows down both. No KMS and no store: neither is asked for a token.
 */
export async function measure({ bytes, format, hedge, rounds }: BenchOptions): Promise<BenchReport> {
  const payload = randomBytes(bytes);
  await using codec = await createKmsCodec({
    keyWrapper: localKeyWrapper({ masterKey: randomBytes(32) }),
    ring: memoryRing(),
    format,
    hedge,
    maxTokenLength: 16 * 1024 * 1024,
  });
  const bare = bareCipher();
  const [ours, theirs] = [codec.seal(payload), bare.seal(payload)];
  const results = [
    compare(
      'seal',
      () => codec.seal(payload),
      () => bare.seal(payload),
      rounds,
    ),
    compare(
      'unseal',
      () => codec.unseal(ours),
      () => bare.unseal(theirs),
      rounds,
    ),
  ];
  return { tokenCharacters: ours.length, results };
}

function bareCipher(): { seal(payload: Uint8Array): string; unseal(token: string): Uint8Array } {
  const key = createSecretKey(randomBytes(32));
  return {
    seal(payload) {
      const nonce = randomBytes(12);
      const cipher = createCipheriv(ALGORITHM, key, nonce);
      const sealed = cipher.update(payload);
      cipher.final();
      return Buffer.concat([nonce, sealed, cipher.getAuthTag()]).toString('base64url');
    },
    unseal(token) {
      const raw = Buffer.from(token, 'base64url');
      const decipher = createDecipheriv(ALGORITHM, key, raw.subarray(0, 12), { authTagLength: 16 });
      decipher.setAuthTag(raw.subarray(-16));
      const payload = decipher.update(raw.subarray(12, -16));
      decipher.final();
      return payload;
    },
  };
}

function compare(
  operation: BenchResult['operation'],
  ours: () => unknown,
  bare: () => unknown,
  rounds: number,
): BenchResult {
  const [oursCount, bareCount] = [batchSize(ours), batchSize(bare)];
  const samples = Array.from({ length: WARM_UP_ROUNDS + rounds }, () => ({
    ours: microsecondsEach(ours, oursCount),
    bare: microsecondsEach(bare, bareCount),
  })).slice(WARM_UP_ROUNDS);
  const ratios = samples.map((sample) => sample.ours / sample.bare);
  return {
    operation,
    times: { median: quantile(ratios, 0.5), low: quantile(ratios, 0.25), high: quantile(ratios, 0.75) },
    microseconds: {
      sealring: quantile(
        samples.map((sample) => sample.ours),
        0.5,
      ),
      bare: quantile(
        samples.map((sample) => sample.bare),
        0.5,
      ),
    },
  };
}

function batchSize(run: () => unknown): number {
  for (let count = 1; ; count *= 2) if (microsecondsEach(run, count) * count >= BATCH_MS * 1_000) return count;
}

function microsecondsEach(run: () => unknown, count: number): number {
  const began = process.hrtime.bigint();
  for (let turn = 0; turn < count; turn++) run();
  return Number(process.hrtime.bigint() - began) / 1_000 / count;
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}
