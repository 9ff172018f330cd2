import { setTimeout as pause } from 'node:timers/promises';
import { runInNewContext } from 'node:vm';
import { gzipSync } from 'node:zlib';
import type { RequestStateCodec } from '@sealring/core';
import { assert as assertProperty, property as forAll, uint8Array } from 'fast-check';
import { type Random, sameBytes, text } from '../bytes.ts';
import { type Check, expectThat, Finding } from '../requirement.ts';
import { LONGEST_PAYLOAD } from './target.ts';
import { bytesText, type CodecChecks, type CodecTrial, tokenText, useOnce } from './trial.ts';

const MANY_TOKENS = 500;
/** More than two seconds, since a token may record its time in seconds, and a codec may let the token expire. */
const OLD_MS = 2_100;
/** How long to wait for asynchronous changes to bytes after a call has ended, in milliseconds. */
const LATER_MS = 20;
/** Lengths beyond the range of a two-byte length field, and beyond limits that a codec may have but not declare. */
const LONGER: readonly number[] = [65_537, 100_000, 131_073, 300_000, 1_100_000];
/** Time limit for payloads of increasing length, in milliseconds. */
const LONG_MS = 4_000;
/** Time limit for finding the smallest failing payload, in milliseconds. */
const SHRINK_MS = 3_000;
const AROUND = 32;
/** The number of results to keep: for a fast codec, more short results than a pool may hold. */
const KEPT_RESULTS = 8;
const MANY_RESULTS = 1_000;
const KEPT_BYTES = 60_000;
const SHORT_BYTES = 24;
const MORE_UNSEALS = 4;
/** Padding as in PKCS #7, ISO 7816-4 and ANSI X9.23, and endings that only resemble padding. */
const PADDINGS: readonly Buffer[] = [
  ...[1, 2, 3, 8, 15, 16].map((byte) => Buffer.alloc(byte, byte)),
  ...['80', '8000', '800000', '0000', '00000003', '2020', 'ffff'].map((hex) => Buffer.from(hex, 'hex')),
];
/** The longest of the consecutive lengths that are tried, to cover the limits of blocks, padding and length fields. */
const EVERY_LENGTH = 300;

/** Length of the buffer of a view, in bytes: more than codecs usually accept. */
const LARGE_BYTES = 2_000_000;

/** Lengths of similar payloads: short, beyond a block, a hash and a buffer, and long. */
const ALIKE_LENGTHS: readonly number[] = [2, 16, 40, 100, 300, 5_000, LONGEST_PAYLOAD];

