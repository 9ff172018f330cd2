import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { inspect } from 'node:util';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { AesGcmRequestStateCodec } from '../../src/codec/aes-gcm-codec.ts';
import { InvalidRequestState } from '../../src/contracts/codec.ts';
import {
  derivePythonKey,
  PYTHON_MAX_PAYLOAD_BYTES,
  type PythonToken,
  parsePythonToken,
  sealPython,
  unsealPython,
} from '../../src/formats/python.ts';
import { decodeBase64url, MAX_TOKEN_LENGTH } from '../../src/formats/token.ts';

type Pieces = readonly (readonly [string, number])[];

interface VectorKey {
  readonly name: string;
  readonly kind: 'bytes' | 'bytearray' | 'str';
  readonly hex: string;
  readonly text?: string;
  readonly kid: string;
}

interface Vector {
  readonly name: string;
  readonly class: string;
  readonly ring: readonly string[];
  readonly token?: string;
  readonly tokenPieces?: Pieces;
  readonly expect: 'accept' | 'reject';
  readonly payload?: string;
  readonly payloadPieces?: Pieces;
  readonly sealedBy?: string;
  readonly kid?: string;
  readonly nonce?: string;
  readonly reason?: string;
}

interface Construction {
  readonly name: string;
  readonly keys: readonly { readonly hex?: string; readonly text?: string; readonly type?: string }[];
  readonly error: 'ValueError' | 'TypeError' | 'UnicodeEncodeError';
}

const file: { keys: VectorKey[]; construction: Construction[]; vectors: Vector[] } = JSON.parse(
  readFileSync(new URL('../../../../vectors/python-codec.json', import.meta.url), 'utf8'),
);
const vectorKeys = new Map(file.keys.map((key) => [key.name, key]));

const join = (whole: string | undefined, pieces: Pieces = []): string =>
  whole ?? pieces.map(([piece, times]) => piece.repeat(times)).join('');
const tokenOf = (vector: Vector): string => join(vector.token, vector.tokenPieces);
const bytes = (hex: string): Uint8Array => Uint8Array.from(Buffer.from(hex, 'hex'));

function keyOf(name: string | undefined): VectorKey {
  const key = vectorKeys.get(name ?? '');
  if (key === undefined) throw new Error(`no key ${name} in the vectors`);
  return key;
}

/** The parser's result for a text; any error but `malformed` escapes. */
function parsedUnlessMalformed(text: string): PythonToken | undefined {
  try {
    return parsePythonToken(text);
  } catch (error) {
    if (error instanceof InvalidRequestState && error.reason === 'malformed') return undefined;
    throw error;
  }
}

function codecOf(vector: Vector): AesGcmRequestStateCodec {
  return new AesGcmRequestStateCodec(vector.ring.map((name) => keyOf(name).text ?? bytes(keyOf(name).hex)));
}

function reasonOf(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    if (error instanceof InvalidRequestState) {
      return error.message === error.reason ? error.reason : 'a message that differs from the reason';
    }
    throw error;
  }
  return 'accepted';
}

const secret = Uint8Array.from({ length: 32 }, (_, index) => index);
const nonce = Uint8Array.from({ length: 12 }, (_, index) => 200 + index);
const codec = new AesGcmRequestStateCodec([secret]);
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

const token = (payloadBytes: number): string =>
  sealPython(derivePythonKey(secret), nonce, new Uint8Array(payloadBytes));

function medianNanoseconds(action: () => unknown): number {
  const times = Array.from({ length: 301 }, () => {
    const start = process.hrtime.bigint();
    action();
    return Number(process.hrtime.bigint() - start);
  });
  return times.toSorted((a, b) => a - b)[150] ?? Number.NaN;
}

const hexOf = (text: string): string => Buffer.from(text).toString('hex');

