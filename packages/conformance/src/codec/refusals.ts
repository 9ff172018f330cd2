import type { RequestStateCodec } from '@sealring/core';
import { text } from '../bytes.ts';
import { expectThat, NotApplicable } from '../requirement.ts';
import { contentsOf, shows } from '../secrets.ts';
import { damagedForms } from './damage.ts';
import { GARBAGE, hugeTexts } from './junk.ts';
import { LONGEST_PAYLOAD } from './target.ts';
import { encodedParts, partsReplaced, replaced } from './token-parts.ts';
import { BUDGET_MS, type CodecChecks, type CodecTrial, decodings, tokenText } from './trial.ts';

const LONGEST_REASON = 32;
/** The number of refusals: more than a codec that counts them would tolerate. */
const MANY_REFUSALS = 2_000;
/** Bytes of a payload whose token has several parts for a decoder that works in parts, and characters between them. */
const LONGER = 300;
const PART = 37;
/** More unknown keys than a codec would remember, and the number of leading bytes that may name a key. */
const STRANGE_KEYS = 300;
const NAMED_HEAD = 16;
const TELLING_LENGTH = 12;
/**
 * Numbers of characters of a token that do not recur by chance: after the prefix that all tokens share, and at the end.
 */
const TELLING_CHARACTERS = 4;
const TELLING_END = 6;
/** Four bytes recur by chance once in 2^32. */
const NAMED_BYTES = 4;
/** Length of a quotation of decoded bytes that does not recur by chance. */
const QUOTED = 8;
/** Half of a key or more, as hex or base64. */
const LONG_WORD = /[A-Za-z0-9+/_-]{22,}/g;

/** Damaged tokens of every kind that a refusal may distinguish, with a description. */
function damaged(token: string): readonly (readonly [string, string])[] {
  const middle = token.length >> 1;
  const swapped = (at: number): string => token.slice(0, at) + (token[at] === 'A' ? 'B' : 'A') + token.slice(at + 1);
  return [
    ['', 'empty text'],
    ['x', 'one character'],
    ['__proto__', 'the text __proto__'],
    [token.slice(0, 5), 'the first five characters of a token'],
    [token.slice(0, -1), 'a token without its last character'],
    [`${token}A`, 'a token with an extra character'],
    [`${token}=`, 'a token with padding'],
    [`${token}\n`, 'a token with a newline'],
    [swapped(0), 'a token with a different first character'],
    [swapped(4), 'a token with a different fifth character'],
    [swapped(middle), 'a token with a different character in the middle'],
    [swapped(token.length - 2), 'a token with a different character near the end'],
    ['A'.repeat(token.length), 'a token with every character replaced by A'],
  ];
}

/** All pieces of a text that do not recur by chance. */
function piecesOf(whole: string): readonly string[] {
  return Array.from({ length: Math.max(0, whole.length - QUOTED + 1) }, (_, at) => whole.slice(at, at + QUOTED));
}

function decodedPieces(token: string): Set<string> {
  return new Set(decodings(token).flatMap((bytes) => piecesOf(Buffer.from(bytes).toString('latin1'))));
}

/** Whether the message or a member of a refusal contains at least four bytes of a token, as text or encoded. */
function namesPart(refusal: unknown, token: string): boolean {
  const { message, stack: _, ...members } = Object(refusal) as Readonly<Record<string, unknown>>;
  const words = [message, ...Object.values(members)].flatMap((said) =>
    typeof said === 'string' ? (said.match(/[A-Za-z0-9+/_-]{6,}/g) ?? []) : [],
  );
  const parts = [Buffer.from(token, 'latin1'), ...decodings(token).map((bytes) => Buffer.from(bytes))];
  return words.some(
    (word) =>
      [Buffer.from(word, 'base64'), Buffer.from(word, 'hex')]
        .filter((bytes) => bytes.length >= NAMED_BYTES)
        .some((bytes) => parts.some((part) => part.includes(bytes.subarray(0, NAMED_BYTES)))) || token.includes(word),
  );
}

