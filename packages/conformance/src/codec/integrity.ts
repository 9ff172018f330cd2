import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { RequestStateCodec } from '@sealring/core';
import { flipped, text, xor } from '../bytes.ts';
import { type Check, expectThat, NotApplicable } from '../requirement.ts';
import { contentsOf } from '../secrets.ts';
import { answerOf, BUDGET_MS, type CodecChecks, type CodecTrial, tokenText } from './trial.ts';

/** A forged token, with a description of the forgery. */
type Forgery = readonly [token: string, what: string];

const URL_SAFE = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
const CHARACTERS: readonly string[] = Array.from(URL_SAFE);
const ALPHABETS: readonly string[] = [
  URL_SAFE,
  URL_SAFE.replace('-_', '+/'),
  'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567',
  '0123456789abcdef',
];
const SWAPPED: readonly number[] = [1, 2, 4];

/** Unkeyed digests by name: encrypting one with the payload does not authenticate it. */
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
      // Characters that all three share are not part of the payload: a prefix, a dot.
      if (a === b && b === c) return a;
      const values = [a, b, c].map((each) => alphabet.indexOf(each));
      return alphabet[values.reduce((sum, value) => sum ^ value, 0)] ?? '';
    }).join('');
    if (summed.length === one.length) yield [summed, 'XORed with two others'];
  }
}

/** The parts of a token that encode bytes, each with a function that replaces them. */
function encodedParts(
  token: string,
): readonly { readonly bytes: Buffer; readonly put: (bytes: Uint8Array) => string }[] {
  const parts = token.split(/([.:~$])/);
  return parts.flatMap((part, i) =>
    (['hex', 'base64url'] as const)
      .map((encoding) => ({
        bytes: Buffer.from(part, encoding),
        put: (bytes: Uint8Array) => parts.with(i, Buffer.from(bytes).toString(encoding)).join(''),
      }))
      .filter(({ bytes, put }) => bytes.length > 0 && put(bytes) === token)
      .slice(0, 1),
  );
}

/** The parts of a token that are JSON objects, plain or encoded. */
function jsonParts(token: string): readonly { readonly part: string; readonly put: (json: string) => string }[] {
  const whole = { part: token, put: (json: string) => json };
  const inner = encodedParts(token).map(({ bytes, put }) => ({
    part: bytes.toString('utf8'),
    put: (json: string) => put(Buffer.from(json)),
  }));
  return [whole, ...inner].filter(({ part }) => {
    try {
      return /^{.*}$/s.test(part) && typeof JSON.parse(part) === 'object';
    } catch {
      return false;
    }
  });
}

/** Lengths of key ids, versions, nonces, salts and tags. */
const FIELDS: readonly number[] = [1, 2, 4, 8, 9, 12, 16, 18, 20, 24, 32, 48, 64];

/** A long token cut after a chunk, without a chunk, or with two chunks swapped, at every possible offset. */
function chunkings(token: string): readonly (() => string)[] {
  return encodedParts(token).flatMap(({ bytes, put }) => {
    const made: (() => string)[] = [];
    const ends = new Set<number>();
    for (const piece of new Set(CHUNKS.flatMap((size) => CHUNK_EXTRA.map((more) => size + more)))) {
      for (let start = 0; start <= 64 && start + 2 * piece <= bytes.length; start++) {
        const [one, two] = [start + piece, start + 2 * piece];
        ends.add(one);
        const [head, tail] = [bytes.subarray(0, start), bytes.subarray(two)];
        const [first, second] = [bytes.subarray(start, one), bytes.subarray(one, two)];
        made.push(() => put(Buffer.concat([head, second, tail])));
        if (start % 4 === 1) made.push(() => put(Buffer.concat([head, second, first, tail])));
      }
    }
    return [...made, ...Array.from(ends, (end) => () => put(bytes.subarray(0, end)))];
  });
}

