import type { RequestStateCodec } from '@sealring/core';
import { xor } from '../bytes.ts';
import { type CheckedRequirement, expectThat, must, NotApplicable } from '../requirement.ts';
import { decodings } from './decodings.ts';
import { firstSeals } from './first-seals.ts';
import { confidential } from './secrecy.ts';
import { LEAST_BYTES, type Sealed, sharedStream } from './shared-stream.ts';
import type { CodecTrial } from './trial.ts';

const LENGTH = 48;
/** Fewer bytes than this turn up in one another by chance. */
const TELLING_LENGTH = 8;
/** In so many a nonce of 24 bits comes again a dozen times. Where sealing is slow the time decides, milliseconds. */
const MANY_PAYLOADS = 20_000;
const SEALING_MS = 4_000;
const MANY_LENGTH = 24;

/** Whether a nonce is used twice: between codecs, between many payloads, and between processes. */
export const KEY_STREAM_CHECKS: readonly CheckedRequirement<CodecTrial>[] = [
  must(
    'CODEC-KEYSTREAM',
    'Two tokens never hide their payloads with the same key stream.',
    'NIST SP 800-38D, section 8',
    async (trial) => {
      confidential(trial);
      if (trial.subject.supports.maxPayloadBytes < TELLING_LENGTH) {
        throw new NotApplicable('its payloads are too short to be recognised');
      }
      await betweenInstances(trial);
      await betweenPayloads(trial);
      return betweenProcesses(trial);
    },
  ),
];

/** One instance, and fresh peers at the same ordinal: a counter that starts anew shows there. */
async function betweenInstances(trial: CodecTrial): Promise<void> {
  const alone = await trial.create();
  const codecs: RequestStateCodec[] = [alone, alone];
  for (let i = 0; i < 4; i++) {
    codecs.push(await (i % 2 === 0 ? trial.create() : trial.createPeerOrSelf()));
  }
  for (let ordinal = 0; ordinal < 3; ordinal++) {
    const sealed = codecs.map((codec) => {
      const payload = trial.bytes(LENGTH);
      return { payload, forms: decodings(trial.seal(codec, payload)) };
    });
    for (const [i, one] of sealed.entries()) {
      for (const other of sealed.slice(i + 1)) {
        const difference = xor(one.payload, other.payload);
        for (const [form, bytes] of one.forms.entries()) {
          const found = xor(bytes, other.forms[form] ?? new Uint8Array(0));
          expectThat(
            !found.includes(difference),
            `two tokens, number ${ordinal + 1} of their codecs, share a key stream`,
          );
        }
      }
    }
  }
}

/** A nonce that is short, or follows from the payload, comes again among many. */
async function betweenPayloads(trial: CodecTrial): Promise<void> {
  if (trial.subject.supports.maxPayloadBytes < LEAST_BYTES) return;
  const codecs = [await trial.create(), await trial.createPeerOrSelf()];
  const until = performance.now() + SEALING_MS;
  const sealed: Sealed[] = [];
  while (sealed.length < MANY_PAYLOADS && (sealed.length % 64 !== 0 || performance.now() < until)) {
    const payload = trial.bytes(MANY_LENGTH);
    sealed.push({ payload, token: trial.seal(codecs[sealed.length % 2] as RequestStateCodec, payload) });
  }
  expectThat(!sharedStream(sealed), `of the tokens of ${sealed.length} payloads two share a key stream`);
}

/** A counter of the module starts anew in every process. */
async function betweenProcesses(trial: CodecTrial): Promise<string | undefined> {
  const { module } = trial.subject;
  if (module === undefined || trial.subject.supports.maxPayloadBytes < LEAST_BYTES) return undefined;
  const [one, other] = [trial.random.below(2 ** 31), trial.random.below(2 ** 31)];
  const first = await firstSeals(module, one);
  const second = await firstSeals(module, other, first.sealed[0]?.token);
  const isShared = sharedStream([...first.sealed, ...second.sealed]);
  expectThat(!isShared, 'the first tokens of two processes share a key stream');
  return second.opened ? undefined : 'two processes that load the module have other keys: nothing to compare there';
}
