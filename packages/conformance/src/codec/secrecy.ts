import type { RequestStateCodec } from '@sealring/core';
import { text, xor } from '../bytes.ts';
import { expectThat, NotApplicable } from '../requirement.ts';
import { encodings } from '../secrets.ts';
import { firstSeals, readFirstTokens } from './processes.ts';
import { LONGEST_PAYLOAD } from './target.ts';
import { answerOf, BUDGET_MS, type CodecChecks, type CodecTrial, decodings } from './trial.ts';

const MANY_SEALS = 10_000;
/** Time limit for a slow codec, milliseconds. */
const SEALING_MS = 4_000;
/** Fewer common places among four tokens are chance: digits agree in one of a thousand places. */
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
    // A constant token is not a repetition, nor is one that changes every second.
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
      // Tokens of other payloads also have the parts common to all, such as a key id.
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
      if (!trial.fits(canary)) throw new NotApplicable('its payloads are too short to be recognised');
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
    // A shorter decoding lost nothing.
    if (2 * bytes.length < token.length) return false;
    const found = Array.from({ length: WINDOW }, () => {
      const at = trial.random.below(bytes.length >> 1);
      return bytes.includes(bytes.subarray(at, at + WINDOW), at + 1);
    });
    return found.filter(Boolean).length > WINDOW / 2;
  });
}

function confidential(trial: CodecTrial): void {
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

/** A length that is not a multiple of any block size, and one shorter than a block. */
const LENGTHS: readonly number[] = [61, 13];
const LONG_LENGTH = 8_192;
const PAIRS = 128;
/**
 * Two codecs seal the same two payloads, each in random order. If a place depends on anything but the
 * payload, it matches the other payload as often as its own. A surplus of 96 matches
 * in 128 pairs has a probability below 2^-61 at each of several thousand places.
 */
const MOST_AHEAD = 96;

export const KEYLESS_CHECKS: CodecChecks = {
  'CODEC-KEYLESS': async (trial) => {
    confidential(trial);
    const lengths = LENGTHS.filter((length) => length <= trial.supports.maxPayloadBytes);
    if (lengths.length === 0) throw new NotApplicable('its payloads are too short to be recognised');
    const [codec, stranger] = [await trial.create(), await trial.createStranger()];
    const until = performance.now() + BUDGET_MS;
    for (const [i, length] of lengths.entries()) {
      if (i > 0 && performance.now() > until) return;
      const pairs = Array.from({ length: PAIRS }, () => {
        const payloads = [trial.random.bytes(length), trial.random.bytes(length)] as const;
        return { here: sealBoth(trial, codec, payloads), there: sealBoth(trial, stranger, payloads) };
      });
      const telling = tellingPlaces(pairs);
      expectThat(telling === 0, `${telling} places of a token depend on its ${length} bytes alone, without any key`);
    }
  },
};

type Two = readonly [string, string];

interface Pair {
  readonly here: Two;
  readonly there: Two;
}

/** The number of such places, in characters or bytes, counted from the start or the end. */
function tellingPlaces(pairs: readonly Pair[]): number {
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
        if (ahead >= MOST_AHEAD) found += 1;
      }
      most = Math.max(most, found);
    }
  }
  return most;
}

/** The tokens of two payloads, sealed in random order, so that a clock or a counter has no influence. */
function sealBoth(trial: CodecTrial, codec: RequestStateCodec, [one, other]: readonly [Uint8Array, Uint8Array]): Two {
  if (trial.random.below(256) < 128) return [trial.seal(codec, one), trial.seal(codec, other)];
  const last = trial.seal(codec, other);
  return [trial.seal(codec, one), last];
}

/** For each encoding, the places where all tokens have the same byte. */
function commonPlaces(tokens: readonly string[]): readonly (readonly number[])[] {
  const [first = [], ...others] = tokens.map((token) => decodings(token));
  return first.map((bytes, form) =>
    Array.from(bytes.keys()).filter((at) => others.every((other) => other[form]?.[at] === bytes[at])),
  );
}

/** How much more often a place matches that of the same payload than that of the other. */
function sidesAt(four: readonly Uint8Array[], place: number): number {
  const [a, b, c, d] = four.map((bytes) => bytes.at(place));
  return Number(a === c) + Number(b === d) - Number(a === d) - Number(b === c);
}