describe('vectors of the MCP Python SDK', () => {
  const accepted = file.vectors.filter((vector) => vector.expect === 'accept');
  const rejected = file.vectors.filter((vector) => vector.expect === 'reject');

  test('the file has as many vectors of the MCP Python SDK as its description states', () => {
    expect([accepted.length, rejected.length, file.construction.length]).toEqual([122, 449, 12]);
  });

  test.each(file.keys)('the secret $name has the same fingerprint as in Python', (key) => {
    expect(derivePythonKey(bytes(key.hex)).kid).toBe(key.kid);
  });

  test.each(accepted)('$name: unseals to the payload, and sealing the payload gives exactly the token', (vector) => {
    const payload = bytes(join(vector.payload, vector.payloadPieces));
    expect(codecOf(vector).unseal(tokenOf(vector))).toStrictEqual(payload);
    const key = derivePythonKey(bytes(keyOf(vector.sealedBy).hex));
    expect(key.kid).toBe(vector.kid);
    expect(sealPython(key, bytes(vector.nonce ?? ''), payload)).toBe(tokenOf(vector));
  });

  test.each(rejected)('$name: is refused for the same reason as in Python', (vector) => {
    const reason = reasonOf(() => codecOf(vector).unseal(tokenOf(vector)));
    const given = vector.reason === 'seal' ? 'authentication failed' : vector.reason;
    expect(reason).toBe(vector.class === 'huge' ? 'malformed' : given);
  });

  test.each(file.construction)('$name: is not a valid list of keys', ({ keys, error }) => {
    const wrongTypes: Readonly<Record<string, unknown>> = { int: 32, NoneType: null, list: [1, 2] };
    const given: unknown = keys.map(({ hex, text, type }) => {
      if (text !== undefined) return text;
      if (hex !== undefined) return bytes(hex);
      return wrongTypes[type ?? ''];
    });
    expect(() => Reflect.construct(AesGcmRequestStateCodec, [given])).toThrow(
      error === 'ValueError' ? RangeError : TypeError,
    );
  });
});

describe('keys', () => {
  test.each([
    ['nothing', undefined],
    ['null', null],
    ['a key instead of a list of keys', secret],
    ['a text instead of a list of keys', 'x'.repeat(32)],
    ['a list with a hole', Object.assign(Array(3), { 0: secret, 2: secret })],
    ['a number', [32]],
    ['an array of numbers', [[...secret]]],
    ['an ArrayBuffer', [secret.buffer]],
    ['a Uint16Array', [new Uint16Array(32)]],
    ['a look-alike', [{ length: 32, 0: 1 }]],
  ])('%s causes a TypeError and is never coerced (F17)', (_, keys) => {
    expect(() => Reflect.construct(AesGcmRequestStateCodec, [keys])).toThrow(TypeError);
  });

  test('an error names the key by its index and shows no part of it', () => {
    const short = 'canary-of-31-bytes-xxxxxxxxxxxx';
    expect(() => new AesGcmRequestStateCodec([secret, short])).toThrow(
      /keys\[1\].*got 31: pass the output of "openssl rand -base64 32"$/,
    );
    expect(() => new AesGcmRequestStateCodec([secret, short])).not.toThrow(/canary/);
    expect(() => new AesGcmRequestStateCodec([secret, 'x'.repeat(40), secret])).toThrow(/keys\[2\]/);
  });

  test('a key that repeats one byte is accepted, as in Python', () => {
    const constant = new AesGcmRequestStateCodec([new Uint8Array(32)]);
    expect(constant.unseal(constant.seal(secret))).toStrictEqual(secret);
  });

  test('keys are copied: overwriting the given array changes nothing, and the given array is not overwritten', () => {
    const mine = Uint8Array.from(secret);
    const copied = new AesGcmRequestStateCodec([mine]);
    expect(mine).toStrictEqual(secret);
    mine.fill(0);
    expect(codec.unseal(copied.seal(nonce))).toStrictEqual(nonce);
  });

  test('the first key seals, and every key unseals, whatever the order of the others', () => {
    const [a, b, c] = [secret, 'second secret, of 32 bytes or so', Buffer.alloc(40, 'third')];
    const one = new AesGcmRequestStateCodec([a, b, c]);
    const other = new AesGcmRequestStateCodec([c, b, a]);
    expect(other.unseal(one.seal(nonce))).toStrictEqual(nonce);
    expect(new AesGcmRequestStateCodec([a]).unseal(one.seal(nonce))).toStrictEqual(nonce);
    expect(reasonOf(() => new AesGcmRequestStateCodec([b]).unseal(one.seal(nonce)))).toBe('unknown key');
  });
});

