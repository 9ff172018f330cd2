import { withBitFlipped } from '../bytes.ts';
import { expectThat } from '../requirement.ts';
import { chunkings, longBeginnings, refuses } from './damage.ts';
import { refusesSums, swapsOf } from './forgeries.ts';
import { CHARACTERS, divisions, encodedParts, replaced } from './token-parts.ts';
import { answerOf, BUDGET_MS, type CodecChecks, tokenText } from './trial.ts';

/** Lengths of key ids, versions, nonces, salts and tags. */
const FIELDS: readonly number[] = [1, 2, 4, 8, 9, 12, 16, 18, 20, 24, 32, 48, 64];

/** Text that a lenient decoder strips. */
const AROUND: readonly (readonly [string, string])[] = [
  ['"', '"'],
  ["'", "'"],
  ['<', '>'],
  ['(', ')'],
  ['Bearer ', ''],
  ['requestState=', ''],
];

const LONG_BYTES = 60_000;
const LONG_CHANGES = 64;
/** Number of repetitions of a text of six bytes, and of leading bytes that may hold a flag for compression. */
const COMPRESSIBLE = 1_500;
const HEAD_BYTES = 64;
/** Enough for about nine chunks of one kilobyte, or four chunks of two kilobytes. */
const CHUNKED_BYTES = 9_000;
/** Number of leading characters of a token that may hold a version or an algorithm. */
const HEADER_LENGTH = 8;
/** Names of algorithms with which a token may request a weaker check or no check at all. */
const ALGORITHMS: readonly string[] = ['', ...'none None NONE null plain raw identity dir HS256 0'.split(' ')];

/** Prefixes that may declare a token unprotected. */
const UNPROTECTED: readonly string[] =
  'plain none raw debug test dev clear insecure unsigned b64 base64 json 0 v0 v1'.split(' ');

const NONE: readonly string[] = ['none', 'None', 'NONE', 'nOnE'];

/** JSON headers with another algorithm, as in a JSON Web Token. */
function rewritten(header: string): readonly string[] {
  const made: Record<string, unknown>[] = [{ alg: 'none' }, { alg: 'none', typ: 'JWT' }];
  const content = Buffer.from(header, 'base64url').toString('utf8');
  if (content.startsWith('{') && content.endsWith('}')) {
    try {
      const given = Object(JSON.parse(content));
      made.push(
        ...NONE.map((alg) => ({ ...given, alg })),
        { ...given, alg: 'dir', enc: 'none' },
        { ...given, enc: 'none' },
      );
    } catch {
      // Not JSON.
    }
  }
  return made.map((one) => Buffer.from(JSON.stringify(one)).toString('base64url'));
}

