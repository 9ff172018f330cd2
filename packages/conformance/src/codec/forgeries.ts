import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { RequestStateCodec } from '@sealring/core';
import { flipped, URL_SAFE, xor } from '../bytes.ts';
import { contentsOf } from '../secrets.ts';
import { tokensOf } from './damage.ts';
import { CHARACTERS, encodedParts, replaced } from './token-parts.ts';
import { type CodecChecks, type CodecTrial, tokenText } from './trial.ts';

/** A forged token, with a description of the forgery. */
type Forgery = readonly [token: string, what: string];

const ALPHABETS: readonly string[] = [
  URL_SAFE,
  URL_SAFE.replace('-_', '+/'),
  'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567',
  '0123456789abcdef',
];

const SWAPPED: readonly number[] = [1, 2, 4];

/** Unkeyed digests by name. Encrypting such a digest along with the payload does not authenticate the payload. */
const DIGESTS: readonly (readonly [string, (bytes: Uint8Array) => Buffer])[] = [
  ['CRC-32', (bytes) => bigEndian(crc32(bytes))],
  ['byte-swapped CRC-32', (bytes) => bigEndian(crc32(bytes)).swap32()],
  ['XOR', (bytes) => Buffer.of(bytes.reduce((sum, byte) => sum ^ byte, 0))],
  ['sum', (bytes) => Buffer.of(bytes.reduce((sum, byte) => sum + byte, 0) & 0xff)],
  ...['md5', 'sha1', 'sha256', 'sha512'].map(
    (name) => [name.toUpperCase(), (bytes: Uint8Array) => createHash(name).update(bytes).digest()] as const,
  ),
];

const CUT_TO: readonly number[] = [1, 4, 8, 12, 16, 20, 32, 64];

/** The XOR of three tokens of equal length, which a linear tag accepts. */
function* sumsOf(one: string, two: string, three: string): Iterable<Forgery> {
  for (const alphabet of ALPHABETS) {
    const summed = Array.from(one, (char, i) => {
      const [a, b, c] = [char, two[i] ?? '', three[i] ?? ''];
      // Characters that all three share, such as a prefix or a dot, are not part of the payload.
      if (a === b && b === c) return a;
      const values = [a, b, c].map((each) => alphabet.indexOf(each));
      return alphabet[values.reduce((sum, value) => sum ^ value, 0)] ?? '';
    }).join('');
    if (summed.length === one.length) yield [summed, 'XORed with two others'];
  }
}

/** Tokens in which two adjacent pieces are swapped, which a checksum that is a sum does not detect. */
export function* swapsOf(token: string): Iterable<Forgery> {
  for (const width of SWAPPED) {
    for (let at = 0; at + 2 * width <= token.length; at++) {
      const [one, other] = [token.slice(at, at + width), token.slice(at + width, at + 2 * width)];
      yield [
        token.slice(0, at) + other + one + token.slice(at + 2 * width),
        `with characters ${at} and ${at + width} swapped, ${width} at a time`,
      ];
    }
  }
}

/** Tokens with a changed payload and a corrected checksum, if the checksum needs no key. */
function* mended(token: string, payload: Uint8Array, wanted: Uint8Array): Iterable<Forgery> {
  const parts = token.split(/([.:~$])/);
  for (const [i, part] of parts.entries()) {
    for (const encoding of ['base64url', 'hex'] as const) {
      const bytes = Buffer.from(part, encoding);
      if (bytes.length < payload.length || bytes.toString(encoding) !== part) continue;
      for (const [change, what] of changesOf(payload, wanted)) {
        for (let at = 0; at + payload.length <= bytes.length; at++) {
          const changed = Buffer.from(bytes.map((byte, j) => byte ^ (change[j - at] ?? 0)));
          const forged = parts.with(i, changed.toString(encoding)).join('');
          yield [forged, `with another payload at byte ${at} and its ${what}`];
        }
      }
    }
  }
}

/** Changed tokens with a new digest, if the digest in the token needs no key. */
function* withoutKey(token: string): Iterable<Forgery> {
  for (const { bytes, put } of encodedParts(token)) {
    for (const [name, digestOf] of DIGESTS) {
      for (const length of CUT_TO) {
        // A shorter digest would match by chance.
        if (length < 4 || digestOf(bytes).length < length) continue;
        for (let start = 0; start < Math.min(bytes.length - length, 48); start++) {
          const [head, first] = [bytes.subarray(0, start), bytes.subarray(start, start + length)];
          // The digest may be at the end or before its input.
          for (const [tag, body, isFirst] of [
            [bytes.subarray(-length), bytes.subarray(start, -length), false],
            [first, bytes.subarray(start + length), true],
          ] as const) {
            const tagOf = (one: Uint8Array): Buffer => digestOf(one).subarray(0, length);
            if (body.length === 0 || !tagOf(body).equals(tag)) continue;
            const changed = flipped(body, body.length - 1);
            const parts = isFirst ? [head, tagOf(changed), changed] : [head, changed, tagOf(changed)];
            yield [put(Buffer.concat(parts)), `with a byte changed and its ${name}`];
          }
        }
      }
    }
  }
}

/** Group orders, with lengths in bytes. If a signature (r, s) is valid, so is (r, -s) or, in Ed25519, (r, s + n). */
const ORDERS: readonly (readonly [order: bigint, bytes: number])[] = [
  [0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n, 32],
  [0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n, 32],
  [0xffffffffffffffffffffffffffffffffffffffffffffffffc7634d81f4372ddf581a0db248b0a77aecec196accc52973n, 48],
];

const ED25519_ORDER = 0x1000000000000000000000000000000014def9dea2f79cd65812631a5cf5d3edn;