export const ROUND_TRIP_CHECKS: CodecChecks = {
  'CODEC-SYNCHRONOUS': async (trial) => {
    const codec = await trial.create();
    trial.unseal(codec, trial.seal(codec, trial.text('state')));
  },
  // A slash separates paths; + & % # \\ and " have a special meaning in forms, URLs or JSON.
  'CODEC-TOKEN-TEXT': tokensWithout(/[^A-Za-z0-9._~:=!$*,;@-]/),
  'CODEC-TOKEN-UNRESERVED': tokensWithout(/[^A-Za-z0-9._~-]/),
  'CODEC-ANY-ORDER': async (trial) => {
    const codec = await trial.create();
    const length = Math.min(16, trial.supports.maxPayloadBytes);
    const many = trial.sample(Array.from({ length: MANY_TOKENS }), () => useOnce(codec));
    const sealed = many.map(() => {
      const payload = trial.random.bytes(length);
      return { payload, token: trial.seal(codec, payload) };
    });
    const [first] = sealed;
    await pause(OLD_MS);
    if (first !== undefined) {
      trial.expectPayload(codec, first.token, first.payload, 'a token that is two seconds old');
      const later = trial.supports.crossInstance ? [await trial.create(), await trial.createPeer()] : [];
      for (const one of later) {
        trial.expectPayload(one, first.token, first.payload, 'a token that is older than the instance');
      }
    }
    for (const order of [sealed, sealed.toReversed()]) {
      for (const { payload, token } of order) {
        trial.expectPayload(codec, token, payload, `one of ${sealed.length} tokens`);
      }
    }
  },
  'CODEC-ROUNDTRIP-BYTES': async (trial) => {
    const codec = await trial.create();
    const comesBack = (payload: Uint8Array): void => {
      if (trial.fits(payload)) trial.expectPayload(codec, trial.seal(codec, payload), payload);
    };
    for (const payload of edgePayloads(trial.random)) comesBack(payload);
    comesBack(text(trial.seal(codec, trial.text('a token in a token'))));
    const lengths = trial.sample(
      Array.from({ length: EVERY_LENGTH + 1 }).map((_, length) => length),
      () => useOnce(codec),
    );
    for (const length of lengths) comesBack(trial.random.bytes(length));
    for (const length of ALIKE_LENGTHS) staysApart(trial, codec, trial.random.bytes(length));
    smallest(trial, comesBack);
  },
  'CODEC-ROUNDTRIP-VIEW': async (trial) => {
    const codec = await trial.create();
    const whole = trial.random.bytes(64);
    // The limit applies to the length of the view, not to that of its buffer.
    const large = new Uint8Array(LARGE_BYTES);
    const views = [
      whole.subarray(0, 8),
      whole.subarray(5, 13),
      whole.subarray(63),
      Buffer.from('state of a tool'),
      large.subarray(32, 40),
      // The buffer of an empty view is not empty.
      whole.subarray(8, 8),
      Object.preventExtensions(trial.random.bytes(8)),
    ].map((view) =>
      view.length > trial.supports.maxPayloadBytes ? view.subarray(0, trial.supports.maxPayloadBytes) : view,
    );
    for (const view of views) {
      trial.expectPayload(codec, trial.seal(codec, view), view, `a view of ${bytesText(view)}`);
    }
  },
  'CODEC-ROUNDTRIP-REALM': async (trial) => {
    const codec = await trial.create();
    const payload = trial.bytes(24);
    const shared = new Uint8Array(new SharedArrayBuffer(payload.length));
    shared.set(payload);
    trial.expectPayload(codec, trial.seal(codec, shared), payload, 'shared memory');
    const foreign = runInNewContext('Uint8Array.from(bytes)', { bytes: payload }) as Uint8Array;
    trial.expectPayload(codec, trial.seal(codec, foreign), payload, 'a Uint8Array of another realm');
  },
  'CODEC-CALLERS-BUFFER': async (trial) => {
    const codec = await trial.create();
    for (const length of [24, 64, 5_000, LONGEST_PAYLOAD].filter((one) => one <= trial.supports.maxPayloadBytes)) {
      // The payload is a view, so that a write outside its bounds is detected.
      const whole = trial.random.bytes(length + 2 * AROUND);
      const payload = whole.subarray(AROUND, AROUND + length);
      const [before, untouched] = [Uint8Array.from(payload), Uint8Array.from(whole)];
      const token = trial.seal(codec, payload);
      await pause(LATER_MS);
      expectThat(sameBytes(whole, untouched), `seal modified the buffer of its ${length} input bytes`);
      payload.fill(0);
      const again = trial.seal(codec, payload);
      trial.expectPayload(codec, again, payload, 'a buffer that was sealed before with other bytes');
      trial.expectPayload(codec, token, before, 'a token whose input buffer was overwritten');
      const isBlank = payload.every((byte) => byte === 0);
      expectThat(isBlank, 'unseal wrote to the buffer passed to seal');
    }
  },
  'CODEC-OWN-RESULT': async (trial) => {
    const codec = await trial.create();
    const payload = trial.bytes(24);
    const before = Uint8Array.from(payload);
    const token = trial.seal(codec, payload);
    const first = trial.unseal(codec, token);
    expectThat(first !== payload && first.buffer !== payload.buffer, 'unseal returned the buffer passed to seal');
    first.fill(0);
    for (let i = 0; i < MORE_UNSEALS; i++) {
      trial.expectPayload(codec, token, before, 'a token whose earlier results were overwritten');
      trial.unseal(codec, token).fill(0);
    }
    // A codec that returns views of a pool eventually overwrites them.
    const many = trial.sample(Array.from({ length: MANY_RESULTS }), () => useOnce(codec)).length;
    for (const [length, count] of [
      [SHORT_BYTES, Math.max(KEPT_RESULTS, many)],
      [KEPT_BYTES, KEPT_RESULTS],
    ] as const) {
      const sealed = Array.from({ length: count }, () => trial.bytes(length));
      const results = sealed.map((one) => trial.unseal(codec, trial.seal(codec, one)));
      for (const [i, one] of sealed.entries()) {
        expectThat(sameBytes(results[i] ?? new Uint8Array(0), one), 'a result changed when other tokens were unsealed');
      }
    }
    const last = trial.unseal(codec, token);
    await pause(LATER_MS);
    expectThat(sameBytes(last, before), 'a result changed after unseal had ended');
  },
  'CODEC-SIZE-LIMIT': async (trial) => {
    const { maxPayloadBytes } = trial.supports;
    const codec = await trial.create();
    const declared = maxPayloadBytes < LONGEST_PAYLOAD ? [0, 1, 1_024].map((more) => maxPayloadBytes + more) : [];
    const until = performance.now() + LONG_MS;
    const long = [...declared, ...LONGER].map((length) => trial.random.bytes(length));
    // These payloads are short when compressed.
    const compressible = declared.slice(1).map((length) => new Uint8Array(length));
    for (const payload of [...compressible, ...long]) {
      if (performance.now() > until) return;
      const { length } = payload;
      const before = Uint8Array.from(payload);
      let token: string | undefined;
      try {
        token = codec.seal(payload);
      } catch (error) {
        if (length <= Math.min(maxPayloadBytes, LONGEST_PAYLOAD)) throw error;
      }
      expectThat(sameBytes(payload, before), `seal modified its ${length} input bytes`);
      if (token === undefined) {
        // The next token must not contain any part of the refused payload.
        const short = trial.bytes(SHORT_BYTES);
        trial.expectPayload(
          codec,
          trial.seal(codec, short),
          short,
          `the token sealed after ${length} bytes were refused`,
        );
        continue;
      }
      if (length > maxPayloadBytes) throw new Finding(`${length} bytes were sealed as ${tokenText(token)}`);
      // Beyond the required length, a codec may return the whole payload or refuse it, but must not return a part.
      if (length > LONGEST_PAYLOAD && 'refusal' in trial.outcome(codec, token)) continue;
      trial.expectPayload(codec, token, payload);
    }
  },
};

