import type { RequestStateCodec } from '@sealring/core';
import { type Check, expectThat, NotApplicable } from '../requirement.ts';
import { encodings } from '../secrets.ts';
import { text } from './payloads.ts';
import type { CodecTrial } from './trial.ts';

const MANY_SEALS = 10_000;
const LENGTH = 48;
/** Fewer bytes than this turn up in one another by chance. */
const TELLING_LENGTH = 8;
/** Payloads of one length, sealed so often, have tokens of some length in common, unless the length follows the content. */
const SEALS_OF_A_LENGTH = 20;
/** A block of AES, bytes. */
const WINDOW = 16;
/** A quarter of what a payload of 1 024 bytes would give away. */
const MOST_REPEATS = 256;
/** A time stamp or a counter, in characters; what follows from the payload alone is longer, be it a digest. */
const LONGEST_STAMP = 30;

/** What a token gives away; only where the target claims that it hides its payload. */
export const SECRECY_CHECKS: readonly Check<CodecTrial>[] = [
  {
    id: 'CODEC-KEYSTREAM',
    async run(trial) {
      confidential(trial);
      // One instance, and fresh peers at the same ordinal: a counter that starts anew shows there.
      const alone = await trial.create();
      const codecs: RequestStateCodec[] = [alone, alone];
      for (let i = 0; i < 4; i++) {
        codecs.push(await (i % 2 === 0 ? trial.create() : trial.createPeerOrSelf()));
      }
      const length = Math.min(LENGTH, trial.subject.supports.maxPayloadBytes);
      if (length < TELLING_LENGTH) throw new NotApplicable('its payloads are too short to be recognised');
      for (let ordinal = 0; ordinal < 3; ordinal++) {
        const sealed = codecs.map((codec) => {
          const payload = trial.random.bytes(length);
          return { payload, forms: decodings(trial.seal(codec, payload)) };
        });
        for (const [i, one] of sealed.entries()) {
          for (const other of sealed.slice(i + 1)) {
            const difference = xor(one.payload, other.payload);
            for (const [form, bytes] of one.forms.entries()) {
              const found = xor(bytes, other.forms[form] ?? new Uint8Array(0));
              expectThat(
                !contains(found, difference),
                `two tokens, number ${ordinal + 1} of their codecs, share a key stream`,
              );
            }
          }
        }
      }
    },
  },
  {
    id: 'CODEC-REPEATS',
    async run(trial) {
      confidential(trial);
      const codec = await trial.create();
      const payload = trial.text('state');
      // One token for all is no repetition, nor is one for every second.
      const seen = new Set<string>();
      let last = '';
      for (let i = 1; i <= MANY_SEALS; i++) {
        const token = trial.seal(codec, payload);
        expectThat(token === last || !seen.has(token), `after ${i} seals of one payload a token came again`);
        seen.add(token);
        last = token;
      }
    },
  },
  {
    id: 'CODEC-DISTINCT',
    async run(trial) {
      confidential(trial);
      const codec = await trial.create();
      const payload = trial.text('state');
      expectThat(
        trial.seal(codec, payload) !== trial.seal(codec, payload),
        'two seals of one payload are alike: whoever sees both knows that',
      );
    },
  },
  {
    id: 'CODEC-CONFIDENTIAL',
    async run(trial) {
      confidential(trial);
      const codec = await trial.create();
      for (let i = 0; i < 5; i++) {
        const canary = text(Buffer.from(trial.random.bytes(12)).toString('hex'));
        if (!trial.fits(canary)) throw new NotApplicable('its payloads are too short to be recognised');
        const token = trial.seal(codec, canary);
        const readable = [token, ...decodings(token).map((bytes) => Buffer.from(bytes).toString('latin1'))];
        const forms = [...encodings(canary), Buffer.from(canary.toReversed()).toString('latin1')];
        expectThat(
          !readable.some((one) => forms.some((form) => one.includes(form))),
          'the payload can be read in the token',
        );
      }
    },
  },
  {
    id: 'CODEC-KEYLESS',
    async run(trial) {
      confidential(trial);
      const length = 64;
      if (!trial.fits(new Uint8Array(length))) throw new NotApplicable('its payloads are too short to be recognised');
      const [codec, stranger] = [await trial.create(), await trial.createStranger()];
      for (let i = 0; i < 3; i++) {
        const payload = trial.random.bytes(length);
        const here = trial.seal(codec, payload);
        const there = trial.seal(stranger, payload);
        const other = trial.seal(codec, trial.random.bytes(length));
        // What agrees by chance: much in hex, little in base64.
        const chance = agreement(here, trial.seal(stranger, trial.random.bytes(length)), other);
        const common = agreement(here, there, other);
        expectThat(
          common <= LONGEST_STAMP + 2 * chance,
          `${common} characters of a token follow from the payload without any key`,
        );
      }
    },
  },
  {
    id: 'CODEC-PATTERN',
    async run(trial) {
      confidential(trial);
      const [short, long] = [1_024, 1_040];
      if (!trial.fits(new Uint8Array(long))) throw new NotApplicable('its payloads are too short to show a pattern');
      const codec = await trial.create();
      const repeats = (...payloads: Uint8Array[]): number => repetitions(payloads.map((one) => trial.seal(codec, one)));
      // What repeats whatever the payload: a header, padding outside.
      const always = repeats(trial.random.bytes(short), trial.random.bytes(long));
      const zeros = repeats(new Uint8Array(short), new Uint8Array(long)) - always;
      expectThat(
        zeros <= MOST_REPEATS,
        `the tokens of ${short} and ${long} zeros repeat themselves in ${zeros} places`,
      );
      const head = trial.random.bytes(short - WINDOW);
      const [one, two] = [WINDOW, 2 * WINDOW].map((length) => Buffer.concat([head, trial.random.bytes(length)]));
      const shared = repeats(one ?? head, two ?? head) - always;
      expectThat(shared <= MOST_REPEATS, `the tokens of payloads that begin alike are alike in ${shared} places`);
    },
  },
  {
    id: 'CODEC-NO-COMPRESSION',
    async run(trial) {
      confidential(trial);
      const codec = await trial.create();
      for (const length of [64, 1_000, 16_000].filter((one) => one <= trial.subject.supports.maxPayloadBytes)) {
        const lengths = (payload: () => Uint8Array): [number, number] => {
          const all = Array.from({ length: SEALS_OF_A_LENGTH }, () => trial.seal(codec, payload()).length);
          return [Math.min(...all), Math.max(...all)];
        };
        const flat = lengths(() => new Uint8Array(length));
        const mixed = lengths(() => trial.random.bytes(length));
        // Padding of random length may differ as it likes, but not with the content.
        expectThat(
          flat[1] >= mixed[0] && mixed[1] >= flat[0],
          `${length} equal bytes make ${flat[1]} characters at most, ${length} random ones ${mixed[0]} at least: how well a secret compresses shows`,
        );
      }
    },
  },
];

