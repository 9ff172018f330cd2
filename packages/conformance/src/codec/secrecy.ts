import type { RequestStateCodec } from '@sealring/core';
import { text } from '../bytes.ts';
import { expectThat, NotApplicable } from '../requirement.ts';
import { encodings } from '../secrets.ts';
import { LONGEST_PAYLOAD } from './target.ts';
import { answerOf, BUDGET_MS, type CodecChecks, type CodecTrial, decodings } from './trial.ts';

const MANY_SEALS = 10_000;
/** Time limit for a slow codec, in milliseconds. */
export const SEALING_MS = 4_000;
/** Fewer places than this can agree among four tokens by chance: random digits agree in one of a thousand places. */
const FEW_BYTES = 8;
/** Seals of equal-length payloads, after which some token lengths coincide unless they depend on the content. */
const SEALS_OF_A_LENGTH = 20;
const WINDOW = 16;
/** A quarter of the repetitions that a payload of 1 024 bytes would reveal. */
const MOST_REPEATS = 256;

export const SECRECY_CHECKS: CodecChecks = {
  'CODEC-REPEATS': async (trial) => {
    confidential(trial);
    const codec = await trial.create();
    const payload = trial.text('state');
    // Neither a constant token nor a token that changes every second counts as a repetition.
    const seen = new Set<string>();
    let last = '';
    const until = performance.now() + SEALING_MS;
    for (let i = 1; i <= MANY_SEALS && performance.now() < until; i++) {
      const token = trial.seal(codec, payload);
      expectThat(token === last || !seen.has(token), `after ${i} seals of one payload, a token recurred`);
      seen.add(token);
      last = token;
    }
  },
  'CODEC-DISTINCT': async (trial) => {
    confidential(trial);
    const codec = await trial.create();
    for (const payload of [trial.text('state'), trial.bytes(LONG_LENGTH), new Uint8Array(0)]) {
      const [one, two, ...more] = Array.from({ length: 4 }, () => trial.seal(codec, payload));
      expectThat(one !== two, 'two seals of one payload are equal, which reveals that the payloads are equal');
      if (payload.length === 0 || payload.length === LONG_LENGTH) continue;
      // Parts that tokens of other payloads share, such as a key id, do not count.
      const others = Array.from({ length: 2 }, () => trial.seal(codec, trial.bytes(payload.length)));
      const [same, always] = [commonPlaces([one ?? '', two ?? '', ...more]), commonPlaces([one ?? '', ...others])];
      const isShown = same.some(
        (places, form) => places.filter((at) => always[form]?.includes(at) !== true).length >= FEW_BYTES,
      );
      expectThat(!isShown, 'tokens of one payload have parts in common, which reveals that the payloads are equal');
    }
  },
  'CODEC-CONFIDENTIAL': async (trial) => {
    confidential(trial);
    const codec = await trial.create();
    for (const around of [0, 0, 0, 2_000, 20_000, (LONGEST_PAYLOAD - 24) / 2, 100_000]) {
      const canary = text(Buffer.from(trial.random.bytes(12)).toString('hex'));
      if (!trial.fits(canary)) throw new NotApplicable('its payloads are too short to be recognized');
      const payload = Buffer.concat([trial.random.bytes(around), canary, trial.random.bytes(around)]);
      if (!trial.fits(payload)) continue;
      const token = payload.length > LONGEST_PAYLOAD ? answerOf(() => codec.seal(payload)) : trial.seal(codec, payload);
      if (typeof token !== 'string') continue;
      const readable = [token, ...decodings(token).map((bytes) => Buffer.from(bytes).toString('latin1'))];
      const forms = [...encodings(canary), Buffer.from(canary.toReversed()).toString('latin1')];
      const isShown = readable.some((one) => forms.some((form) => one.includes(form)));
      expectThat(!isShown, 'the payload can be read in the token');
    }
  },
  'CODEC-PATTERN': async (trial) => {
    confidential(trial);
    const [short, long] = [1_024, 1_040];
    if (!trial.fits(new Uint8Array(long))) throw new NotApplicable('its payloads are too short to show a pattern');
    const codec = await trial.create();
    noPattern(trial, codec, short, long);
    // Detects a key stream that ends or restarts.
    for (const length of [20_000, LONGEST_PAYLOAD, 200_000]) {
      const token = trial.fits(new Uint8Array(length)) ? answerOf(() => codec.seal(new Uint8Array(length))) : undefined;
      const repeats = typeof token === 'string' && repeatsItself(trial, token);
      expectThat(!repeats, `the token of ${length} zeros repeats itself`);
    }
  },
  'CODEC-NO-COMPRESSION': async (trial) => {
    confidential(trial);
    const codec = await trial.create();
    for (const length of [64, 1_000, 16_000].filter((one) => one <= trial.supports.maxPayloadBytes)) {
      const lengths = (payload: () => Uint8Array): [number, number] => {
        const all = Array.from({ length: SEALS_OF_A_LENGTH }, () => trial.seal(codec, payload()).length);
        return [Math.min(...all), Math.max(...all)];
      };
      const mixed = lengths(() => trial.random.bytes(length));
      for (const [flat, what] of [
        [lengths(() => new Uint8Array(length)), 'equal bytes'],
        [lengths(() => trial.random.bytes(length).map((byte) => 0x30 + (byte % 10))), 'digits'],
        [lengths(() => trial.random.bytes(length).map((byte) => 0x61 + (byte % 26))), 'letters'],
      ] as const) {
        // Random padding may vary, but must not depend on the content.
        expectThat(
          flat[1] >= mixed[0] && mixed[1] >= flat[0],
          `compression: ${length} ${what} give at most ${flat[1]} characters, random bytes at least ${mixed[0]}`,
        );
      }
    }
  },
};