function* mirrored(token: string): Iterable<Forgery> {
  for (const { bytes, put } of encodedParts(token)) {
    for (const [order, length] of ORDERS) {
      if (bytes.length < 2 * length) continue;
      const s = BigInt(`0x${bytes.subarray(-length).toString('hex')}`);
      if (s === 0n || s >= order) continue;
      const other = Buffer.from((order - s).toString(16).padStart(2 * length, '0'), 'hex');
      yield [put(Buffer.concat([bytes.subarray(0, -length), other])), 'with -s instead of s in its signature'];
    }
    if (bytes.length < 64) continue;
    const s = BigInt(`0x${Buffer.from(bytes.subarray(-32).toReversed()).toString('hex')}`) + ED25519_ORDER;
    const other = Buffer.from(s.toString(16).padStart(64, '0').slice(-64), 'hex').toReversed();
    yield [put(Buffer.concat([bytes.subarray(0, -32), other])), 'with the order of the group added to its signature'];
  }
}

/** Expects tokens made from texts in a refusal to be refused, since such a text may be the correct tag. */
function tellsHow(trial: CodecTrial, codec: RequestStateCodec, token: string): void {
  const at = token.length >> 2;
  const changed = replaced(token, at, token[at] === 'A' ? 'B' : 'A');
  const outcome = trial.outcome(codec, changed);
  const texts = 'refusal' in outcome ? contentsOf(outcome.refusal).texts : [];
  for (const piece of new Set(texts.flatMap((one) => one.match(/[\w+/-]{16,}/g) ?? []))) {
    const what = `${tokenText(token)} with a character changed, and its end replaced by text from its refusal`;
    const parts = changed.split(/([.:~$])/);
    for (const forged of [changed.slice(0, -piece.length) + piece, parts.with(parts.length - 1, piece).join('')]) {
      if (forged !== token) trial.refused(codec, forged, what);
    }
  }
}

/** XOR differences that change a payload and correct its digest, which is before or after the payload. */
function changesOf(payload: Uint8Array, wanted: Uint8Array): readonly (readonly [Buffer, string])[] {
  const between = xor(payload, wanted);
  const mending = DIGESTS.flatMap(([name, digestOf]) => {
    const digests = xor(digestOf(payload), digestOf(wanted));
    const before = CUT_TO.filter((length) => length <= digests.length).map((length) =>
      Buffer.concat([digests.subarray(0, length), between]),
    );
    // Bytes beyond the end of the token are ignored, so the whole digest also covers shorter ones.
    return [Buffer.concat([between, digests]), ...before].map((change) => [change, name] as const);
  });
  return [...mending, [sameCrc(between), 'unchanged CRC-32']];
}

/** The first four bytes, and four more that cancel their effect on a CRC-32. */
function sameCrc(bytes: Uint8Array): Buffer {
  const head = Buffer.from(bytes.subarray(0, 4));
  const mending = bigEndian((crc32(head) ^ crc32(Buffer.alloc(4))) >>> 0).swap32();
  return Buffer.concat([head, mending]);
}

function bigEndian(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/**
 * Enough guesses to hit a tag of one byte, and sometimes a tag of two bytes. Through a pipe, the time limit reduces
 * their number.
 */
const FORGERIES = 50_000;
const FORGING_MS = 2_000;
/** Number of tokens to combine, three at a time. Among tokens of random length, some have the same length. */
const SUMMED = 40;
const SUMMED_BYTES = 24;
const MENDED_BYTES = 16;

export async function refusesSums(trial: CodecTrial): Promise<void> {
  const codec = await trial.create();
  const tokens = Array.from({ length: SUMMED }, () => trial.seal(codec, trial.bytes(SUMMED_BYTES)));
  for (const [i, one] of tokens.entries()) {
    const [two = '', three = ''] = tokens.filter((other, j) => j > i && other.length === one.length);
    if (three === '') continue;
    for (const [sum, what] of sumsOf(one, two, three)) {
      if (!tokens.includes(sum)) trial.refused(codec, sum, `${tokenText(one)} ${what}`);
    }
  }
}

/** Expects a token to be refused if an attacker who knows its payload changed it and corrected the checksum. */
function mend(trial: CodecTrial, codec: RequestStateCodec): void {
  const until = performance.now() + FORGING_MS;
  const [payload, wanted] = [trial.bytes(MENDED_BYTES), trial.bytes(MENDED_BYTES)];
  const token = trial.seal(codec, payload);
  for (const [forged, what] of mended(token, payload, wanted)) {
    if (performance.now() > until) return;
    if (forged !== token) trial.refused(codec, forged, `${tokenText(token)} ${what}`);
  }
}

export const FORGERY_CHECKS: CodecChecks = {
  'CODEC-FORGE': async (trial) => {
    const { codec, tokens } = await tokensOf(trial);
    const until = performance.now() + FORGING_MS;
    for (let i = 0; i < FORGERIES && performance.now() < until; i++) {
      const token = trial.random.pick(tokens);
      let forged = token;
      for (let changed = trial.random.below(4); changed >= 0; changed--) {
        const at = trial.random.below(token.length);
        forged = replaced(forged, at, trial.random.pick(CHARACTERS));
      }
      if (tokens.includes(forged)) continue;
      trial.refused(codec, forged, `${tokenText(forged)}, made from ${tokenText(token)},`);
    }
    mend(trial, codec);
    for (const token of tokens) {
      for (const [forged, what] of [...withoutKey(token), ...mirrored(token)]) {
        trial.refused(codec, forged, `${tokenText(token)} ${what}`);
      }
      tellsHow(trial, codec, token);
    }
  },
};
