import type { RequestStateCodec } from '@sealring/core';
import { type Check, expectThat, NotApplicable } from '../requirement.ts';
import { text } from './payloads.ts';
import { encodings } from './refusals.ts';
import type { CodecTrial } from './trial.ts';

const MANY_SEALS = 10_000;
const LENGTH = 48;

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
      const codec = await trial.create();
      const tokens = manySeals(trial, codec);
      const distinct = new Set(tokens).size;
      expectThat(
        distinct === tokens.length || distinct === 1,
        `${tokens.length} seals of one payload gave ${distinct} tokens`,
      );
    },
  },
  {
    id: 'CODEC-DISTINCT',
    async run(trial) {
      confidential(trial);
      const codec = await trial.create();
      const payload = text('state');
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
    id: 'CODEC-NO-COMPRESSION',
    async run(trial) {
      confidential(trial);
      const codec = await trial.create();
      for (const length of [64, 1_000].filter((one) => one <= trial.subject.supports.maxPayloadBytes)) {
        const [flat, mixed] = [new Uint8Array(length), trial.random.bytes(length)].map(
          (payload) => trial.seal(codec, payload).length,
        );
        expectThat(
          flat === mixed,
          `${length} equal bytes make ${flat} characters, ${length} random ones ${mixed}: how well a secret compresses shows`,
        );
      }
    },
  },
];

function confidential(trial: CodecTrial): void {
  if (!trial.subject.supports.confidentiality) throw new NotApplicable('supports.confidentiality is false');
}

function manySeals(trial: CodecTrial, codec: RequestStateCodec): readonly string[] {
  const payload = text('state');
  return Array.from({ length: MANY_SEALS }, () => trial.seal(codec, payload));
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
