import type { RequestStateCodec } from '@sealring/core';
import { expectThat, NotApplicable } from '../requirement.ts';
import type { CodecChecks } from './trial.ts';

/** Tag length of AES-GCM and ChaCha20-Poly1305, in bytes. */
const TAG_BYTES = 16;
const TRIALS = 5;
const SAMPLES = 200;
/** Duration of a sample, in milliseconds. Clocks are too coarse for a single call. */
const SAMPLE_MS = 0.05;
const SAMPLING_MS = 4_000;
/**
 * The medians of alternating samples of the same work differ by less than this: by a few percent, even on busy
 * machines.
 */
const TELLING_RATIO = 1.25;
/** A comparison that ends at the first difference takes half of its time for a byte in the middle. */
const MIDDLE = TAG_BYTES / 2 + 1;
/** No such comparison takes so many times as long for the last byte, if it takes as long for one in the middle. */
const UNRELATED_RATIO = 4;

export const TIMING_CHECKS: CodecChecks = {
  'CODEC-TIMING': async (trial) => {
    const codec = await trial.create();
    const token = trial.seal(codec, trial.text('state of a tool'));
    // Not the last byte: a change of the last byte of a signature may put a number out of range, which fails early.
    const [first, middle, last] = [TAG_BYTES, MIDDLE, 2].map((fromEnd) => withByteChanged(token, fromEnd));
    if (first === undefined || middle === undefined || last === undefined)
      throw new NotApplicable('its tokens use an unknown encoding');
    const messages = [first, last].map((one) => {
      const refusal = trial.refused(codec, one, 'a token with a byte of its tag changed');
      return refusal instanceof Error ? refusal.message : '';
    });
    // If the last byte is not part of a tag, as in a JSON token, the two refusals have different causes.
    if (messages[0] !== messages[1]) throw new NotApplicable('its tokens do not end in a tag');
    const batch = batchSize(codec, first);
    // Fewer samples suffice for a slow codec, since overhead is a smaller share of the time.
    const samples = Math.max(
      9,
      Math.min(SAMPLES, Math.floor(SAMPLING_MS / (2 * TRIALS * timeOf(codec, first, batch)))),
    );
    const compare = (one: string): readonly number[] =>
      Array.from({ length: TRIALS }, () => {
        const [a, b]: [number[], number[]] = [[], []];
        for (let sample = 0; sample < samples; sample++) {
          // The order alternates, since the second measurement benefits from warm caches.
          const order = sample % 2 === 0 ? [a, b] : [b, a];
          for (const times of order) times.push(timeOf(codec, times === a ? one : last, batch));
        }
        return median(b) / median(a);
      });
    const ratios = compare(first);
    const shown = ratios.map((ratio) => ratio.toFixed(2)).join(', ');
    const alike = !differ(ratios, TELLING_RATIO);
    // A signature with a number out of range fails early, for example.
    if (differ(ratios, UNRELATED_RATIO) && !differ(compare(middle), TELLING_RATIO)) {
      throw new NotApplicable('its tokens do not end in a tag');
    }
    const words = `refusing a wrong last byte of the tag takes ${shown} times as long as refusing a wrong first byte`;
    expectThat(alike, words);
    return words;
  },
};

/** Whether all ratios are above `most`, or all below its inverse. */
function differ(ratios: readonly number[], most: number): boolean {
  return ratios.every((ratio) => ratio > most) || ratios.every((ratio) => ratio < 1 / most);
}

/** A token of the same length, with one of its encoded bytes changed. */
function withByteChanged(token: string, fromEnd: number): string | undefined {
  for (const encoding of ['hex', 'base64url'] as const) {
    // If a token has several parts, this is the last one.
    const [, head = '', part = ''] = /^(.*[.:~$])?([^.:~$]*)$/.exec(token) ?? [];
    const bytes = Buffer.from(part, encoding);
    if (bytes.length < TAG_BYTES || bytes.toString(encoding) !== part) continue;
    bytes[bytes.length - fromEnd] = (bytes[bytes.length - fromEnd] ?? 0) ^ 0x55;
    return head + bytes.toString(encoding);
  }
  return undefined;
}

function batchSize(codec: RequestStateCodec, token: string): number {
  let batch = 1;
  while (timeOf(codec, token, batch) < SAMPLE_MS && batch < 1_024) batch *= 2;
  return batch;
}

function timeOf(codec: RequestStateCodec, token: string, times: number): number {
  const began = performance.now();
  for (let i = 0; i < times; i++) {
    try {
      codec.unseal(token);
    } catch {
      // The token is refused, as before.
    }
  }
  return performance.now() - began;
}

function median(times: readonly number[]): number {
  return times.toSorted((a, b) => a - b)[times.length >> 1] ?? Number.NaN;
}