describe('payloads', () => {
  test.each([
    [undefined],
    [null],
    ['text'],
    [5],
    [[1, 2]],
    [{ length: 3 }],
    [new ArrayBuffer(4)],
    [new Uint16Array(2)],
  ])('%o as the payload causes a TypeError', (payload) => {
    expect(() => Reflect.apply(Reflect.get(codec, 'seal'), codec, [payload])).toThrow(TypeError);
  });

  test('every payload is returned as a separate Uint8Array', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300, size: 'max' }), (payload) => {
        const before = Uint8Array.from(payload);
        const opened = codec.unseal(codec.seal(payload));
        expect(opened).toStrictEqual(before);
        expect(payload).toStrictEqual(before);
        expect(opened.buffer.byteLength).toBe(opened.length);
      }),
    );
  });

  test('the longest payload makes a valid token, and a payload of one more byte is refused at once', () => {
    const longest = codec.seal(new Uint8Array(PYTHON_MAX_PAYLOAD_BYTES));
    expect(longest.length).toBeLessThanOrEqual(MAX_TOKEN_LENGTH);
    expect(codec.unseal(longest)).toHaveLength(PYTHON_MAX_PAYLOAD_BYTES);
    expect(() => codec.seal(new Uint8Array(PYTHON_MAX_PAYLOAD_BYTES + 1))).toThrow(RangeError);
  });

  test('two seals of one payload differ in nonce', () => {
    const nonces = new Set(
      Array.from({ length: 1000 }, () => Buffer.from(parsePythonToken(codec.seal(nonce)).nonce).toString('hex')),
    );
    expect(nonces.size).toBe(1000);
  });

  test('a nonce of the wrong length is refused', () => {
    for (const length of [0, 8, 11, 13, 16]) {
      expect(() => sealPython(derivePythonKey(secret), new Uint8Array(length), secret)).toThrow(TypeError);
    }
  });
});

