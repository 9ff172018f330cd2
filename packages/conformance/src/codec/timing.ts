import type { RequestStateCodec } from '@sealring/core';
import { type CheckedRequirement, expectThat, NotApplicable, should } from '../requirement.ts';
import { KIT } from './sources.ts';
import type { CodecTrial } from './trial.ts';

/** Bytes of the tags in use: of AES-GCM and of ChaCha20-Poly1305. */
const TAG_BYTES = 16;
const TRIALS = 5;
const SAMPLES = 200;
/** A sample lasts about so long: clocks are too coarse for a single call. */
const SAMPLE_MS = 0.05;
/** Medians of the same work differ by a few in a hundred, on busy machines too: they are taken by turns. */
const SAMPLING_MS = 4_000;
const TELLING_RATIO = 1.25;

/** How long a refusal takes. */
export const TIMING_CHECKS: readonly CheckedRequirement<CodecTrial>[] = [
  should(
    'CODEC-TIMING',
    'How long a refusal takes does not tell which byte of the tag is wrong.',
    KIT,
    async (trial) => {
      const codec = await trial.create();
      const token = trial.seal(codec, trial.text('state of a tool'));
      const [first, last] = [TAG_BYTES, 1].map((fromEnd) => withByteChanged(token, fromEnd));
      if (first === undefined || last === undefined)
        throw new NotApplicable('its tokens are in no encoding known here');
      const messages = [first, last].map((one) => {
        const refusal = trial.refusal(codec, one, 'a token with a byte of its tag changed');
        return refusal instanceof Error ? refusal.message : '';
      });
      // Where the last byte is no part of a tag, as in a token that is JSON, the two are refused by different things.
      if (messages[0] !== messages[1]) throw new NotApplicable('its tokens do not end in a tag');
      const batch = batchSize(codec, first);
      // Of a slow codec fewer samples tell as much: the share of anything else is smaller.
      const samples = Math.max(
        9,
        Math.min(SAMPLES, Math.floor(SAMPLING_MS / (2 * TRIALS * timeOf(codec, first, batch)))),
      );
      const ratios: number[] = [];
      for (let i = 0; i < TRIALS; i++) {
        const [a, b]: [number[], number[]] = [[], []];
        for (let sample = 0; sample < samples; sample++) {
          // Whose turn is first changes: what comes second finds warm caches.
          const order = sample % 2 === 0 ? [a, b] : [b, a];
          for (const times of order) times.push(timeOf(codec, times === a ? first : last, batch));
        }
        ratios.push(median(b) / median(a));
      }
      const shown = ratios.map((ratio) => ratio.toFixed(2)).join(', ');
      const alike =
        !ratios.every((ratio) => ratio > TELLING_RATIO) && !ratios.every((ratio) => ratio < 1 / TELLING_RATIO);
      expectThat(alike, `a wrong last byte of the tag takes ${shown} times as long as a wrong first one`);
      return `a wrong last byte of the tag takes ${shown} times as long as a wrong first one`;
    },
  ),
];

/** A token of the same length, with one byte of what it encodes changed. */
function withByteChanged(token: string, fromEnd: number): string | undefined {
  for (const encoding of ['hex', 'base64url'] as const) {
    // The last part of a token that has several.
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
      // Refused, as it was before.
    }
  }
  return performance.now() - began;
}

function median(times: readonly number[]): number {
  return times.toSorted((a, b) => a - b)[times.length >> 1] ?? Number.NaN;
}