/** Minimum length of payloads, bytes: among many pairs, 96 bits agree by chance once in 2^61. */
export const LEAST_BYTES = 12;

/** A payload of at least {@link LEAST_BYTES}, and its token. */
export interface Sealed {
  readonly payload: Uint8Array;
  readonly token: string;
}

/** Bits of an integer that a double represents exactly. */
const HIGH = 2 ** 21;

/**
 * Whether two of many tokens use the same key stream: then the XOR of token and payload is the
 * same for both at some offset. Payloads are random and of equal length.
 */
export function sharedStream(sealed: readonly Sealed[]): boolean {
  const all = sealed.map(({ payload, token }) => ({ payload: Buffer.from(payload), forms: decodings(token) }));
  return formsOf(sealed[0]).some((form) => {
    const pairs = all.map(({ payload, forms }) => ({ payload, bytes: Buffer.from(forms[form] ?? []) }));
    const streamOf = (one: number, at: number): Buffer =>
      xor(pairs[one]?.payload ?? Buffer.of(), pairs[one]?.bytes.subarray(at) ?? Buffer.of());
    const most = Math.max(...new Set(pairs.map(({ payload, bytes }) => bytes.length - payload.length)));
    for (let at = 0; at <= most; at++) {
      // Numbers as keys take a tenth of the time of bytes.
      const seen = new Map<number, number>();
      for (const [i, { payload, bytes }] of pairs.entries()) {
        if (at + payload.length > bytes.length) continue;
        const high = (bytes.readUInt32BE(at) ^ payload.readUInt32BE(0)) >>> 0;
        const stream = high * HIGH + ((bytes.readUInt32BE(at + 4) ^ payload.readUInt32BE(4)) >>> 11);
        const other = seen.get(stream);
        if (other !== undefined && streamOf(other, at).equals(streamOf(i, at))) return true;
        seen.set(stream, i);
      }
    }
    return false;
  });
}

/** The decodings of a token that are long enough to contain its payload, without duplicates. */
function formsOf({ payload, token }: Sealed = { payload: Buffer.of(), token: '' }): readonly number[] {
  const forms = decodings(token).map((bytes) => Buffer.from(bytes).toString('latin1'));
  // The output of a stream cipher is not plain text.
  return forms.flatMap((form, i) =>
    form.length >= payload.length && forms.indexOf(form) === i && !token.includes(form) ? [i] : [],
  );
}

const STREAM_BYTES = 48;
/** Number of seals of one length, between other calls. */
const IN_TURN = 12;
/** Among this many, a nonce of 24 bits recurs about six times. */
const MANY_PAYLOADS = 14_000;
const MANY_LENGTH = 24;

export const KEY_STREAM_CHECKS: CodecChecks = {
  'CODEC-KEYSTREAM': async (trial) => {
    confidential(trial);
    if (trial.supports.maxPayloadBytes < LEAST_BYTES) {
      throw new NotApplicable('its payloads are too short to be recognised');
    }
    await betweenInstances(trial);
    await betweenPayloads(trial);
    await betweenCalls(trial);
    return betweenProcesses(trial);
  },
};

/** Seals with one instance and with new peers at the same ordinal, which reveal a counter that restarts. */
async function betweenInstances(trial: CodecTrial): Promise<void> {
  const alone = await trial.create();
  const codecs: RequestStateCodec[] = [alone, alone];
  for (let i = 0; i < 4; i++) {
    codecs.push(await (i % 2 === 0 ? trial.create() : trial.createPeerOrSelf()));
  }
  for (let ordinal = 0; ordinal < 3; ordinal++) {
    const sealed = codecs.map((codec) => {
      const payload = trial.bytes(STREAM_BYTES);
      return { payload, token: trial.seal(codec, payload) };
    });
    const what = `two tokens, number ${ordinal + 1} of their codecs,`;
    expectThat(!sharedStream(sealed) && !overlappingStreams(sealed), `${what} share a key stream`);
  }
}