function confidential(trial: CodecTrial): void {
  if (!trial.subject.supports.confidentiality) throw new NotApplicable('supports.confidentiality is false');
}

/** How many pieces of tokens, in bytes, stood in them before. */
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

/** In how many places two tokens agree where a third does not, counted from the start or from the end. */
function agreement(one: string, same: string, other: string): number {
  const [a, b, c] = [one, same, other].map((token) => Array.from(token)) as [string[], string[], string[]];
  return Math.max(agreementOf(a, b, c), agreementOf(a.toReversed(), b.toReversed(), c.toReversed()));
}

function agreementOf(one: readonly string[], same: readonly string[], other: readonly string[]): number {
  return one.filter((char, i) => char === same[i] && char !== other[i]).length;
}

/** Bytes that a token may stand for: whole, and each part of it, by the usual encodings. */
function decodings(token: string): readonly Uint8Array[] {
  const parts = [token, ...token.split(/[.~]/), token.replace(/^[^.]*\./, '')];
  return parts.flatMap((part) => [
    Buffer.from(part, 'base64url'),
    Buffer.from(part, 'hex'),
    Buffer.from(part, 'latin1'),
  ]);
}

function xor(a: Uint8Array, b: Uint8Array): Uint8Array {
  return a.subarray(0, b.length).map((byte, i) => byte ^ (b[i] ?? 0));
}

function contains(bytes: Uint8Array, piece: Uint8Array): boolean {
  return Buffer.from(bytes).includes(Buffer.from(piece));
}
