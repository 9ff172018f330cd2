import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { xor } from '../bytes.ts';

/** A token that nobody sealed, and how it was made. */
type Forgery = readonly [token: string, what: string];

const ALPHABETS: readonly string[] = [
  'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_',
  'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/',
  'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567',
  '0123456789abcdef',
];
/** Characters that stand for one byte in hex and for three in base64. */
const SWAPPED: readonly number[] = [2, 4];

/**
 * Digests that need no key, by their names: a codec that encrypts one with the payload hides how to correct it, and no
 * more.
 */
const DIGESTS: readonly (readonly [string, (bytes: Uint8Array) => Buffer])[] = [
  ['CRC-32', (bytes) => bigEndian(crc32(bytes))],
  ['CRC-32 turned round', (bytes) => bigEndian(crc32(bytes)).swap32()],
  ['exclusive or', (bytes) => Buffer.of(bytes.reduce((sum, byte) => sum ^ byte, 0))],
  ['sum', (bytes) => Buffer.of(bytes.reduce((sum, byte) => sum + byte, 0) & 0xff)],
  ...['md5', 'sha1', 'sha256', 'sha512'].map(
    (name) => [name.toUpperCase(), (bytes: Uint8Array) => createHash(name).update(bytes).digest()] as const,
  ),
];
/** What a digest in front of its payload is cut to, bytes. */
const CUT_TO: readonly number[] = [1, 4, 8, 12, 16, 20, 32, 64];

/** The exclusive or of three tokens of one length: a tag that is linear takes it. */
export function* sumsOf(one: string, two: string, three: string): Iterable<Forgery> {
  for (const alphabet of ALPHABETS) {
    const summed = Array.from(one, (char, i) => {
      const [a, b, c] = [char, two[i] ?? '', three[i] ?? ''];
      // What all have in common is no part of a payload: a prefix, a dot.
      if (a === b && b === c) return a;
      const values = [a, b, c].map((each) => alphabet.indexOf(each));
      return alphabet[values.reduce((sum, value) => sum ^ value, 0)] ?? '';
    }).join('');
    if (summed.length === one.length) yield [summed, 'plus two others, bit by bit,'];
  }
}

/** Neighbours that changed places: a sum does not see it. */
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

/** A token whose payload is changed, and its checksum with it, where that takes no key. */
export function* mended(token: string, payload: Uint8Array, wanted: Uint8Array): Iterable<Forgery> {
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

/** What to add bit by bit to a payload and its digest, wherever they are. */
function changesOf(payload: Uint8Array, wanted: Uint8Array): readonly (readonly [Buffer, string])[] {
  const between = xor(payload, wanted);
  const mending = DIGESTS.flatMap(([name, digestOf]) => {
    const digests = xor(digestOf(payload), digestOf(wanted));
    const before = CUT_TO.filter((length) => length <= digests.length).map((length) =>
      Buffer.concat([digests.subarray(0, length), between]),
    );
    // Behind it, what does not fit is cut off.
    return [Buffer.concat([between, digests]), ...before].map((change) => [change, name] as const);
  });
  return [...mending, [sameCrc(between), 'unchanged CRC-32']];
}

/** Four bytes, and four more that undo what they do to a CRC-32: its polynomial, so to speak. */
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