/** Other calls in between, and the beginning, end and length of a payload, must not repeat a nonce. */
async function betweenCalls(trial: CodecTrial): Promise<void> {
  const codec = await trial.create();
  const first = trial.seal(codec, trial.text('state'));
  let last = first;
  const calls: readonly (() => unknown)[] = [
    () => codec.unseal(last),
    () => codec.unseal(first),
    () => codec.unseal(`${last}A`),
    () => codec.seal(new Uint8Array(0)),
    ...(trial.supports.maxPayloadBytes < LONGEST_PAYLOAD
      ? [() => codec.seal(new Uint8Array(trial.supports.maxPayloadBytes + 1))]
      : []),
  ];
  const fixed = trial.random.bytes(32);
  for (const [length, head, tail] of [
    ...[1, 4, STREAM_BYTES, 20_000, LONGEST_PAYLOAD].map((one) => [one, [], []] as const),
    [STREAM_BYTES, fixed, []] as const,
    [STREAM_BYTES, [], fixed] as const,
  ]) {
    if (length + head.length + tail.length > trial.supports.maxPayloadBytes) continue;
    const sealed = Array.from({ length: length > STREAM_BYTES ? calls.length : IN_TURN }, (_, i): Sealed => {
      answerOf(calls[i % calls.length] as () => unknown);
      const payload = trial.random.bytes(length);
      last = trial.seal(codec, Buffer.concat([Uint8Array.from(head), payload, Uint8Array.from(tail)]));
      return { payload, token: last };
    });
    const isShared =
      length < LEAST_BYTES
        ? constantStream(sealed)
        : sharedStream(sealed) || (length === STREAM_BYTES && overlappingStreams(sealed));
    expectThat(
      !isShared,
      `two of ${sealed.length} tokens of ${length} bytes, sealed between other calls, share a key stream`,
    );
  }
}

/** Whether a piece of a key stream encrypts two pieces of payloads at any offsets: overlapping counters. */
function overlappingStreams(sealed: readonly Sealed[]): boolean {
  const all = sealed.map(({ payload, token }) => ({ payload, forms: decodings(token) }));
  return formsOf(sealed[0]).some((form) => {
    const most = Math.max(...all.map(({ payload, forms }) => (forms[form]?.length ?? 0) - payload.length));
    return Array.from({ length: Math.max(0, most + 1) }).some((_, at) => {
      const seen = new Set<string>();
      return all.some(({ payload, forms }) => {
        const stream = xor(payload, (forms[form] ?? payload).subarray(at)).toString('latin1');
        return Array.from({ length: Math.max(0, stream.length - LEAST_BYTES + 1) }).some((__, from) => {
          const piece = stream.slice(from, from + LEAST_BYTES);
          return seen.has(piece) || !seen.add(piece);
        });
      });
    });
  });
}

/** Whether all tokens encrypt short payloads with one key stream, since two alone agree by chance. */
function constantStream(sealed: readonly Sealed[]): boolean {
  const all = sealed.map(({ payload, token }) => decodings(token).map((bytes) => ({ payload, bytes })));
  return (all[0] ?? []).some(({ bytes: first, payload: { length } }, form) =>
    Array.from({ length: Math.max(0, first.length - length + 1) }).some((_, at) => {
      const streams = all.map((forms) => {
        const { payload, bytes = first } = forms[form] ?? { payload: first };
        return xor(payload, bytes.subarray(at, at + length)).toString('latin1');
      });
      return new Set(streams).size === 1;
    }),
  );
}

/** A nonce that is short or depends on the payload recurs among many seals. */
async function betweenPayloads(trial: CodecTrial): Promise<void> {
  const codecs = [await trial.create(), await trial.createPeerOrSelf()];
  const until = performance.now() + SEALING_MS;
  const sealed: Sealed[] = [];
  while (sealed.length < MANY_PAYLOADS && (sealed.length % 64 !== 0 || performance.now() < until)) {
    const payload = trial.bytes(MANY_LENGTH);
    sealed.push({ payload, token: trial.seal(codecs[sealed.length % 2] as RequestStateCodec, payload) });
  }
  expectThat(!sharedStream(sealed), `two of the tokens of ${sealed.length} payloads share a key stream`);
}

/** A counter in the module restarts in every process. */
async function betweenProcesses(trial: CodecTrial): Promise<string | undefined> {
  const { module } = trial;
  if (module === undefined) return undefined;
  const [one, other] = [trial.random.below(2 ** 31), trial.random.below(2 ** 31)];
  const first = await firstSeals(module, one);
  const second = await firstSeals(module, other, first.tokens[0]?.token);
  const isShared = sharedStream([first, second].flatMap(({ tokens }) => readFirstTokens(tokens)));
  expectThat(!isShared, 'the first tokens of two processes share a key stream');
  return second.opened ? undefined : 'two processes that load the module have different keys: not compared';
}