function noPattern(trial: CodecTrial, codec: RequestStateCodec, short: number, long: number): void {
  const repeats = (...payloads: Uint8Array[]): number => repetitions(payloads.map((one) => trial.seal(codec, one)));
  // Repetitions that do not depend on the payload: a header, outer padding.
  const always = repeats(trial.random.bytes(short), trial.random.bytes(long));
  const zeros = repeats(new Uint8Array(short), new Uint8Array(long)) - always;
  expectThat(zeros <= MOST_REPEATS, `the tokens of ${short} and ${long} zeros repeat in ${zeros} places`);
  const head = trial.random.bytes(short - WINDOW);
  const [one, two] = [WINDOW, 2 * WINDOW].map((length) => Buffer.concat([head, trial.random.bytes(length)]));
  const shared = repeats(one ?? head, two ?? head) - always;
  expectThat(shared <= MOST_REPEATS, `tokens of payloads with a common beginning agree in ${shared} places`);
}

/** Whether most pieces of a long token occur in it twice. */
function repeatsItself(trial: CodecTrial, token: string): boolean {
  return decodings(token).some((decoded) => {
    const bytes = Buffer.from(decoded);
    // A shorter decoding has dropped characters.
    if (2 * bytes.length < token.length) return false;
    const found = Array.from({ length: WINDOW }, () => {
      const at = trial.random.below(bytes.length >> 1);
      return bytes.includes(bytes.subarray(at, at + WINDOW), at + 1);
    });
    return found.filter(Boolean).length > WINDOW / 2;
  });
}

export function confidential(trial: CodecTrial): void {
  if (!trial.supports.confidentiality) throw new NotApplicable('supports.confidentiality is false');
}

function repetitions(tokens: readonly string[]): number {
  const forms = tokens.map((token) => decodings(token));
  const counts = (forms[0] ?? []).map((_, form) => {
    const seen = new Set<string>();
    let again = 0;
    for (const bytes of forms.map((one) => Buffer.from(one[form] ?? []))) {
      for (let at = 0; at + WINDOW <= bytes.length; at++) {
        const piece = bytes.toString('latin1', at, at + WINDOW);
        if (seen.has(piece)) again += 1;
        seen.add(piece);
      }
    }
    return again;
  });
  return Math.max(0, ...counts);
}

const LONG_LENGTH = 8_192;

/** For each encoding, the places where all tokens have the same byte. */
function commonPlaces(tokens: readonly string[]): readonly (readonly number[])[] {
  const [first = [], ...others] = tokens.map((token) => decodings(token));
  return first.map((bytes, form) =>
    Array.from(bytes.keys()).filter((at) => others.every((other) => other[form]?.[at] === bytes[at])),
  );
}

/** A length that is not a multiple of any block size, and one shorter than a block. */
const LENGTHS: readonly number[] = [61, 13];
const PAIRS = 128;

/**
 * With at least this surplus of matches, a position in the tokens depends on the payload alone. Two codecs seal the same
 * two payloads, each in random order. A position that depends on anything else matches the other payload as often as its
 * own. A surplus of 96 matches in 128 pairs has a probability below 2^-61 at each of several thousand positions.
 */
const MOST_AHEAD = 96;
/** A position that shows the kind of a payload matches its own kind in every pair: by chance, once in 2^72 times. */
const OF_A_KIND = 24;

type Kind = keyof typeof PAYLOAD_OF;