/** Swapped neighbours, which a sum does not detect. */
function* swapsOf(token: string): Iterable<Forgery> {
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
        // A shorter digest matches by chance.
        if (length < 4 || digestOf(bytes).length < length) continue;
        for (let start = 0; start < Math.min(bytes.length - length, 48); start++) {
          const [head, first] = [bytes.subarray(0, start), bytes.subarray(start, start + length)];
          // The digest is at the end, or before its input.
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

/** Group orders, with their length in bytes. A signature (r, s) is as valid as (r, -s), and in Ed25519 s + n as s. */
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
      yield [put(Buffer.concat([bytes.subarray(0, -length), other])), 'with -s for s in its signature'];
    }
    if (bytes.length < 64) continue;
    const s = BigInt(`0x${Buffer.from(bytes.subarray(-32).toReversed()).toString('hex')}`) + ED25519_ORDER;
    const other = Buffer.from(s.toString(16).padStart(64, '0').slice(-64), 'hex').toReversed();
    yield [put(Buffer.concat([bytes.subarray(0, -32), other])), 'with the order of the group added to its signature'];
  }
}

/** Tokens made from texts in the refusal, which may reveal the correct tag. */
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

/** XOR differences for a payload and its digest, at any position. */
function changesOf(payload: Uint8Array, wanted: Uint8Array): readonly (readonly [Buffer, string])[] {
  const between = xor(payload, wanted);
  const mending = DIGESTS.flatMap(([name, digestOf]) => {
    const digests = xor(digestOf(payload), digestOf(wanted));
    const before = CUT_TO.filter((length) => length <= digests.length).map((length) =>
      Buffer.concat([digests.subarray(0, length), between]),
    );
    // Bytes that do not fit are cut off.
    return [Buffer.concat([between, digests]), ...before].map((change) => [change, name] as const);
  });
  return [...mending, [sameCrc(between), 'unchanged CRC-32']];
}

/** Four bytes and four more that cancel their effect on a CRC-32. */
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

/** Letters of other alphabets that look like Latin ones. */
const LOOK_ALIKES: ReadonlyMap<string, string> = new Map(
  'AА aа cс eе oо OО pр xх -‐ 1１ _＿'.split(' ').map((pair) => [pair.charAt(0), pair.charAt(1)]),
);

/**
 * Payloads of several lengths, so that the last character of a token has 0, 2 and 4 unused bits. Created for each
 * trial, since a target may modify them.
 */
function payloads(): readonly Uint8Array[] {
  return [
    ...['s', 'st', 'sta', 'state of a tool', '{"order":"A1","cents":4990}'].map(text),
    // Not UTF-8: a tag computed over decoded text would miss a change in it.
    new Uint8Array(30).fill(0x80),
  ];
}

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
/** Nine chunks of one kilobyte, or four of two. */
const CHUNKED_BYTES = 9_000;
/** Sizes of a chunk's payload and of its overhead: nonces, tags, lengths. */
const CHUNKS: readonly number[] = [256, 512, 1_000, 1_024, 2_048, 4_096];
const CHUNK_EXTRA: readonly number[] = [0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 56, 60, 64];
/** Characters at the start of a token that may hold a version or an algorithm. */
const HEADER_LENGTH = 8;
/** Names with which a token may request no check or a weaker one. */
const ALGORITHMS: readonly string[] = ['', ...'none None NONE null plain raw identity dir HS256 0'.split(' ')];
/** Prefixes that may declare a token unprotected. */
const UNPROTECTED: readonly string[] =
  'plain none raw debug test dev clear insecure unsigned b64 base64 json 0 v0 v1'.split(' ');
/** Enough guesses to hit a tag of one byte, and sometimes one of two. Through a pipe, the time limits them. */
const FORGERIES = 50_000;
const FORGING_MS = 2_000;
/** Tokens to combine, three at a time. Of tokens with random lengths, some have equal ones. */
const SUMMED = 40;
const SUMMED_BYTES = 24;
const MENDED_BYTES = 16;
const HUGE = 10_000_000;
/** Ten megabytes are copied and decoded in 100 ms; the rest is slack for a slow machine and a pipe. */
const HUGE_MS = 10_000;
const QUICK_MS = 2_000;

