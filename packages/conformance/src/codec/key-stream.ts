import type { RequestStateCodec } from '@sealring/core';
import { xor } from '../bytes.ts';
import { expectThat, NotApplicable } from '../requirement.ts';
import { atTime } from './clock.ts';
import { firstSeals, readFirstTokens } from './processes.ts';
import { confidential, SEALING_MS } from './secrecy.ts';
import { LONGEST_PAYLOAD } from './target.ts';
import { answerOf, type CodecChecks, type CodecTrial, decodings, decodingsOf } from './trial.ts';

/** Minimum length of payloads, in bytes: among many pairs, 96 bits agree by chance once in 2^61 runs. */
export const LEAST_BYTES = 12;

/** A payload of at least {@link LEAST_BYTES}, and its token. */
export interface Sealed {
  readonly payload: Uint8Array;
  readonly token: string;
}

/**
 * Whether two of many tokens use the same key stream. If so, the XOR of token and payload is the
 * same for both at some offset. Payloads are random and of equal length.
 */
export function sharedStream(sealed: readonly Sealed[]): boolean {
  return formsOf(sealed[0]).some((form) => {
    const pairs = sealed.map(({ payload, token }) => {
      const bytes = decodingsOf(token)[form]?.() ?? Buffer.of();
      return { payload, first: viewOf(payload).getUint32(0), bytes, view: viewOf(bytes) };
    });
    const most = Math.max(...new Set(pairs.map(({ payload, bytes }) => bytes.length - payload.length)));
    // Compares the first four bytes of each stream as numbers, which takes a tenth of the time that comparing bytes
    // takes. Few streams begin alike by chance.
    const beginnings = new Uint32Array(pairs.length);
    for (let at = 0; at <= most; at++) {
      let count = 0;
      for (const { payload, first, view } of pairs) {
        if (at + payload.length <= view.byteLength) beginnings[count++] = view.getUint32(at) ^ first;
      }
      if (!hasTwins(beginnings.subarray(0, count))) continue;
      const reaching = pairs.filter(({ payload, bytes }) => at + payload.length <= bytes.length);
      const streams = reaching.map(({ payload, bytes }) => xor(payload, bytes.subarray(at)).toString('latin1'));
      if (new Set(streams).size < streams.length) return true;
    }
    return false;
  });
}

function viewOf({ buffer, byteOffset, length }: Uint8Array): DataView {
  return new DataView(buffer, byteOffset, length);
}

function hasTwins(numbers: Uint32Array): boolean {
  numbers.sort();
  for (let i = 1; i < numbers.length; i++) if (numbers[i] === numbers[i - 1]) return true;
  return false;
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
/** Length of the beginning or end that payloads have in common. */
const EDGE_BYTES = 1_024;
/** How many bytes at each end the payloads of one comparison have in common. */
const EDGES = [
  { head: 0, tail: 0 },
  { head: 0, tail: 0 },
  { head: 64, tail: 0 },
  { head: EDGE_BYTES, tail: 0 },
  { head: 0, tail: EDGE_BYTES },
] as const;
/** Number of seals of one length, between other calls. */
const IN_TURN = 12;
/** Among this number of tokens, a nonce of 24 bits recurs about six times. */
const MANY_PAYLOADS = 14_000;
const MANY_LENGTH = 24;

export const KEY_STREAM_CHECKS: CodecChecks = {
  'CODEC-KEYSTREAM': async (trial) => {
    confidential(trial);
    if (trial.supports.maxPayloadBytes < LEAST_BYTES) {
      throw new NotApplicable('its payloads are too short to be recognized');
    }
    await betweenInstances(trial);
    await betweenPayloads(trial);
    await betweenCalls(trial);
    await atOneMoment(trial);
    return betweenProcesses(trial);
  },
};

/** Compares the first tokens of several instances, then the second ones, and so on, to detect counters that restart. */
async function betweenInstances(trial: CodecTrial): Promise<void> {
  const alone = await trial.create();
  const codecs: RequestStateCodec[] = [alone, alone];
  // All rotated codecs seal with the same key.
  for (let i = 0; i < 2; i++) codecs.push(...(await trial.createWithRotated()), await trial.createPeerOrSelf());
  const edge = trial.random.bytes(EDGE_BYTES);
  for (const [ordinal, { head, tail }] of EDGES.entries()) {
    if (head + tail > 0 && STREAM_BYTES + head + tail > trial.supports.maxPayloadBytes) continue;
    const sealed = codecs.map((codec) => {
      // A nonce must not depend on a counter and on a part of the payload, in which two payloads can be equal.
      const payload = trial.bytes(STREAM_BYTES);
      const whole = Buffer.concat([edge.subarray(0, head), payload, edge.subarray(0, tail)]);
      return { payload, token: trial.seal(codec, whole) };
    });
    const what = `two tokens, each number ${ordinal + 1} of its codec,`;
    const isShared = sharedStream(sealed) || (head === tail && overlappingStreams(sealed));
    expectThat(!isShared, `${what} share a key stream`);
  }
}

/** The system time must not serve as a nonce: it may stand still, go back, and be the same in other instances. */
async function atOneMoment(trial: CodecTrial): Promise<void> {
  const codecs = [await trial.create(), await trial.create(), await trial.createPeerOrSelf()];
  const now = Date.now();
  for (const moments of [
    [now, now],
    [now, now + 1_000, now],
  ]) {
    const sealed = moments.flatMap((moment) =>
      codecs.map((codec) => {
        const payload = trial.bytes(STREAM_BYTES);
        return { payload, token: atTime(moment, () => trial.seal(codec, payload)) };
      }),
    );
    expectThat(!sharedStream(sealed), 'two tokens, sealed at the same system time, share a key stream');
  }
}

/** Neither a call in between nor the beginning, end or length of a payload may cause a nonce to be repeated. */
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

/** Whether a piece of a key stream encrypts two pieces of payloads at any offsets, as happens if counters overlap. */
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

/** Whether all tokens encrypt short payloads with one key stream. Any two of them could agree by chance. */
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