describe('tokens', () => {
  test.each([[undefined], [null], [5], [{}], [[]], [Buffer.from('v1.')], [Symbol('v1.')], [Object('v1.')]])(
    'the non-string %o is malformed (F17)',
    (value) => {
      expect(reasonOf(() => Reflect.apply(Reflect.get(codec, 'unseal'), codec, [value]))).toBe('malformed');
    },
  );

  test('any text is either parsed or malformed, and a parsed text has no second spelling', () => {
    const nearTokens = fc
      .array(fc.constantFrom(...ALPHABET.split(''), '=', '+', '/', '\n', '.', '\u00e9', '\ud83d'), {
        maxLength: 60,
        size: 'max',
      })
      .map((units) => `v1.${units.join('')}`);
    const wellFormed = fc
      .uint8Array({ maxLength: 80, size: 'max' })
      .map((body) => `v1.${Buffer.from(body).toString('base64url')}`);
    let parsedCount = 0;
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary' }), nearTokens, wellFormed), (text) => {
        const parsed = parsedUnlessMalformed(text);
        if (parsed === undefined) return true;
        parsedCount++;
        const body = Buffer.concat([Buffer.from(parsed.kid, 'hex'), parsed.nonce, parsed.ciphertext, parsed.tag]);
        return `v1.${body.toString('base64url')}` === text && parsed.nonce.length === 12 && parsed.tag.length === 16;
      }),
      { numRuns: 2000 },
    );
    expect(parsedCount).toBeGreaterThan(100);
  });

  test('every well-formed body of 32 bytes or more is parsed', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 32, maxLength: 200, size: 'max' }), (body) => {
        const parsed = parsePythonToken(`v1.${Buffer.from(body).toString('base64url')}`);
        expect(parsed.ciphertext).toHaveLength(body.length - 32);
      }),
    );
  });

  test('changing any one character of a token makes it invalid', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 40, size: 'max' }),
        fc.nat(),
        fc.string({ minLength: 1, maxLength: 1 }),
        (payload, at, unit) => {
          const sealed = codec.seal(payload);
          const index = at % sealed.length;
          fc.pre(sealed[index] !== unit);
          const changed = sealed.slice(0, index) + unit + sealed.slice(index + 1);
          expect(reasonOf(() => codec.unseal(changed))).not.toBe('accepted');
        },
      ),
      { numRuns: 1000 },
    );
  });

  test.each([0, 1, 2, 3, 4, 5])('a token of a %i-byte payload has one spelling (F18)', (length) => {
    const sealed = token(length);
    expect(codec.unseal(sealed)).toHaveLength(length);
    const body = sealed.slice(3);
    // Two characters left over carry 8 of 12 bits, three carry 16 of 18: the unused low bits must be zero.
    const step = [1, 0, 16, 4][body.length % 4] ?? 0;
    for (let value = 0; value < 64; value++) {
      const changed = sealed.slice(0, -1) + ALPHABET.charAt(value);
      if (changed === sealed) continue;
      expect(reasonOf(() => codec.unseal(changed))).toBe(value % step === 0 ? 'authentication failed' : 'malformed');
    }
    const junk = ['=', '==', '\n', ' ', '\t', '\0', '.', '\u00a0', '%3D', '*'];
    for (const extra of junk) {
      expect(reasonOf(() => codec.unseal(sealed + extra))).toBe('malformed');
      expect(reasonOf(() => codec.unseal(extra + sealed))).toBe('malformed');
      expect(reasonOf(() => codec.unseal(`v1.${body.slice(0, 9)}${extra}${body.slice(9)}`))).toBe('malformed');
    }
    expect(reasonOf(() => codec.unseal(`V1.${body}`))).toBe('malformed');
    expect(reasonOf(() => codec.unseal(`v1.${body.toLowerCase()}`))).not.toBe('accepted');
    expect(reasonOf(() => codec.unseal(`v1.${body.toUpperCase()}`))).not.toBe('accepted');
  });

  test('a token in the standard base64 alphabet is malformed (F18)', () => {
    const key = derivePythonKey(secret);
    const sealed = sealPython(key, new Uint8Array(12).fill(0xff), secret);
    expect(sealed).toMatch(/_/);
    expect(reasonOf(() => codec.unseal(sealed.replaceAll('_', '/').replaceAll('-', '+')))).toBe('malformed');
  });

  test.each([4, 8, 12, 15])('a token with a tag truncated to %i bytes is not unsealed (F19)', (tagBytes) => {
    const body = Buffer.from(token(64).slice(3), 'base64url');
    const truncated = body.subarray(0, body.length - 16 + tagBytes);
    expect(reasonOf(() => codec.unseal(`v1.${truncated.toString('base64url')}`))).toBe('authentication failed');
    const key = derivePythonKey(secret);
    const parsed = parsePythonToken(token(64));
    expect(() => unsealPython(key, { ...parsed, tag: parsed.tag.subarray(0, tagBytes) })).toThrow(/tag/i);
  });

  test('a token over 256 KiB is malformed whatever its content, and one at the limit is not (F30)', () => {
    const body = 'A'.repeat(MAX_TOKEN_LENGTH - 4);
    expect(reasonOf(() => codec.unseal(`v1.${body}`))).toBe('unknown key');
    expect(reasonOf(() => codec.unseal(`v1.${body}AA`))).toBe('malformed');
    expect(reasonOf(() => parsePythonToken(token(8), token(8).length - 1))).toBe('malformed');
    expect(parsePythonToken(token(8), token(8).length).ciphertext).toHaveLength(8);
  });

  test('refusing a 10 MB token costs about as much as unsealing an ordinary one (F30)', () => {
    const ordinary = token(200);
    // Joined and sliced, so that it is one flat string, as a JSON parser makes it.
    const huge = Buffer.alloc(10_000_000, 'v1.AAAA').toString('latin1');
    expect(reasonOf(() => codec.unseal(huge))).toBe('malformed');
    const refusing = medianNanoseconds(() => reasonOf(() => codec.unseal(huge)));
    expect(refusing / medianNanoseconds(() => codec.unseal(ordinary))).toBeLessThan(20);
  });
});

