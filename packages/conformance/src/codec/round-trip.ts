import { assert as assertProperty, property as forAll, uint8Array } from 'fast-check';
import { type Random, sameBytes, text } from '../bytes.ts';
import { type CheckedRequirement, expectThat, Finding, must, NotApplicable, should } from '../requirement.ts';
import { LONGEST_PAYLOAD } from './target.ts';
import { bytesText, CONTRACT, type CodecTrial, tokenText, useOnce } from './trial.ts';

const MANY_TOKENS = 500;
/** How long the smallest payload that fails is looked for, milliseconds. */
const SHRINK_MS = 3_000;
const KEPT_RESULTS = 8;
const KEPT_BYTES = 60_000;
/** Where blocks, paddings and lengths of lengths have their edges. */
const EVERY_LENGTH = 300;

/** What every payload comes back as, and what happens to the buffers on the way. */
export const ROUND_TRIP_CHECKS: readonly CheckedRequirement<CodecTrial>[] = [
  must('CODEC-SYNCHRONOUS', 'seal and unseal return their results at once, not promises.', CONTRACT, async (trial) => {
    const codec = await trial.create();
    trial.unseal(codec, trial.seal(codec, trial.text('state')));
  }),
  must(
    'CODEC-TOKEN-TEXT',
    'A token is a string of characters that URLs, forms and JSON leave as they are.',
    CONTRACT,
    async (trial) => {
      const codec = await trial.create();
      for (const payload of edgePayloads(trial.random).filter((one) => trial.fits(one))) {
        const token = trial.seal(codec, payload);
        expectThat(token !== '', `the token of ${bytesText(payload)} is empty`);
        // A slash divides paths; + & % # \\ and " mean something in a form, a URL or JSON.
        const odd = /[^A-Za-z0-9._~:=!$*,;@-]/.exec(token)?.[0];
        expectThat(odd === undefined, `the token of ${bytesText(payload)} holds ${JSON.stringify(odd)}`);
      }
    },
  ),
  should(
    'CODEC-TOKEN-UNRESERVED',
    'A token needs no escaping anywhere in a URL.',
    'RFC 3986, section 2.3',
    async (trial) => {
      const codec = await trial.create();
      for (const payload of edgePayloads(trial.random).filter((one) => trial.fits(one))) {
        const odd = /[^A-Za-z0-9._~-]/.exec(trial.seal(codec, payload))?.[0];
        expectThat(odd === undefined, `the token of ${bytesText(payload)} holds ${JSON.stringify(odd)}`);
      }
    },
  ),
  must(
    'CODEC-ANY-ORDER',
    'Tokens are unsealed in any order, however many were sealed since, and again.',
    CONTRACT,
    async (trial) => {
      const codec = await trial.create();
      const length = Math.min(16, trial.supports.maxPayloadBytes);
      const many = trial.sample(Array.from({ length: MANY_TOKENS }), () => useOnce(codec));
      const sealed = many.map(() => {
        const payload = trial.random.bytes(length);
        return { payload, token: trial.seal(codec, payload) };
      });
      for (const order of [sealed, sealed.toReversed()]) {
        for (const { payload, token } of order) {
          trial.expectPayload(codec, token, payload, `one of ${sealed.length} tokens`);
        }
      }
    },
  ),
  must(
    'CODEC-ROUNDTRIP-BYTES',
    'unseal returns exactly the bytes that seal was given, whatever they are.',
    CONTRACT,
    async (trial) => {
      const codec = await trial.create();
      const comesBack = (payload: Uint8Array): void => {
        if (trial.fits(payload)) trial.expectPayload(codec, trial.seal(codec, payload), payload);
      };
      for (const payload of edgePayloads(trial.random)) comesBack(payload);
      const lengths = trial.sample(
        Array.from({ length: EVERY_LENGTH + 1 }).map((_, length) => length),
        () => useOnce(codec),
      );
      for (const length of lengths) comesBack(trial.random.bytes(length));
      smallest(trial, comesBack);
    },
  ),
  must(
    'CODEC-ROUNDTRIP-VIEW',
    'A view of a larger buffer is sealed within its own bounds.',
    CONTRACT,
    async (trial) => {
      const codec = await trial.create();
      const whole = trial.random.bytes(64);
      const views = [
        whole.subarray(0, 8),
        whole.subarray(5, 13),
        whole.subarray(63),
        Buffer.from('state of a tool'),
      ].map((view) => view.subarray(0, trial.supports.maxPayloadBytes));
      for (const view of views) {
        trial.expectPayload(codec, trial.seal(codec, view), view, `a view of ${bytesText(view)}`);
      }
    },
  ),
  must(
    'CODEC-CALLERS-BUFFER',
    'seal neither changes the buffer it was given nor looks at it later.',
    CONTRACT,
    async (trial) => {
      const codec = await trial.create();
      const payload = trial.bytes(24);
      const before = Uint8Array.from(payload);
      const token = trial.seal(codec, payload);
      expectThat(sameBytes(payload, before), 'seal changed the buffer it was given');
      payload.fill(0);
      trial.expectPayload(codec, token, before, 'a token whose buffer was overwritten');
      expectThat(
        payload.every((byte) => byte === 0),
        'unseal wrote into the buffer that was sealed',
      );
    },
  ),
  must(
    'CODEC-OWN-RESULT',
    'The bytes that unseal returns are the caller’s: changing them changes nothing else.',
    CONTRACT,
    async (trial) => {
      const codec = await trial.create();
      const payload = trial.bytes(24);
      const before = Uint8Array.from(payload);
      const token = trial.seal(codec, payload);
      const first = trial.unseal(codec, token);
      expectThat(first !== payload && first.buffer !== payload.buffer, 'unseal returned the buffer that was sealed');
      first.fill(0);
      trial.expectPayload(codec, token, before, 'a token whose first result was overwritten');
      // A codec that returns views of a pool overwrites them sooner or later.
      const sealed = Array.from({ length: KEPT_RESULTS }, () => trial.bytes(KEPT_BYTES));
      const results = sealed.map((one) => trial.unseal(codec, trial.seal(codec, one)));
      for (const [i, one] of sealed.entries()) {
        expectThat(sameBytes(results[i] ?? new Uint8Array(0), one), 'a result changed when other tokens were unsealed');
      }
    },
  ),
  must('CODEC-SIZE-LIMIT', 'A payload that is too long is refused by seal, never cut.', CONTRACT, async (trial) => {
    const { maxPayloadBytes } = trial.supports;
    if (maxPayloadBytes >= LONGEST_PAYLOAD) throw new NotApplicable('no limit is declared below 64 KiB');
    const codec = await trial.create();
    const most = trial.random.bytes(maxPayloadBytes);
    trial.expectPayload(codec, trial.seal(codec, most), most, 'the longest payload');
    for (const more of [1, 1_024]) {
      let token: string;
      try {
        token = codec.seal(trial.random.bytes(maxPayloadBytes + more));
      } catch {
        continue;
      }
      throw new Finding(`${maxPayloadBytes + more} bytes were sealed as ${tokenText(token)}`);
    }
  }),
];