/** Payloads that a cache keyed by a part, the length or a sum would confuse. */
function staysApart(trial: CodecTrial, codec: RequestStateCodec, payload: Uint8Array): void {
  const changedAt = (at: number): Uint8Array => payload.with(at, (payload[at] ?? 0) ^ 1);
  const places = [0, payload.length >> 1, payload.length - 1].map(changedAt);
  const others = [payload.subarray(1), payload.subarray(0, -1), Buffer.concat([payload, Uint8Array.of(0)])];
  const alike = [payload, ...places, payload.toReversed(), ...others].filter(
    (one) => trial.fits(one) && one.length <= LONGEST_PAYLOAD,
  );
  const sealed = alike.map((one) => ({ payload: one, token: trial.seal(codec, one) }));
  for (const one of [...sealed, ...sealed.toReversed()]) {
    trial.expectPayload(codec, one.token, one.payload, `one of ${alike.length} similar payloads`);
  }
}

function tokensWithout(others: RegExp): Check<CodecTrial> {
  return async (trial) => {
    const codec = await trial.create();
    for (const payload of edgePayloads(trial.random).filter((one) => trial.fits(one))) {
      const token = trial.seal(codec, payload);
      expectThat(token !== '', `the token of ${bytesText(payload)} is empty`);
      const odd = others.exec(token)?.[0];
      expectThat(odd === undefined, `the token of ${bytesText(payload)} contains ${JSON.stringify(odd)}`);
    }
  };
}

/** Tries random bytes, and reports the smallest payload that fails. */
function smallest(trial: CodecTrial, holds: (payload: Uint8Array) => void): void {
  let last: unknown;
  try {
    assertProperty(
      forAll(uint8Array({ maxLength: 300 }), (payload) => {
        try {
          holds(payload);
        } catch (error) {
          last = error;
          throw error;
        }
      }),
      { numRuns: 300, interruptAfterTimeLimit: SHRINK_MS, seed: trial.random.below(2 ** 31) },
    );
  } catch (error) {
    throw last ?? error;
  }
}

/** Payloads that break codecs which treat bytes as text, or text as JSON; shortest first. Created for each trial. */
function edgePayloads(random: Random): readonly Uint8Array[] {
  return [
    new Uint8Array(0),
    ...[0x00, 0x0a, 0x20, 0x22, 0x7b, 0x80, 0xff].map((byte) => Uint8Array.of(byte)),
    Uint8Array.of(0, 0),
    Uint8Array.of(0x41, 0),
    Uint8Array.of(0, 0x41),
    // Invalid UTF-8: a lone continuation byte, an overlong slash, a lone surrogate, a truncated sequence.
    Uint8Array.of(0xc0, 0xaf),
    Uint8Array.of(0xed, 0xa0, 0x80),
    Uint8Array.of(0xf0, 0x9f, 0x98),
    // A byte order mark, which text decoders remove.
    Uint8Array.of(0xef, 0xbb, 0xbf, 0x41),
    text('{"a":1}'),
    text(' {"a": 1} '),
    text('{"b": -0, "a": 1.0, "a": 2}'),
    text('{\n  "__proto__": 12345678901234567890\n}'),
    text('null'),
    // Text that looks like encoded bytes or escaped text.
    text('7b2261223a317d00'),
    text('c3RhdGUgb2YgYSB0b29s'),
    text('%41+%2E&amp;\\u0041'),
    Uint8Array.of(0xff, 0xfe, 0x41, 0),
    gzipSync('state'),
    text('a\r\nb\rc\nd\0e\tf '),
    text('é'),
    text('é'),
    text('e\u0301'),
    // Payloads of whole blocks that end like padding.
    ...[16, 32, 64, 128, 256].flatMap((length) =>
      PADDINGS.map((end) => Buffer.concat([random.bytes(length - end.length), end])),
    ),
    ...[15, 16, 17, 31, 32, 33].map((length) => random.bytes(length)),
    // Floating-point numbers of 4 and 8 bytes that differ from others only in their bits: NaNs, and a negative zero.
    ...['7fa00001', '010080ff', '7ff0000000000001', '010000000000f8ff', '8000000000000000'].map((hex) =>
      Buffer.from(hex, 'hex'),
    ),
    // Text that ends in a byte that is not text.
    ...[64, 300, 1_100, 5_000, LONGEST_PAYLOAD - 1].map((length) =>
      Buffer.concat([Buffer.alloc(length, 'state '), Uint8Array.of(0xe9)]),
    ),
    Uint8Array.from({ length: 256 }, (_, i) => i),
    new Uint8Array(1_000),
    random.bytes(4_097),
    random.bytes(LONGEST_PAYLOAD),
  ];
}