export const REFUSAL_CHECKS: CodecChecks = {
  'CODEC-REFUSAL-CLASS': async (trial) => {
    const codecs = await trial.createWithRotated();
    const [codec, stranger] = [codecs[0], await trial.createStranger()];
    const [token, other] = [
      trial.seal(codec, trial.text('state of a tool')),
      trial.seal(codec, trial.text('other state')),
    ];
    const bad: (readonly [string, string])[] = [
      ...damaged(token),
      ...[...damagedForms(token, other)].map(([variant, what]) => [variant, `a token ${what}`] as const),
      ...GARBAGE.map((garbage) => [garbage, tokenText(garbage)] as const),
      ...oddParts(token),
      ...oddParts(trial.seal(codec, new Uint8Array(0))),
      ...nested(token),
      ...ENCODED_VALUES.map((value) => [value, `${tokenText(value)} as a token`] as const),
    ];
    const always = [
      [trial.seal(stranger, trial.text('state of a tool')), 'a token of another service'] as const,
      ...[1_000, 100_000, 1_000_000, 2_000_000].map(
        (length) => [`${token}${'A'.repeat(length)}`, `a token with ${length} characters added`] as const,
      ),
      ...hugeTexts(token, 1_000_000).map((huge) => [huge, `${huge.length} characters`] as const),
    ];
    for (const [i, asked] of codecs.entries()) {
      const refusals = [...refusalsOf(trial, asked, bad), ...refusalsOf(trial, asked, always, false)];
      for (const [refusal, what] of refusals) {
        trial.expectRefusalClass(refusal, i === 0 ? what : `${what}, after a rotation,`);
      }
    }
  },
  'CODEC-REFUSAL-SECRET': async (trial) => {
    const codec = await trial.create();
    const canary = trial.text(Buffer.from(trial.random.bytes(18)).toString('hex'));
    if (canary.length < TELLING_LENGTH) throw new NotApplicable('its payloads are too short to be recognized');
    const token = trial.seal(codec, canary);
    // A refusal must not show a cached payload either.
    trial.unseal(codec, token);
    const refusals = [...refusalsOf(trial, codec, damaged(token)), ...tooLong(trial, codec, canary)];
    for (const [refusal, what] of refusals) {
      const isShown = shows(contentsOf(refusal), canary);
      expectThat(!isShown, `the refusal of ${what} shows the payload`);
    }
    await showsNoKey(trial, codec, token);
  },
  'CODEC-REFUSAL-TOKEN': async (trial) => {
    const codec = await trial.create();
    const [good, other] = [
      trial.seal(codec, trial.text('state of a tool')),
      trial.seal(codec, trial.text('other state')),
    ];
    // The common prefix of all tokens is not secret.
    const common = Array.from(good).findIndex((char, i) => char !== other[i]);
    const inOther = decodedPieces(other);
    for (const [token, what] of damaged(good)) {
      const outcome = trial.outcome(codec, token);
      if (token.length < TELLING_LENGTH || !('refusal' in outcome) || /^(.)\1*$/.test(token)) continue;
      const shown = contentsOf(outcome.refusal);
      const parts = [text(token.slice(common)), ...decodings(token).map((bytes) => bytes.subarray(common))];
      const ends = parts.flatMap((part) => [part.subarray(0, TELLING_LENGTH), part.subarray(-TELLING_LENGTH)]);
      const isShown = ends.some((end) => end.length === TELLING_LENGTH && shows(shown, end));
      // An abbreviated token, as in a log.
      const pieces = [token.slice(0, Math.max(common, 2) + TELLING_CHARACTERS), token.slice(-TELLING_END)];
      // This detects a quotation, as in the error of a JSON parser.
      const own = decodedPieces(token);
      for (const piece of inOther) own.delete(piece);
      const isQuoted = shown.texts.some(
        (one) => pieces.some((piece) => one.includes(piece)) || piecesOf(one).some((piece) => own.has(piece)),
      );
      expectThat(!isShown && !isQuoted, `the refusal of ${what} repeats it`);
    }
    // A part that two services have in common, such as a version, is not secret either.
    const stranger = await trial.createStranger();
    for (const length of [0, 24, 200]) {
      const token = trial.seal(stranger, trial.bytes(length));
      const outcome = trial.outcome(codec, token);
      const own = Array.from(good).findIndex((char, i) => char !== token[i]);
      const isNamed = 'refusal' in outcome && namesPart(outcome.refusal, token.slice(own));
      expectThat(
        !isNamed,
        'the message for a token of another service repeats part of the token, such as the name of a key',
      );
    }
  },
  'CODEC-REFUSAL-REASON': async (trial) => {
    const codec = await trial.create();
    const bad = damaged(trial.seal(codec, trial.text('state of a tool')));
    for (const [error, what] of refusalsOf(trial, codec, bad)) {
      const message = error instanceof Error ? error.message : '';
      const reason: unknown = Object(error).reason;
      const isShort = typeof reason !== 'string' || reason.length <= LONGEST_REASON;
      expectThat(isShort, `the reason for the refusal of ${what} has ${String(reason).length} characters`);
      expectThat(message.length <= LONGEST_REASON, `the refusal of ${what} has ${message.length} characters`);
      expectThat(message !== '', `the refusal of ${what} has no message`);
    }
  },
  'CODEC-AFTER-REFUSAL': async (trial) => {
    const codec = await trial.create();
    const payload = trial.text('state of a tool');
    const good = trial.seal(codec, payload);
    const bad = damaged(good).filter(([token]) => 'refusal' in trial.outcome(codec, token));
    for (const [token, what] of bad) {
      trial.refused(codec, token, what);
      trial.expectPayload(codec, good, payload, `a valid token, after ${what},`);
      // Conversely, a valid token just before must not make a bad one valid.
      trial.refused(codec, token, `${tokenText(token)}, ${what}, after a valid one`);
    }
    const longer = trial.bytes(LONGER);
    const long = trial.seal(codec, longer);
    // A decoder that works in parts must not keep the parts that it read before the invalid one.
    for (let at = 0; at < long.length; at += PART) {
      const token = replaced(long, at, '!');
      trial.outcome(codec, token);
      trial.expectPayload(codec, long, longer, `a valid token, after one with an invalid character at ${at},`);
    }
    const until = performance.now() + BUDGET_MS;
    for (let i = 0; i < MANY_REFUSALS && performance.now() < until; i++) {
      trial.outcome(codec, bad[i % bad.length]?.[0]);
    }
    for (const token of strangeKeys(trial, good)) trial.outcome(codec, token);
    trial.expectPayload(codec, good, payload, 'a valid token, after many refusals');
    trial.expectPayload(codec, trial.seal(codec, payload), payload, 'a token sealed after refusals');
  },
};