describe('base64url', () => {
  test('decodes only what Node encodes (F18)', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 50 }), (value) => {
        expect(Uint8Array.from(decodeBase64url(Buffer.from(value).toString('base64url')) ?? [])).toStrictEqual(value);
      }),
    );
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.base64String()), (text) => {
        const decoded = decodeBase64url(text);
        expect(decoded === undefined || decoded.toString('base64url') === text).toBe(true);
      }),
    );
    for (const text of ['A', 'AB', 'AA=', 'AA==', 'A A', 'AAAAA', '+/8', 'AA\n'])
      expect(decodeBase64url(text)).toBeUndefined();
  });

  test('accepts any of the 65 536 code units at a position only if encoding the decoded bytes returns the same text (F18)', () => {
    const wrong: string[] = [];
    let passed = 0;
    for (const length of [2, 3, 4, 6, 40]) {
      const text = randomBytes(30).toString('base64url').slice(0, length);
      for (let at = Math.max(0, length - 5); at < length; at++) {
        for (let unit = 0; unit < 65_536; unit++) {
          const spelling = text.slice(0, at) + String.fromCharCode(unit) + text.slice(at + 1);
          const isCanonical = Buffer.from(spelling, 'base64url').toString('base64url') === spelling;
          if ((decodeBase64url(spelling) !== undefined) !== isCanonical) wrong.push(JSON.stringify(spelling));
          if (isCanonical) passed += 1;
        }
      }
    }
    expect(wrong).toEqual([]);
    expect(passed).toBeGreaterThan(500);
  });
});

describe('secrets', () => {
  test('a codec shows no secret, however it is printed and however deeply it is nested (F21)', () => {
    const canary = 'canary-secret-of-at-least-32-bytes';
    const hidden = new AesGcmRequestStateCodec([canary, Buffer.from(`${canary}-2`)]);
    const shown = [
      inspect(hidden, { showHidden: true, depth: Number.POSITIVE_INFINITY, getters: true }),
      inspect({ nested: [hidden] }, { depth: Number.POSITIVE_INFINITY }),
      inspect(hidden, { customInspect: false, showHidden: true, depth: Number.POSITIVE_INFINITY }),
      JSON.stringify({ nested: [hidden] }),
      JSON.stringify(Reflect.ownKeys(hidden).map(String)),
    ].join('\n');
    for (const form of [canary, hexOf(canary), Buffer.from(canary).toString('base64').slice(0, 40), 'KeyObject']) {
      expect(shown).not.toContain(form);
    }
    expect(shown).toContain('AesGcmRequestStateCodec { keys: 2 }');
  });

  test('every refusal is an error of the same class that contains only the reason (F20, F21)', () => {
    const canary = 'canary-payload';
    const sealed = codec.seal(Buffer.from(canary));
    const stranger = new AesGcmRequestStateCodec(['x'.repeat(32)]);
    const refusals = [sealed.slice(0, -1), `${sealed.slice(0, 30)}AAAA${sealed.slice(34)}`];
    const errors = [...refusals.map((text) => () => codec.unseal(text)), () => stranger.unseal(sealed)].map(
      (action) => {
        try {
          return action();
        } catch (error) {
          return error;
        }
      },
    );
    for (const error of errors) {
      expect(error).toBeInstanceOf(InvalidRequestState);
      expect(Object.keys(Object(error)).toSorted()).toEqual(['code', 'help', 'name', 'reason']);
      const shown = inspect(error, { showHidden: true });
      expect(shown).not.toContain(canary);
      expect(shown).not.toContain(sealed.slice(3, 20));
    }
  });
});