/** Any bytes; a failing example is shrunk to the smallest that fails. */
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

/** Payloads that break codecs which take bytes for text, or text for JSON; shortest first. Created for each trial. */
function edgePayloads(random: Random): readonly Uint8Array[] {
  return [
    new Uint8Array(0),
    ...[0x00, 0x0a, 0x20, 0x22, 0x7b, 0x80, 0xff].map((byte) => Uint8Array.of(byte)),
    Uint8Array.of(0, 0),
    Uint8Array.of(0x41, 0),
    Uint8Array.of(0, 0x41),
    // Not UTF-8: a lone continuation, an overlong slash, half a surrogate pair, a cut sequence.
    Uint8Array.of(0xc0, 0xaf),
    Uint8Array.of(0xed, 0xa0, 0x80),
    Uint8Array.of(0xf0, 0x9f, 0x98),
    // A byte order mark, which decoders of text swallow.
    Uint8Array.of(0xef, 0xbb, 0xbf, 0x41),
    text('{"a":1}'),
    text(' {"a": 1} '),
    text('null'),
    text('a\r\nb\rc\nd\0e\tf '),
    text('é'),
    text('é'),
    ...[15, 16, 17, 31, 32, 33].map((length) => random.bytes(length)),
    Uint8Array.from({ length: 256 }, (_, i) => i),
    new Uint8Array(1_000),
    random.bytes(4_097),
    random.bytes(LONGEST_PAYLOAD),
  ];
}