/** Short texts that are not tokens: member names, and characters that break decoders. */
export const GARBAGE: readonly string[] = '__proto__ constructor toString hasOwnProperty then null undefined NaN {} []'
  .split(' ')
  .concat('', '.', '..', '...', 'a', 'A', '-', '_', '=', '%', '%zz', '"', '0', '\0', 'é', '\ud800', '🙂');

/** A token split at each of its separators. */
function divisions(token: string): readonly { readonly parts: readonly string[]; readonly separator: string }[] {
  return ['.', ':', '~', '$', '-', '_']
    .map((separator) => ({ parts: token.split(separator), separator }))
    .filter(({ parts }) => parts.length > 1);
}

/** JSON headers with another algorithm, as in a JSON Web Token. */
function rewritten(header: string): readonly string[] {
  const made: Record<string, unknown>[] = [{ alg: 'none' }, { alg: 'none', typ: 'JWT' }];
  const content = Buffer.from(header, 'base64url').toString('utf8');
  if (content.startsWith('{') && content.endsWith('}')) {
    try {
      const given = Object(JSON.parse(content));
      made.push({ ...given, alg: 'none' }, { ...given, alg: 'dir', enc: 'none' }, { ...given, enc: 'none' });
    } catch {
      // Not JSON.
    }
  }
  return made.map((one) => Buffer.from(JSON.stringify(one)).toString('base64url'));
}

async function tokensOf(trial: CodecTrial): Promise<{ codec: RequestStateCodec; tokens: readonly string[] }> {
  const codec = await trial.create();
  return {
    codec,
    tokens: payloads()
      .filter((one) => trial.fits(one))
      .map((payload) => trial.seal(codec, payload)),
  };
}

type Variants = (token: string, other: string) => Iterable<readonly [string, string]>;

const DAMAGE: Variants[] = [];

/** Every damaged form of a token, with a description of the damage. */
export function* damagedForms(token: string, other: string): Iterable<readonly [string, string]> {
  for (const variantsOf of DAMAGE) {
    for (const [variant, what] of variantsOf(token, other))
      if (variant !== token && variant !== other) yield [variant, what];
  }
}

/** A check that every variant of every token is refused, followed by the check `also`. */
function refuses(variantsOf: Variants, also?: (trial: CodecTrial) => Promise<void>): Check<CodecTrial> {
  DAMAGE.push(variantsOf);
  return async (trial) => {
    const { codec, tokens } = await tokensOf(trial);
    // A cached token must not make a similar one valid.
    for (const token of tokens) trial.outcome(codec, token);
    const variants = tokens.flatMap((token, i) => {
      const other = tokens[(i + 1) % tokens.length] ?? token;
      return [...variantsOf(token, other)].map(([variant, what]) => ({ token, variant, what }));
    });
    const changed = variants.filter(({ variant }) => !tokens.includes(variant));
    if (changed.length === 0) throw new NotApplicable('its tokens have no such variant');
    const any = (): unknown => trial.outcome(codec, trial.random.pick(changed).variant);
    for (const { token, variant, what } of trial.sample(changed, any)) {
      trial.refused(codec, variant, `${tokenText(token)} ${what}`);
    }
    await also?.(trial);
  };
}

