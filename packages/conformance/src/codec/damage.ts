import type { RequestStateCodec } from '@sealring/core';
import { text } from '../bytes.ts';
import { type Check, NotApplicable } from '../requirement.ts';
import { divisions, encodedParts } from './token-parts.ts';
import { type CodecTrial, tokenText } from './trial.ts';

/**
 * Payloads of several lengths, so that the last character of a token has 0, 2 or 4 unused bits. Created for each
 * trial, since a target may modify them.
 */
function payloads(): readonly Uint8Array[] {
  return [
    ...['s', 'st', 'sta', 'state of a tool', '{"order":"A1","cents":4990}'].map(text),
    // These bytes are not UTF-8: a tag computed over decoded text would miss a change in them.
    new Uint8Array(30).fill(0x80),
  ];
}

export async function tokensOf(trial: CodecTrial): Promise<{ codec: RequestStateCodec; tokens: readonly string[] }> {
  const codec = await trial.create();
  return {
    codec,
    tokens: payloads()
      .filter((one) => trial.fits(one))
      .map((payload) => trial.seal(codec, payload)),
  };
}

const LONG_BYTES = 1_500;
const LONG_VARIANTS = 300;

type Variants = (token: string, other: string) => Iterable<readonly [string, string]>;

const DAMAGE: Variants[] = [];

/** Every damaged form of a token, with a description of the damage. */
export function* damagedForms(token: string, other: string): Iterable<readonly [string, string]> {
  for (const variantsOf of DAMAGE) yield* changedForms(variantsOf, token, other);
}

function* changedForms(variantsOf: Variants, token: string, other: string): ReturnType<Variants> {
  for (const [variant, what] of variantsOf(token, other))
    if (variant !== token && variant !== other) yield [variant, what];
}

/** A check that every variant of every token is refused, followed by the check `also`. */
export function refuses(variantsOf: Variants, also?: (trial: CodecTrial) => Promise<void>): Check<CodecTrial> {
  DAMAGE.push(variantsOf);
  return async (trial) => {
    const { codec, tokens } = await tokensOf(trial);
    // A cached token must not make a similar one valid.
    for (const token of tokens) trial.outcome(codec, token);
    const variants = tokens.flatMap((token, i) => {
      const other = tokens[(i + 1) % tokens.length] ?? token;
      return [...variantsOf(token, other)].map(([variant, what]) => ({ token, variant, what }));
    });
    variants.push(...longVariants(trial, codec, variantsOf));
    const changed = variants.filter(({ variant }) => !tokens.includes(variant));
    if (changed.length === 0) throw new NotApplicable('its tokens have no such variant');
    const any = (): unknown => trial.outcome(codec, trial.random.pick(changed).variant);
    for (const { token, variant, what } of trial.sample(changed, any)) {
      trial.refused(codec, variant, `${tokenText(token)} ${what}`);
    }
    await also?.(trial);
  };
}

/** A sample of the variants of a long token, since a decoder may treat long tokens differently. */
function longVariants(trial: CodecTrial, codec: RequestStateCodec, variantsOf: Variants) {
  const [token, other] = [trial.seal(codec, trial.bytes(LONG_BYTES)), trial.seal(codec, trial.bytes(LONG_BYTES))];
  const all = [...changedForms(variantsOf, token, other)];
  return trial.spread(all, LONG_VARIANTS).map(([variant, what]) => ({ token, variant, what }));
}

/** Maximum number of parts of a token that is divided into chunks. */
const MOST_PARTS = 64;
/** Sizes of a chunk's payload and of its overhead: nonces, tags, lengths. */
const CHUNKS: readonly number[] = [256, 512, 1_000, 1_024, 2_048, 4_096];
const CHUNK_EXTRA: readonly number[] = [0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 56, 60, 64];

/** Sizes of chunks that only long payloads have more than one of. */
const LONG_CHUNKS: readonly number[] = [8_192, 16_384, 32_768];

/** A token cut after its first long chunk, at every possible offset. */
export function longBeginnings(token: string): readonly (() => string)[] {
  return encodedParts(token).flatMap(({ bytes, put }) => {
    const most = 64 + Math.max(...CHUNK_EXTRA);
    const ends = LONG_CHUNKS.flatMap((size) => Array.from({ length: most + 1 }, (_, more) => size + more));
    return ends.filter((end) => end < bytes.length).map((end) => () => put(bytes.subarray(0, end)));
  });
}

/** A long token cut after a chunk, without a chunk, or with two chunks swapped or replaced, at every possible offset. */
export function chunkings(token: string, other: string): readonly (() => string)[] {
  const others = encodedParts(other);
  const ofText = divisions(token)
    .filter(({ parts }) => parts.length <= MOST_PARTS)
    .flatMap(({ parts, separator }) =>
      parts.flatMap((part, i) => {
        const rest = parts.toSpliced(i, 1);
        const forms = [parts.slice(0, i), rest, [part, ...rest], rest.toSpliced(i + 1, 0, part)];
        return forms.map((form) => form.join(separator));
      }),
    )
    .filter((form) => form !== token);
  const ofBytes = encodedParts(token).flatMap(({ bytes, put }, part) => {
    const made: (() => string)[] = [];
    const ends = new Set<number>();
    for (const piece of new Set(CHUNKS.flatMap((size) => CHUNK_EXTRA.map((more) => size + more)))) {
      for (let start = 0; start <= 64 && start + 2 * piece <= bytes.length; start++) {
        const [one, two] = [start + piece, start + 2 * piece];
        ends.add(one);
        const [head, tail] = [bytes.subarray(0, start), bytes.subarray(two)];
        const [first, second] = [bytes.subarray(start, one), bytes.subarray(one, two)];
        made.push(() => put(Buffer.concat([head, second, tail])));
        const theirs = others[part]?.bytes.subarray(one, two);
        if (theirs !== undefined) made.push(() => put(Buffer.concat([head, first, theirs, tail])));
        if (start % 4 === 1) made.push(() => put(Buffer.concat([head, second, first, tail])));
      }
    }
    return [...made, ...Array.from(ends, (end) => () => put(bytes.subarray(0, end)))];
  });
  return [...ofText.map((form) => () => form), ...ofBytes];
}