/** Tokens that name keys which do not exist, in the first bytes of a part or in a whole part. */
function* strangeKeys(trial: CodecTrial, token: string): Generator<string> {
  for (let i = 0; i < STRANGE_KEYS; i++) {
    for (const { bytes, put } of encodedParts(token)) {
      const head = trial.random.bytes(Math.min(NAMED_HEAD, bytes.length));
      yield put(Buffer.concat([head, bytes.subarray(head.length)]));
      yield put(trial.random.bytes(bytes.length));
      // Here, the name of the key comes after a version.
      yield put(Buffer.concat([bytes.subarray(0, 1), head, bytes.subarray(head.length + 1)]));
    }
  }
}

/** JSON values without members. */
const ENCODED_VALUES: readonly string[] = 'null [] {} true 1 ""'
  .split(' ')
  .map((one) => Buffer.from(one).toString('base64url'));
const DEEP = 100_000;

/** Tokens with a part that a parser may look up or take for an object, and tokens that are cut. */
function* oddParts(token: string): Generator<readonly [string, string]> {
  const odd = [...GARBAGE.filter((one) => one !== ''), ...ENCODED_VALUES];
  for (const [form, what] of partsReplaced(token, odd)) yield [form, `a token ${what}`];
  for (const { bytes, put } of encodedParts(token)) {
    for (let length = 0; length < bytes.length; length++) {
      yield [put(bytes.subarray(0, length)), `a token cut to ${length} of its ${bytes.length} bytes`];
    }
  }
}

/** Texts that overflow the stack of a recursive parser. */
function* nested(token: string): Generator<readonly [string, string]> {
  for (const one of ['.', ':', '[', '(']) {
    const deep = one.repeat(DEEP);
    yield [deep, `${one} repeated ${DEEP} times`];
    yield [token + deep, `a token followed by ${one} repeated ${DEEP} times`];
    yield [Buffer.from(deep).toString('base64url'), `${one} repeated ${DEEP} times, encoded`];
  }
}

/** Checks that refusals show no text that recurs for the same tokens with these keys, but never with other keys. */
async function showsNoKey(trial: CodecTrial, codec: RequestStateCodec, token: string): Promise<void> {
  const [peer, stranger] = [await trial.createPeerOrSelf(), await trial.createStranger()];
  const wordsOf = (one: RequestStateCodec, good = token): ReadonlySet<string> => {
    const all = damaged(good).flatMap(([bad]) => {
      const outcome = trial.outcome(one, bad);
      const { texts, bytes } = 'refusal' in outcome ? contentsOf(outcome.refusal) : { texts: [], bytes: [] };
      return [...texts, ...bytes.map((each) => Buffer.from(each).toString('hex'))];
    });
    return new Set(all.flatMap((each) => each.match(LONG_WORD) ?? []));
  };
  const here = [codec, codec, peer].map((one) => wordsOf(one));
  const elsewhere = [wordsOf(stranger), wordsOf(stranger, trial.seal(stranger, trial.text('state of a tool')))];
  const telling = [...(here[0] ?? [])].filter(
    (word) => /\d/.test(word) && here.every((words) => words.has(word)) && !elsewhere.some((words) => words.has(word)),
  );
  expectThat(telling.length === 0, 'a refusal shows text that depends on the key');
}

/** The error of seal for a payload beyond the declared limit. */
function tooLong(
  trial: CodecTrial,
  codec: RequestStateCodec,
  canary: Uint8Array,
): readonly (readonly [unknown, string])[] {
  const { maxPayloadBytes } = trial.supports;
  if (maxPayloadBytes >= LONGEST_PAYLOAD) return [];
  try {
    codec.seal(Buffer.concat([canary, new Uint8Array(maxPayloadBytes)]));
    return [];
  } catch (error) {
    return [[error, 'a payload that is too long']];
  }
}

/** The errors for bad tokens, each with its description. Other requirements report tokens that are not refused. */
function refusalsOf(
  trial: CodecTrial,
  codec: RequestStateCodec,
  bad: readonly (readonly [string, string])[],
  isSampled = true,
): readonly (readonly [unknown, string])[] {
  const tried = isSampled ? trial.sample(bad, () => trial.outcome(codec, trial.random.pick(bad)[0])) : bad;
  const refusals = tried.flatMap(([token, what]) => {
    const outcome = trial.outcome(codec, token);
    return 'refusal' in outcome ? [[outcome.refusal, what] as const] : [];
  });
  if (refusals.length === 0) throw new NotApplicable('it refuses nothing');
  return refusals;
}