async function refusesSums(trial: CodecTrial): Promise<void> {
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

/** An attacker who knows a payload changes it and corrects the checksum. */
function mend(trial: CodecTrial, codec: RequestStateCodec): void {
  const until = performance.now() + FORGING_MS;
  const [payload, wanted] = [trial.bytes(MENDED_BYTES), trial.bytes(MENDED_BYTES)];
  const token = trial.seal(codec, payload);
  for (const [forged, what] of mended(token, payload, wanted)) {
    if (performance.now() > until) return;
    if (forged !== token) trial.refused(codec, forged, `${tokenText(token)} ${what}`);
  }
}

export const INTEGRITY_CHECKS: CodecChecks = {
  'CODEC-BIT-FLIP': refuses(function* (token) {
    for (let at = 0; at < token.length; at++) {
      for (let bit = 0; bit < 8; bit++) {
        const char = String.fromCharCode(token.charCodeAt(at) ^ (1 << bit));
        yield [replaced(token, at, char), `with bit ${bit} of character ${at} flipped`];
      }
      // Also flip bits of the encoded bytes.
      const value = URL_SAFE.indexOf(token[at] ?? '');
      for (let bit = 0; bit < (value < 0 ? 0 : 6); bit++) {
        yield [
          replaced(token, at, URL_SAFE[value ^ (1 << bit)] ?? ''),
          `with an encoded bit of character ${at} flipped`,
        ];
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
    // Chunked authentication must also cover completeness and order.
    const chunked = trial.seal(codec, trial.bytes(CHUNKED_BYTES));
    const cuts = chunkings(chunked);
    for (const cut of trial.sample(cuts, () => trial.outcome(codec, trial.random.pick(cuts)()))) {
      trial.refused(codec, cut(), `a token of ${chunked.length} characters with chunks removed or swapped`);
    }
    // Also a payload longer than a codec must accept, if this one accepts it, and quickly.
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
    for (const more of ['A', 'AA', 'AAA', 'AAAA', '0', '.', '~', '\0', token, other]) {
      yield [`${token}${more}`, `with ${tokenText(more)} after it`];
      yield [`${more}${token}`, `with ${tokenText(more)} before it`];
    }
    for (const more of ['#x', '?x', '&x=1', ';', ',', '|', '/', ':', '$', '!']) {
      yield [`${token}${more}`, `with ${tokenText(more)} after it`];
    }
    for (const { bytes, put } of encodedParts(token)) {
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
      yield [token.slice(0, at) + more + token.slice(at), `with ${tokenText(more)} in its middle`];
    }
    for (const { parts, separator } of divisions(token)) {
      for (const i of [...parts.keys(), parts.length]) {
        for (const more of ['', 'x', parts[i] ?? '', '*']) {
          yield [parts.toSpliced(i, 0, more).join(separator), `with ${tokenText(more)} inserted as part ${i}`];
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
        `with the end of another from ${at} on`,
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
          yield [name + separator + content, 'with only a payload, which declares itself unprotected'];
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
      const named = [...ALGORITHMS, ...rewritten(parts[0] ?? '')];
      for (const algorithm of named) {
        const others = parts.slice(1);
        for (const rest of [others, [...others.slice(0, -1), ''], others.slice(0, -1)]) {
          yield [
            [algorithm, ...rest].join(separator),
            `with ${tokenText(algorithm)} as first part of ${rest.length + 1}`,
          ];
        }
        yield [[parts[0], algorithm, ...parts.slice(2)].join(separator), `with ${tokenText(algorithm)} as second part`];
      }
    }
  }),
  'CODEC-TAG-LENGTH': async (trial) => {
    const token = trial.seal(await trial.create(), new Uint8Array(0));
    const bytes = Math.floor((token.length * (/^[0-9a-f]*$/i.test(token) ? 4 : 6)) / 8);
    // The shortest common tag, and a nonce that makes two tokens of one payload differ.
    const least = trial.supports.confidentiality ? 16 : 12;
    expectThat(bytes >= least, `the token of no bytes, ${tokenText(token)}, has ${bytes} bytes, fewer than ${least}`);
    return `the token of no bytes has ${bytes} bytes`;
  },
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
  'CODEC-CANONICAL-LAST-CHAR': refuses(function* (token) {
    for (const parts of [[token], token.split('.')]) {
      for (const [i, part] of parts.entries()) {
        for (const last of URL_SAFE) {
          const variant = parts.with(i, part.slice(0, -1) + last).join('.');
          if (variant !== token) yield [variant, `with ${last} as last character of part ${i}`];
        }
      }
    }
  }),
  'CODEC-CANONICAL-PADDING': refuses(function* (token) {
    for (const padding of ['=', '==', '===', '====', '%3D']) yield [token + padding, `with ${padding} after it`];
    yield [token.replaceAll('.', '=.'), 'with = before each dot'];
    yield [token.replace(/=+$/, ''), 'without its padding'];
  }),
  'CODEC-CANONICAL-SPACE': refuses(function* (token) {
    for (const { part, put } of jsonParts(token)) {
      const given = Object(JSON.parse(part));
      const forms = [
        ` ${part}`,
        `${part}\n`,
        JSON.stringify(given, undefined, 1),
        JSON.stringify(Object.fromEntries(Object.entries(given).toReversed())),
        part.replace('{', '{"x":1,'),
        part.replace(/}$/, ',"x":1}'),
        part.replace('{', `${part.slice(0, -1)},`),
      ];
      for (const form of forms) yield [put(form), 'with its JSON formatted differently'];
    }
    const middle = token.length >> 1;
    for (const space of [' ', '\n', '\r\n', '\t', '\v', '\f', '\u00a0', '\u2028', '\ufeff', '\u00ad', '\u200b', '\0']) {
      yield [space + token, `after ${JSON.stringify(space)}`];
      yield [token + space, `before ${JSON.stringify(space)}`];
      yield [token.slice(0, middle) + space + token.slice(middle), `around ${JSON.stringify(space)}`];
    }
  }),
  'CODEC-CANONICAL-ALPHABET': refuses(function* (token) {
    yield [token.replaceAll('-', '+').replaceAll('_', '/'), 'in the standard alphabet'];
    yield [token.replaceAll('+', '-').replaceAll('/', '_'), 'in the URL-safe alphabet'];
    yield [token.replace('-', '+'), 'with its first - as +'];
    yield [token.replace('_', '/'), 'with its first _ as /'];
  }),
  'CODEC-CANONICAL-CASE': refuses(function* (token) {
    yield [token.toUpperCase(), 'in upper case'];
    yield [token.toLowerCase(), 'in lower case'];
    for (let at = 0; at < token.length; at++) {
      const char = token[at] ?? '';
      const other = char === char.toUpperCase() ? char.toLowerCase() : char.toUpperCase();
      if (other !== char) yield [replaced(token, at, other), `with character ${at} in the other case`];
    }
  }),
  'CODEC-CANONICAL-UNICODE': refuses(function* (token) {
    for (let at = 0; at < token.length; at++) {
      const char = token[at] ?? '';
      const alike = LOOK_ALIKES.get(char);
      if (alike !== undefined) yield [replaced(token, at, alike), `with a look-alike of character ${at}`];
      // A decoder that keeps only the low byte reads the same character.
      for (const [more, what] of [
        [0x80, '128 higher'],
        [0x100, '256 higher'],
        [0xfee0, 'full width'],
      ] as const) {
        yield [replaced(token, at, String.fromCharCode(char.charCodeAt(0) + more)), `with character ${at} ${what}`];
      }
    }
    yield [`${token}\u0301`, 'with a combining accent'];
    yield [`\u200b${token}`, 'after a zero-width space'];
  }),
  'CODEC-CANONICAL-PERCENT': refuses(function* (token) {
    for (const at of [0, token.length >> 1, token.length - 1]) {
      const code = token.charCodeAt(at).toString(16);
      yield [replaced(token, at, `%${code}`), `with character ${at} percent-encoded`];
      yield [replaced(token, at, `%${code.toUpperCase()}`), `with character ${at} percent-encoded`];
      for (const escape of [`&#${token.charCodeAt(at)};`, `&#x${code};`, `\\u00${code}`, `\\x${code}`])
        yield [replaced(token, at, escape), `with ${escape} for character ${at}`];
    }
    yield [encodeURIComponent(token).replaceAll('.', '%2E'), 'percent-encoded'];
  }),
  'CODEC-GARBAGE': async (trial) => {
    const codec = await trial.create();
    const token = trial.seal(codec, trial.text('state'));
    const named = divisions(token).flatMap(({ parts, separator }) =>
      parts.flatMap((_, i) => GARBAGE.map((one) => parts.with(i, one).join(separator))),
    );
    const shaped = [...GARBAGE.map((one) => `${token.slice(0, 4)}${one}`), ...named.filter((one) => one !== token)];
    const random = Array.from({ length: 200 }, () => {
      const bytes = trial.random.bytes(trial.random.below(200));
      return Buffer.from(bytes).toString(trial.random.pick(['base64url', 'hex', 'latin1', 'utf8']));
    });
    for (const garbage of [...GARBAGE, ...shaped, ...random, 'A'.repeat(100_000)]) {
      trial.refused(codec, garbage, tokenText(garbage));
    }
  },
  'CODEC-HUGE': async (trial) => {
    const codec = await trial.create();
    const prefix = trial.seal(codec, trial.text('state')).slice(0, 8);
    // Increasing, so that quadratic time is found before it takes too long.
    for (const length of [22, 24, 26, 28, 30, 1_000, 10_000, 100_000, 1_000_000, HUGE]) {
      for (const huge of hugeTexts(prefix, length)) {
        const began = performance.now();
        trial.refused(codec, huge, `${huge.length} characters`);
        const tookMs = Math.round(performance.now() - began);
        expectThat(tookMs <= HUGE_MS, `${huge.length} characters were refused after ${tookMs} ms`);
      }
    }
  },
  'CODEC-HUGE-QUICK': async (trial) => {
    const codec = await trial.create();
    const prefix = trial.seal(codec, trial.text('state')).slice(0, 8);
    for (const huge of [...hugeTexts(prefix, HUGE), ' '.repeat(HUGE), 'é'.repeat(HUGE / 2)]) {
      const times: number[] = [];
      // The machine may be busy during one try.
      for (let i = 0; i < 3 && !times.some((ms) => ms <= QUICK_MS); i++) {
        const began = performance.now();
        trial.outcome(codec, huge);
        times.push(Math.round(performance.now() - began));
      }
      const least = Math.min(...times);
      expectThat(least <= QUICK_MS, `${huge.length} characters were refused after ${least} ms`);
    }
  },
  'CODEC-NOT-TEXT': async (trial) => {
    const codec = await trial.create();
    for (const [what, value] of notText(trial.seal(codec, trial.text('state')))) trial.refused(codec, value, what);
  },
  'CODEC-NOT-TEXT-CLASS': async (trial) => {
    const codec = await trial.create();
    for (const [what, value] of notText(trial.seal(codec, trial.text('state')))) {
      trial.expectRefusalClass(trial.refused(codec, value, what), what);
    }
  },
};

function hugeTexts(prefix: string, length: number): readonly string[] {
  // An error at the end makes a regular expression backtrack.
  return [
    'A'.repeat(length),
    `${'A'.repeat(length)}!`,
    `${prefix}${'A'.repeat(length)}`,
    `${prefix}${'.'.repeat(length / 10)}`,
  ];
}

function notText(token: string): readonly (readonly [string, unknown])[] {
  return [
    ['undefined', undefined],
    ['null', null],
    ['a number', 7],
    ['an object', {}],
    ['an array of a token', [token]],
    ['bytes of a token', new TextEncoder().encode(token)],
    ['a Buffer of a token', Buffer.from(token)],
  ];
}

function replaced(token: string, at: number, by: string): string {
  return token.slice(0, at) + by + token.slice(at + 1);
}
