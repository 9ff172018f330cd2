import { types } from 'node:util';
import { expectThat } from '../requirement.ts';
import { partsReplaced } from './token-parts.ts';
import { type CodecChecks, tokenText } from './trial.ts';

const HUGE = 10_000_000;
/** Ten megabytes are copied and decoded in 100 ms; the rest is slack for a slow machine and a pipe. */
const HUGE_MS = 10_000;
const QUICK_MS = 2_000;

/** Short texts that are not tokens: member names, and characters that break decoders. */
export const GARBAGE: readonly string[] = '__proto__ constructor toString hasOwnProperty then null undefined NaN {} []'
  .split(' ')
  .concat('', '.', '..', '...', 'a', 'A', '-', '_', '=', '%', '%zz', '"', '0', '\0', 'é', '\ud800', '🙂');

export const JUNK_CHECKS: CodecChecks = {
  'CODEC-GARBAGE': async (trial) => {
    const codec = await trial.create();
    const token = trial.seal(codec, trial.text('state'));
    const named = Array.from(partsReplaced(token, GARBAGE), ([form]) => form);
    const shaped = [...GARBAGE.map((one) => `${token.slice(0, 4)}${one}`), ...named.filter((one) => one !== token)];
    const random = Array.from({ length: 200 }, () => {
      const bytes = trial.random.bytes(trial.random.below(200));
      return Buffer.from(bytes).toString(trial.random.pick(['base64url', 'hex', 'latin1', 'utf8']));
    });
    for (const garbage of [...GARBAGE, ...shaped, ...random, 'A'.repeat(100_000)]) {
      trial.refused(codec, garbage, tokenText(garbage));
    }
  },
  'CODEC-HUGE': async (trial) => {
    const codec = await trial.create();
    const token = trial.seal(codec, trial.text('state'));
    // The lengths increase, so that quadratic time is detected before a check takes too long.
    for (const length of [22, 24, 26, 28, 30, 1_000, 10_000, 100_000, 1_000_000, HUGE]) {
      for (const huge of hugeTexts(token, length)) {
        const began = performance.now();
        trial.refused(codec, huge, `${huge.length} characters`);
        const tookMs = Math.round(performance.now() - began);
        expectThat(tookMs <= HUGE_MS, `${huge.length} characters were refused after ${tookMs} ms`);
      }
    }
  },
  'CODEC-HUGE-QUICK': async (trial) => {
    const codec = await trial.create();
    const token = trial.seal(codec, trial.text('state'));
    for (const huge of [...hugeTexts(token, HUGE), ' '.repeat(HUGE), 'é'.repeat(HUGE / 2)]) {
      const times: number[] = [];
      // The machine may be busy during one try.
      for (let i = 0; i < 3 && !times.some((ms) => ms <= QUICK_MS); i++) {
        const began = performance.now();
        trial.outcome(codec, huge);
        times.push(Math.round(performance.now() - began));
      }
      const least = Math.min(...times);
      expectThat(least <= QUICK_MS, `${huge.length} characters were refused after ${least} ms`);
    }
  },
  'CODEC-NOT-TEXT': async (trial) => {
    const codec = await trial.create();
    for (const [what, value] of notText(trial.seal(codec, trial.text('state')))) trial.refused(codec, value, what);
  },
  'CODEC-NOT-TEXT-CLASS': async (trial) => {
    const codec = await trial.create();
    for (const [what, value] of notText(trial.seal(codec, trial.text('state')))) {
      const refusal = trial.refused(codec, value, what);
      // Many libraries throw a TypeError for an argument of the wrong type.
      if (!(types.isNativeError(refusal) && refusal.name === 'TypeError')) trial.expectRefusalClass(refusal, what);
    }
  },
};

/** Long texts that resemble a token. */
export function hugeTexts(token: string, length: number): readonly string[] {
  const prefix = token.slice(0, 8);
  const separators = new Set(['.', ...(token.match(/[^A-Za-z0-9]/g) ?? [])]);
  // An error at the end makes a regular expression backtrack.
  return [
    'A'.repeat(length),
    `${'A'.repeat(length)}!`,
    `${prefix}${'A'.repeat(length)}`,
    `${'='.repeat(length)}A`,
    `${prefix}${'='.repeat(length)}A`,
    `${prefix}${' '.repeat(length)}A`,
    ...Array.from(separators, (separator) => `${prefix}${separator.repeat(length / 10)}`),
  ];
}

function notText(token: string): readonly (readonly [string, unknown])[] {
  return [
    ['undefined', undefined],
    ['null', null],
    ['a number', 7],
    ['an object', {}],
    ['an array that contains a token', [token]],
    ['the bytes of a token', new TextEncoder().encode(token)],
    ['a Buffer that contains a token', Buffer.from(token)],
  ];
}