/** Payloads of the same length that a codec may treat differently. */
const PAYLOAD_OF = {
  'random bytes': (bytes: Uint8Array) => bytes,
  'equal bytes': (bytes: Uint8Array) => bytes.fill(bytes[0] ?? 0),
  digits: (bytes: Uint8Array) => bytes.map((byte) => 0x30 + (byte % 10)),
  letters: (bytes: Uint8Array) => bytes.map((byte) => 0x61 + (byte % 26)),
  'letters with accents': (bytes: Uint8Array) =>
    bytes.map((byte, i) => (i + 1 === bytes.length ? 0x2e : i % 2 === 0 ? 0xc3 : 0xa0 + (byte % 26))),
  JSON: (bytes: Uint8Array) =>
    text(
      `{"":"${Buffer.from(bytes)
        .toString('hex')
        .slice(0, bytes.length - 7)}"}`,
    ),
} as const;

const KINDS: readonly Two<Kind>[] = [
  ['JSON', 'letters'],
  ['digits', 'letters'],
  ['letters', 'random bytes'],
  ['letters with accents', 'random bytes'],
  ['equal bytes', 'random bytes'],
];

export const KEYLESS_CHECKS: CodecChecks = {
  'CODEC-KEYLESS': async (trial) => {
    confidential(trial);
    const lengths = LENGTHS.filter((length) => length <= trial.supports.maxPayloadBytes);
    if (lengths.length === 0) throw new NotApplicable('its payloads are too short to be recognized');
    const [codec, stranger] = [await trial.create(), await trial.createStranger()];
    const until = performance.now() + BUDGET_MS;
    const expectNoneTelling = (words: string, count: number, ahead: number, payloads: () => Two<Uint8Array>): void => {
      const pairs = Array.from({ length: count }, () => {
        const both = payloads();
        return { here: sealBoth(trial, codec, both), there: sealBoth(trial, stranger, both) };
      });
      const telling = tellingPlaces(pairs, ahead);
      expectThat(
        telling === 0,
        `${telling} positions in a token depend on its payload alone, not on any key (${words})`,
      );
    };
    for (const [i, length] of lengths.entries()) {
      if (i > 0 && performance.now() > until) break;
      const payloads = (): Two<Uint8Array> => [trial.random.bytes(length), trial.random.bytes(length)];
      expectNoneTelling(`payloads of ${length} bytes`, PAIRS, MOST_AHEAD, payloads);
    }
    const [length = 0] = lengths;
    for (const [one, other] of KINDS) {
      const payloadOf = (kind: Kind): Uint8Array => PAYLOAD_OF[kind](trial.random.bytes(length));
      const payloads = (): Two<Uint8Array> => [payloadOf(one), payloadOf(other)];
      expectNoneTelling(`payloads of ${length} bytes, ${one} and ${other}`, OF_A_KIND, OF_A_KIND, payloads);
    }
  },
};

type Two<T> = readonly [T, T];

interface Pair {
  readonly here: Two<string>;
  readonly there: Two<string>;
}

/** The number of places that depend on the payload alone, in characters or bytes, from the start or the end. */
function tellingPlaces(pairs: readonly Pair[], least: number): number {
  const read = pairs.map(({ here, there }) => [...here, ...there].map((token) => decodings(token)));
  const forms = read[0]?.[0]?.length ?? 0;
  let most = 0;
  for (let form = 0; form < forms; form++) {
    const tokens = read.map((four) => four.map((decoded) => decoded[form] ?? new Uint8Array(0)));
    const places = Math.min(...tokens.flat().map(({ length }) => length));
    for (const fromEnd of [false, true]) {
      let found = 0;
      for (let place = 0; place < places; place++) {
        const ahead = tokens.reduce((sum, four) => sum + Math.sign(sidesAt(four, fromEnd ? -1 - place : place)), 0);
        if (ahead >= least) found += 1;
      }
      most = Math.max(most, found);
    }
  }
  return most;
}

/** The tokens of two payloads, sealed in random order, so that a clock or a counter has no influence. */
function sealBoth(trial: CodecTrial, codec: RequestStateCodec, [one, other]: Two<Uint8Array>): Two<string> {
  if (trial.random.below(256) < 128) return [trial.seal(codec, one), trial.seal(codec, other)];
  const last = trial.seal(codec, other);
  return [trial.seal(codec, one), last];
}

/** How much more often the tokens match at `place` for the same payload than for different payloads. */
function sidesAt(four: readonly Uint8Array[], place: number): number {
  const [a, b, c, d] = four.map((bytes) => bytes.at(place));
  return Number(a === c) + Number(b === d) - Number(a === d) - Number(b === c);
}