export const INTEGRITY_CHECKS: CodecChecks = {
  'CODEC-BIT-FLIP': refuses(function* (token) {
    for (let at = 0; at < token.length; at++) {
      for (let bit = 0; bit < 8; bit++) {
        const char = String.fromCharCode(token.charCodeAt(at) ^ (1 << bit));
        yield [replaced(token, at, char), `with bit ${bit} of character ${at} flipped`];
      }
      // This also flips bits of the encoded bytes.
      for (const char of withBitFlipped(token.charAt(at))) {
        yield [replaced(token, at, char), `with an encoded bit of character ${at} flipped`];
      }
    }
    for (const { bytes, put } of encodedParts(token)) {
      for (const length of FIELDS.filter((one) => one <= bytes.length)) {
        for (const byte of [0, 0xff]) {
          const blank = Buffer.alloc(length, byte);
          yield [put(Buffer.concat([blank, bytes.subarray(length)])), `with ${length} leading bytes set to ${byte}`];
          yield [
            put(Buffer.concat([bytes.subarray(0, -length), blank])),
            `with ${length} trailing bytes set to ${byte}`,
          ];
        }
      }
    }
  }),
  'CODEC-LONG-PAYLOAD': async (trial) => {
    const codec = await trial.create();
    const token = trial.seal(codec, trial.bytes(LONG_BYTES));
    for (let i = 0; i < LONG_CHANGES; i++) {
      const at = Math.floor(((i + trial.random.below(1_000) / 1_000) * token.length) / LONG_CHANGES);
      const other = trial.random.pick(CHARACTERS.filter((char) => char !== token[at]));
      trial.refused(codec, replaced(token, at, other), `the token of ${LONG_BYTES} bytes with character ${at} changed`);
    }
    // A flag that says whether the payload is compressed must also be authenticated.
    const repetitive = trial.seal(codec, trial.text('state '.repeat(COMPRESSIBLE)));
    for (const { bytes, put } of encodedParts(repetitive)) {
      for (const at of Array.from({ length: Math.min(HEAD_BYTES, bytes.length) }).keys()) {
        for (const bit of [0, 1, 6, 7]) {
          const changed = bytes.with(at, (bytes[at] ?? 0) ^ (1 << bit));
          trial.refused(
            codec,
            put(changed),
            `the token of a compressible payload with bit ${bit} of byte ${at} flipped`,
          );
        }
      }
    }
    // Chunked authentication must also cover completeness and order.
    const [chunked, another] = [0, 1].map(() => trial.seal(codec, trial.bytes(CHUNKED_BYTES))) as [string, string];
    const cuts = chunkings(chunked, another);
    for (const cut of trial.sample(cuts, () => trial.outcome(codec, trial.random.pick(cuts)()))) {
      trial.refused(codec, cut(), `a token of ${chunked.length} characters with chunks removed, swapped or replaced`);
    }
    const beginnings = longBeginnings(token);
    for (const cut of trial.sample(beginnings, () => trial.outcome(codec, trial.random.pick(beginnings)()))) {
      trial.refused(codec, cut(), `the beginning of a token of ${token.length} characters`);
    }
    // Try payloads longer than a codec must accept, if this codec accepts them quickly.
    for (const length of [300_000, 1_100_000]) {
      const until = performance.now() + BUDGET_MS;
      const longer = answerOf(() => codec.seal(trial.random.bytes(length)));
      if (typeof longer !== 'string') return;
      for (const part of [0.3, 0.5, 0.7, 0.9, 0.99]) {
        const at = Math.floor(longer.length * part);
        const other = longer[at] === 'A' ? 'B' : 'A';
        trial.refused(codec, replaced(longer, at, other), `a token of ${longer.length} characters with one changed`);
        if (performance.now() > until) return;
      }
    }
  },
  'CODEC-TRUNCATION': refuses(function* (token) {
    for (let length = 0; length < token.length; length++) {
      yield [token.slice(0, length), `cut to ${length} characters`];
      yield [token.slice(token.length - length), `without its first ${token.length - length} characters`];
    }
    for (let at = 0; at < token.length; at++) yield [replaced(token, at, ''), `without character ${at}`];
    for (const { parts, separator } of divisions(token)) {
      for (const [i, part] of parts.entries()) {
        for (let length = 0; length < part.length; length++) {
          yield [parts.with(i, part.slice(0, length)).join(separator), `with part ${i} cut to ${length} characters`];
        }
      }
    }
  }),
  'CODEC-EXTENSION': refuses(function* (token, other) {
    for (const more of ['A', 'AA', 'AAA', 'AAAA', '0', '1', '.', '~', '\0', token, other]) {
      yield [`${token}${more}`, `with ${tokenText(more)} after it`];
      yield [`${more}${token}`, `with ${tokenText(more)} before it`];
    }
    for (const more of ['#x', '?x', '&x=1', ';', ',', '|', '/', ':', '$', '!']) {
      yield [`${token}${more}`, `with ${tokenText(more)} after it`];
    }
    for (const { parts, separator } of divisions(token)) {
      // A is the digit zero of base64 and 1 that of base58; a decoder may ignore leading zeros.
      for (const [i, part] of parts.entries()) {
        for (const zero of ['A', '1'])
          yield [parts.with(i, zero + part).join(separator), `with ${zero} before part ${i}`];
      }
    }
    for (const { bytes, put } of encodedParts(token)) {
      for (const [at, byte] of bytes.subarray(0, HEADER_LENGTH).entries()) {
        const longer = Buffer.concat([bytes.subarray(0, at), Buffer.of(byte | 0x80, 0), bytes.subarray(at + 1)]);
        yield [put(longer), `with a longer form of the number at byte ${at}`];
      }
      for (const length of [0, ...FIELDS].filter((one) => one < bytes.length)) {
        const at = bytes.length - length;
        const longer = Buffer.concat([bytes.subarray(0, at), Buffer.of(0), bytes.subarray(at)]);
        yield [put(longer), `with a zero byte before its last ${length} bytes`];
      }
    }
    for (let at = 0; at < token.length; at++) {
      yield [replaced(token, at, `${token[at]}${token[at]}`), `with character ${at} doubled`];
    }
    for (const more of ['-', '_', '.', 'A', '0']) {
      const at = token.length >> 1;
      yield [token.slice(0, at) + more + token.slice(at), `with ${tokenText(more)} in the middle`];
    }
    for (const { parts, separator } of divisions(token)) {
      for (const i of [...parts.keys(), parts.length]) {
        for (const more of ['', 'x', parts[i] ?? '', '*']) {
          yield [parts.toSpliced(i, 0, more).join(separator), `with ${tokenText(more)} inserted as part ${i}`];
        }
      }
      // Number parsers accept these forms of a key number or a version.
      for (const [i, part] of parts.entries()) {
        for (const form of [`0${part}`, `+${part}`, ` ${part}`, `${part}x`, `${part} `, `${part}e0`]) {
          yield [parts.with(i, form).join(separator), `with ${tokenText(form)} as part ${i}`];
        }
      }
    }
    for (const separator of [',', ' ', ';', '|', '\n']) {
      yield [`${token}${separator}${other}`, `followed by another, with ${tokenText(separator)} between`];
      yield [`${other}${separator}${token}`, `after another, with ${tokenText(separator)} between`];
    }
    for (const [before, after] of AROUND) yield [before + token + after, `between ${before} and ${after}`];
    for (let length = 1; length <= HEADER_LENGTH; length++) {
      yield [token.slice(0, length) + token, `with its first ${length} characters before it`];
      yield [token + token.slice(-length), `with its last ${length} characters after it`];
    }
  }),
  'CODEC-SPLICE': refuses(function* (token, other) {
    for (let at = 1; at < Math.min(token.length, other.length); at++) {
      yield [token.slice(0, at) + other.slice(at), `up to character ${at}, then another token`];
      yield [
        token.slice(0, at) + other.slice(other.length - (token.length - at)),
        `with the end of another token from character ${at} on`,
      ];
    }
    for (const { parts: mine, separator } of divisions(token)) {
      const theirs = other.split(separator);
      if (mine.length !== theirs.length) continue;
      for (let part = 0; part < mine.length; part++) {
        const mixed = mine.with(part, theirs[part] ?? '');
        yield [mixed.join(separator), `with part ${part} of another token`];
        yield [mine.toSpliced(part, 1).join(separator), `without part ${part}`];
        yield [mine.with(part, '').join(separator), `with part ${part} emptied`];
      }
      // A tag over concatenated parts does not detect a moved boundary.
      for (let part = 1; part < mine.length; part++) {
        const [left = '', right = ''] = [mine[part - 1], mine[part]];
        for (const by of [1, 2, 4, -1, -2, -4]) {
          const all = left + right;
          const at = left.length + by;
          const moved = mine.toSpliced(part - 1, 2, all.slice(0, at), all.slice(at));
          yield [moved.join(separator), `with the end of part ${part - 1} moved by ${by} characters`];
        }
      }
    }
    yield* swapsOf(token);
  }, refusesSums),
  'CODEC-DOWNGRADE': refuses(function* (token) {
    for (const name of UNPROTECTED) {
      for (const content of ['c3RhdGU', '7374617465', 'state']) {
        for (const separator of '.:~-$') {
          yield [name + separator + content, 'with only a payload and a prefix that declares it unprotected'];
          yield [`${name}${separator}${content}${separator}`, 'with only a payload and an empty tag'];
        }
      }
    }
    for (let at = 0; at < Math.min(HEADER_LENGTH, token.length); at++) {
      for (const digit of '0123456789') yield [replaced(token, at, digit), `with ${digit} as character ${at}`];
    }
    for (const { bytes, put } of encodedParts(token)) {
      for (let at = 0; at < Math.min(HEADER_LENGTH, bytes.length); at++) {
        for (const value of [0, 1, 2, 3, 0x30, 0x7f, 0x80, 0xff]) {
          yield [put(bytes.with(at, value)), `with ${value} as byte ${at}`];
        }
      }
    }
    const [version = ''] = /\d+(?=[.:~$])/.exec(token.slice(0, HEADER_LENGTH)) ?? [];
    const same = [`0${version}`, `+${version}`, ` ${version}`, `${version}.0`, `${version}e0`, `0x${version}`];
    for (const number of version === '' ? [] : same) {
      yield [token.replace(version, number), `with ${number} for ${version}`];
    }
    for (const { parts, separator } of divisions(token)) {
      for (const [i, part] of parts.entries()) {
        // These numbers have the same lowest bits as the part.
        for (const bits of /^\d{1,20}$/.test(part) ? [8n, 16n, 31n, 32n, 53n, 64n] : []) {
          yield [parts.with(i, `${BigInt(part) + 2n ** bits}`).join(separator), `with 2^${bits} added to part ${i}`];
        }
      }
      const named = [...ALGORITHMS, ...rewritten(parts[0] ?? '')];
      for (const algorithm of named) {
        const others = parts.slice(1);
        for (const rest of [others, [...others.slice(0, -1), ''], others.slice(0, -1)]) {
          yield [
            [algorithm, ...rest].join(separator),
            `with ${tokenText(algorithm)} as the first of ${rest.length + 1} parts`,
          ];
        }
        yield [
          [parts[0], algorithm, ...parts.slice(2)].join(separator),
          `with ${tokenText(algorithm)} as the second part`,
        ];
      }
    }
  }),
  'CODEC-TAG-LENGTH': async (trial) => {
    const token = trial.seal(await trial.create(), new Uint8Array(0));
    const bytes = Math.floor((token.length * (/^[0-9a-f]*$/i.test(token) ? 4 : 6)) / 8);
    // The shortest tag in common use has 12 bytes. A nonce that makes two tokens of one payload differ adds at least 4.
    const least = trial.supports.confidentiality ? 16 : 12;
    const words = 'the token of an empty payload';
    expectThat(bytes >= least, `${words}, ${tokenText(token)}, has ${bytes} bytes, fewer than ${least}`);
    return `${words} has ${bytes} bytes`;
  },
};
