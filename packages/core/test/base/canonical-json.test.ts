import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonicalJson } from '../../src/base/canonical-json.ts';

interface Vector {
  readonly name: string;
  readonly wire: string;
  readonly canonical: string;
  readonly digest: string;
  readonly jsRepresentable: boolean;
  readonly jsGuessMatches?: boolean;
}

interface Rejected {
  readonly name: string;
  readonly wire: string;
  readonly error: string;
  readonly jsonParseAccepts: boolean;
}

const file: { vectors: Vector[]; rejected: Rejected[] } = JSON.parse(
  readFileSync(new URL('../../../../vectors/python-compact-json.json', import.meta.url), 'utf8'),
);

const ofWire = (wire: string): string => canonicalJson(JSON.parse(wire), { sortKeys: true, allowInfinity: true });
const parses = (wire: string): boolean => {
  try {
    JSON.parse(wire);
    return true;
  } catch {
    return false;
  }
};

function nested(depth: number, wrap: (inner: unknown) => unknown): unknown {
  let value: unknown = 0;
  for (let level = 0; level < depth; level++) value = wrap(value);
  return value;
}

describe('vectors of the MCP Python SDK', () => {
  const exact = file.vectors.filter((vector) => vector.jsRepresentable || vector.jsGuessMatches === true);
  const lost = file.vectors.filter((vector) => !vector.jsRepresentable && vector.jsGuessMatches !== true);

  test('the file has as many vectors of the MCP Python SDK as its description states', () => {
    expect([file.vectors.length, exact.length, lost.length, file.rejected.length]).toEqual([276, 251, 25, 19]);
  });

  test.each(exact)('$name: the output equals the output of Python', ({ wire, canonical, digest }) => {
    expect(ofWire(wire)).toBe(canonical);
    const printed = createHash('sha256').update(ofWire(wire)).digest().subarray(0, 16);
    expect(printed.toString('base64url')).toBe(digest);
  });

  test.each(lost)('$name: a value changed by JSON.parse does not match, and so is refused', ({ wire, canonical }) => {
    const printed = parses(wire) ? ofWire(wire) : undefined;
    expect(printed).not.toBe(canonical);
  });

  test.each(file.rejected)('$name: JSON.parse accepts or refuses it, as recorded', ({ wire, jsonParseAccepts }) => {
    expect(parses(wire)).toBe(jsonParseAccepts);
  });

  test('a value nested too deeply for Python causes a RangeError here', () => {
    const deep = file.rejected.find(({ name }) => name === 'depth-20000');
    expect(() => ofWire(deep?.wire ?? '')).toThrow(RangeError);
  });
});

describe('values', () => {
  class Point {
    readonly x = 1;
  }

  test.each([
    ['undefined', undefined],
    ['NaN', Number.NaN],
    ['a bigint', 1n],
    ['a symbol', Symbol('x')],
    ['a function', () => 1],
    ['a function without a prototype', Object.setPrototypeOf(() => 1, null)],
    ['a Date', new Date(0)],
    ['a Map', new Map([['a', 1]])],
    ['a Set', new Set([1])],
    ['a class instance', new Point()],
    ['bytes', new Uint8Array(2)],
    ['a boxed string', Object('x')],
    ['a regular expression', /x/],
    ['an error', new Error('x')],
    ['an object with another prototype', Object.create({ inherited: 1 })],
    ['a sparse array', Object.assign(Array(2), { 1: 1 })],
  ])('%s is not a JSON value, alone or nested (F17)', (_, value) => {
    expect(() => canonicalJson(value)).toThrow(TypeError);
    expect(() => canonicalJson([value])).toThrow(TypeError);
    expect(() => canonicalJson({ a: { b: [1, value] } })).toThrow(TypeError);
    expect(() => canonicalJson({ a: value }, { sortKeys: true, allowInfinity: true })).toThrow(TypeError);
  });

  test('an error shows no part of the value', () => {
    expect(() => canonicalJson([Symbol('canary')])).not.toThrow(/canary/);
    expect(() => canonicalJson([() => 'canary'])).not.toThrow(/canary/);
  });

  test.each([Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])(
    '%d is refused unless infinities are allowed, and is then printed',
    (value) => {
      expect(() => canonicalJson({ a: value })).toThrow(TypeError);
      expect(() => canonicalJson({ a: value }, { sortKeys: true, allowInfinity: false })).toThrow(TypeError);
      expect(canonicalJson({ a: value }, { allowInfinity: true })).toBe(`{"a":${value}}`);
    },
  );

  test('a bigint is printed as an integer on request, alone and nested', () => {
    const value = { x: [1, 2n ** 64n, -9_007_199_254_740_993n] };
    expect(canonicalJson(value, { allowBigInt: true })).toBe('{"x":[1,18446744073709551616,-9007199254740993]}');
    expect(canonicalJson(2n ** 53n, { allowBigInt: true })).toBe('9007199254740992');
    expect(() => canonicalJson(value)).toThrow(TypeError);
  });

  test('a printed infinity differs from null', () => {
    expect(ofWire('{"x":1e400}')).not.toBe(ofWire('{"x":null}'));
  });

  test('an own key __proto__ stays a key, at every depth, and sets no prototype (F17)', () => {
    const wire = '{"__proto__":{"__proto__":1,"admin":true},"constructor":2,"toString":3}';
    expect(canonicalJson(JSON.parse(wire))).toBe(wire);
    expect(ofWire('{"a":1,"__proto__":2}')).toBe('{"__proto__":2,"a":1}');
    expect(ofWire('{"a":1,"__proto__":2}')).not.toBe(ofWire('{"a":1}'));
  });

  test('only own members are printed, and an own toJSON is refused as a function (F17)', () => {
    expect(canonicalJson(Object.assign(Object.create(null), { a: 1 }))).toBe('{"a":1}');
    expect(() => canonicalJson({ toJSON: () => 'forged' })).toThrow(TypeError);
  });

  test('a value nested 512 deep is printed, and one nested 513 or a million deep is refused (F5)', () => {
    for (const wrap of [(inner: unknown) => [inner], (inner: unknown) => ({ a: inner })]) {
      expect(canonicalJson(nested(512, wrap))).toMatch(/^[[{]/);
      expect(() => canonicalJson(nested(513, wrap))).toThrow(RangeError);
      expect(() => canonicalJson(nested(1_000_000, wrap))).toThrow(RangeError);
    }
  });

  test('a cycle causes a RangeError, not an endless loop', () => {
    const cycle: Record<string, unknown> = {};
    cycle['self'] = cycle;
    expect(() => canonicalJson(cycle)).toThrow(RangeError);
  });

  test('keys keep their order unless sorting is requested', () => {
    expect(canonicalJson({ b: 1, a: 2 })).toBe('{"b":1,"a":2}');
    expect(canonicalJson({ b: 1, a: 2 }, { sortKeys: true })).toBe('{"a":2,"b":1}');
    expect(canonicalJson([{ b: 1, a: [] }], {})).toBe('[{"b":1,"a":[]}]');
  });

  test('the value is left unchanged', () => {
    const value = Object.freeze({ b: Object.freeze([3, 1]), a: 2 });
    expect(canonicalJson(value, { sortKeys: true })).toBe('{"a":2,"b":[3,1]}');
    expect(Object.keys(value)).toEqual(['b', 'a']);
  });
});

const points = (key: string): number[] => Array.from(key, (point) => point.codePointAt(0) ?? 0);
const compare = (a: number[], b: number[]): number => {
  const at = a.findIndex((point, index) => point !== b[index]);
  if (at === -1) return a.length - b.length;
  return at < b.length ? (a[at] ?? 0) - (b[at] ?? 0) : 1;
};

describe('properties', () => {
  const text = fc.string({ unit: 'binary', maxLength: 12 });
  /** Any sequence of UTF-16 code units, including unpaired surrogates. */
  const units = fc
    .array(fc.oneof(fc.integer({ min: 0xd7f0, max: 0xe010 }), fc.integer({ min: 0, max: 0xffff })), { maxLength: 6 })
    .map((codes) => String.fromCharCode(...codes));
  const json = fc.jsonValue({ maxDepth: 4, stringUnit: 'binary', noUnicodeString: false } as const);

  test('the output is ASCII without white space outside strings, and parses back to the value', () => {
    fc.assert(
      fc.property(fc.oneof(json, text, units), fc.boolean(), (value, sortKeys) => {
        const printed = canonicalJson(value, { sortKeys });
        expect(printed).toMatch(/^[\u0020-\u007e]*$/);
        expect(printed.replaceAll(/"(?:[^"\\]|\\.)*"/g, '')).not.toMatch(/\s/);
        expect(JSON.parse(printed)).toEqual(value);
      }),
      { numRuns: 1000 },
    );
  });

  test('unsorted output parses back to the value, with its members in their original order', () => {
    fc.assert(
      fc.property(json, (value) => {
        expect(JSON.stringify(JSON.parse(canonicalJson(value)))).toBe(JSON.stringify(value));
      }),
    );
  });

  test('two values print the same exactly when they are equal', () => {
    const leaf = fc.constantFrom<unknown>(0, -0, 1, 1.5, '0', '', null, true, {}, []);
    const small = fc.dictionary(fc.constantFrom('a', '1'), fc.oneof(leaf, fc.array(leaf, { maxLength: 1 })));
    let equal = 0;
    fc.assert(
      fc.property(small, small, (a, b) => {
        if (isDeepStrictEqual({ ...a }, { ...b })) equal++;
        const alike = canonicalJson(a, { sortKeys: true }) === canonicalJson(b, { sortKeys: true });
        expect(alike).toBe(isDeepStrictEqual({ ...a }, { ...b }));
      }),
      { numRuns: 3000 },
    );
    expect(equal).toBeGreaterThan(20);
  });

  test('keys are sorted by code point, whatever surrogates they contain', () => {
    fc.assert(
      fc.property(fc.uniqueArray(units, { maxLength: 8 }), (keys) => {
        const value = Object.fromEntries(keys.map((key) => [key, 0]));
        // Compare pairs, because a parsed object would put keys that look like indexes first.
        const printed = canonicalJson(value, { sortKeys: true });
        const order = [...printed.matchAll(/("(?:[^"\\]|\\.)*"):0/g)].map(([, key]) => String(JSON.parse(key ?? '')));
        expect(order).toEqual(keys.toSorted((a, b) => compare(points(a), points(b))));
      }),
      { numRuns: 1000 },
    );
  });

  test('keys are sorted by code point, with every neighbour of the surrogates in every position', () => {
    const edges = ['A', '\ud7ff', '\ud800', '\udbff', '\udc00', '\udfff', '\ue000', '\uffff'];
    const ofLength = (length: number): readonly string[] =>
      length === 0 ? [''] : ofLength(length - 1).flatMap((start) => edges.map((edge) => start + edge));
    const keys = [0, 1, 2, 3].flatMap(ofLength);
    // Both orders are wrong, so that neither is right by chance.
    for (const given of [keys, keys.toReversed()]) {
      const printed = canonicalJson(Object.fromEntries(given.map((key) => [key, 0])), { sortKeys: true });
      expect(Object.keys(JSON.parse(printed))).toEqual(keys.toSorted((a, b) => compare(points(a), points(b))));
    }
  });

  test('the order in which members were added does not matter when they are sorted', () => {
    fc.assert(
      fc.property(fc.dictionary(text, fc.integer(), { maxKeys: 8 }), (value) => {
        const reversed = Object.fromEntries(Object.entries(value).toReversed());
        expect(canonicalJson(reversed, { sortKeys: true })).toBe(canonicalJson(value, { sortKeys: true }));
      }),
    );
  });

  test('a number prints as digits that read back as the same number, in the notation of Python', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
        const printed = canonicalJson(value);
        expect(Object.is(Number(printed), value)).toBe(true);
        const magnitude = Math.abs(value);
        const plain = magnitude === 0 || (magnitude >= 1e-4 && magnitude < 1e16);
        expect(printed).toMatch(plain ? /^-?\d+(?:\.\d+)?$/ : /^-?\d(?:\.\d+)?e[+-]\d\d+$/);
        expect(printed).toBe(numberByTheBooks(value));
      }),
      { numRuns: 2000 },
    );
  });

  test.each([
    [1e-4, '0.0001'],
    [1e-5, '1e-05'],
    [-1.5e-5, '-1.5e-05'],
    [9.999e-5, '9.999e-05'],
    [9_999_999_999_999_998, '9999999999999998.0'],
    [2 ** 53 - 1, '9007199254740991'],
    [-(2 ** 53), '-9007199254740992.0'],
    [1e16, '1e+16'],
    [-1.5e16, '-1.5e+16'],
    [1e22, '1e+22'],
    [1e100, '1e+100'],
    [5e-324, '5e-324'],
    [123.456, '123.456'],
    [-0.1, '-0.1'],
    [-0, '-0.0'],
    [0, '0'],
  ])('the number %d prints as %s', (value, printed) => {
    expect(canonicalJson(value)).toBe(printed);
  });
});

/** Python's notation, from the engine's: a safe integer, else a float. */
function numberByTheBooks(value: number): string {
  const text = String(value);
  if (Object.is(value, -0)) return '-0.0';
  if (Number.isSafeInteger(value) || !Number.isFinite(value)) return text;
  const size = Math.abs(value);
  if (size >= 1e-4 && size < 1e16) return text.includes('.') ? text : `${text}.0`;
  const [digits, exponent] = value.toExponential().split('e');
  return `${digits}e${exponent?.[0]}${exponent?.slice(1).padStart(2, '0')}`;
}

describe('the printer, compared with a simple implementation', () => {
  /** A simple implementation: JSON.stringify, then every unit from 0x7f on, and keys by their code points. */
  function byTheBooks(value: unknown): string {
    if (typeof value === 'string') return stringByTheBooks(value);
    if (Array.isArray(value)) return `[${value.map(byTheBooks).join(',')}]`;
    if (typeof value === 'number') return numberByTheBooks(value);
    if (typeof value !== 'object' || value === null) return String(value);
    const keys = Object.keys(value).toSorted((a, b) => compare(points(a), points(b)));
    return `{${keys.map((key) => `${stringByTheBooks(key)}:${byTheBooks(Reflect.get(value, key))}`).join(',')}}`;
  }

  function stringByTheBooks(text: string): string {
    return JSON.stringify(text).replace(
      /[\u007f-\uffff]/g,
      (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
    );
  }

  /** The output in pieces, and the returned text, together. */
  function pieced(value: unknown): { readonly text: string; readonly longest: number } {
    const pieces: string[] = [];
    const write = (piece: Uint8Array) => void pieces.push(Buffer.from(piece).toString('latin1'));
    const rest = canonicalJson(value, { sortKeys: true, allowInfinity: true, write });
    return { text: pieces.join('') + rest, longest: Math.max(...[...pieces, rest].map((piece) => piece.length)) };
  }

  const unit = fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code));
  const anyText = fc.oneof(
    fc.string({ unit }),
    fc.string({
      unit: fc.oneof(unit, fc.constantFrom('"', '\\', '\n', '\u007f', '\ud83d', '\udd11', 'a')),
      maxLength: 200,
    }),
    fc.string({ unit: 'binary-ascii', maxLength: 200 }),
  );
  const { tree } = fc.letrec((tie) => ({
    tree: fc.oneof(
      { depthSize: 'small' },
      anyText,
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.integer(),
      fc.boolean(),
      fc.constant(null),
      fc.array(tie('tree')),
      fc.dictionary(anyText, tie('tree'), { maxKeys: 20 }),
    ),
  }));

  test('writes every code unit, alone and in a long text', () => {
    for (let code = 0; code <= 0xffff; code++) {
      const text = String.fromCharCode(code);
      if (canonicalJson(text) !== stringByTheBooks(text)) throw new Error(`code unit ${code}`);
    }
    const all = Array.from({ length: 0x10000 }, (_, code) => String.fromCharCode(code)).join('');
    expect(canonicalJson([all])).toBe(`[${stringByTheBooks(all)}]`);
    expect(pieced([all]).text).toBe(`[${stringByTheBooks(all)}]`);
  });

  test.each([
    ['plain', 'plain text '],
    ['ASCII, escaped', 'a "b"\\\n\u0001\u007f'],
    ['beyond ASCII', 'é\n"漢\ud800x\u{1f511}'],
  ])('writes a text of any length, %s, as a value and as a name', (_, word) => {
    for (const length of [0, 1, 7, 47, 48, 49, 50, 200, 8_191, 8_192, 8_193, 9_000]) {
      const text = word.repeat(length / 5 + 1).slice(0, length);
      const value = { [text]: [text, { [`${text}${text}`]: text.slice(1) }] };
      expect(canonicalJson(value) === byTheBooks(value)).toBe(true);
      expect(canonicalJson(text) === stringByTheBooks(text)).toBe(true);
    }
  });

  test.each([2, 12, 13, 40])('sorts %d names of ASCII, surrogates or higher characters by code point', (count) => {
    for (const starts of [
      ['b', 'a'],
      ['\u{1f511}', '\ud800', '\uffff'],
      ['\uffff', '\ue000'],
      ['a', '\u{1f511}', '\uffff'],
    ]) {
      const names = Array.from({ length: count }, (__, i) => `${starts[i % starts.length]}${(i * 7) % 41}`);
      const value = Object.fromEntries(names.map((name, i) => [name, i]));
      expect(canonicalJson(value, { sortKeys: true })).toBe(byTheBooks(value));
    }
  });

  test('writes arrays of numbers of any length, with one other value in them', () => {
    for (const length of [2, 7, 8, 9, 1_024, 1_025, 1_026, 2_100]) {
      const numbers = Array.from({ length }, (_, i) => (i % 5 === 0 ? i : i / 4));
      for (const at of [0, 1, length - 1]) {
        for (const edge of [-0, 2 ** 53, 1e-5, 1e300, 'text', [1]]) {
          const values = numbers.with(at, edge as number);
          expect(canonicalJson(values) === byTheBooks(values)).toBe(true);
        }
      }
    }
  });

  test('writes lone surrogates, escapes, and names of all kinds', () => {
    fc.assert(
      fc.property(tree, (value) => {
        const expected = byTheBooks(value);
        expect(canonicalJson(value, { sortKeys: true })).toBe(expected);
        expect(pieced(value).text).toBe(expected);
      }),
      { numRuns: 2_000 },
    );
  });

  /** The numbers next to those that the engine prints differently than Python. */
  const edges = [
    [0, -0, 1, -1, 2 ** 53 - 1, 2 ** 53, -(2 ** 53), 2 ** 53 + 2, 1e15, 1e16, 1e21, 1e22, 0.5, -0.5, 1e-4, 9.999e-5],
    [1e-5, 1e-6, 1e-7, 4_503_599_627_370_495.5, Number.MAX_VALUE, Number.MIN_VALUE, Infinity, -Infinity],
  ].flat();

  test.each(edges)('writes %d among many numbers, in every position', (edge) => {
    for (const length of [1, 7, 8, 9, 1_023, 1_024, 1_025, 1_026, 2_500]) {
      const numbers = Array.from({ length }, (_, i) => (i % 2 === 0 ? i : i + 0.25));
      const places = length < 10 ? numbers.keys() : [0, 1, 7, 8, 9, length - 9, length - 8, length - 2, length - 1];
      for (const place of places) {
        const values: unknown[] = numbers.with(place, edge);
        expect(pieced(values).text).toBe(byTheBooks(values));
        values.splice(place + 1, 0, 'text', [edge, null]);
        expect(pieced(values).text).toBe(byTheBooks(values));
      }
    }
  });

  test('writes arrays of numbers of all kinds, with other values between them', () => {
    const number = fc.oneof(fc.double({ noNaN: true }), fc.integer(), fc.maxSafeNat(), fc.constantFrom(...edges));
    const value = fc.oneof({ arbitrary: number, weight: 20 }, { arbitrary: anyText, weight: 1 }, fc.constant([1.5]));
    fc.assert(
      fc.property(fc.array(value, { maxLength: 100 }), (values) => {
        expect(pieced(values).text).toBe(byTheBooks(values));
      }),
      { numRuns: 2_000 },
    );
  });

  test.each([Number.NaN, undefined, 1n])('%s among many numbers is refused with a TypeError', (wrong) => {
    const numbers: unknown[] = Array.from({ length: 100 }, (_, i) => i);
    for (const place of [0, 1, 50, 99]) expect(() => canonicalJson(numbers.with(place, wrong))).toThrow(TypeError);
    const holed = [...numbers];
    holed.length = 101;
    expect(() => canonicalJson(holed)).toThrow(TypeError);
  });

  test('a toJSON method that a library adds to every array is ignored', () => {
    const numbers = Array.from({ length: 100 }, (_, i) => i);
    const every: object = Array.prototype;
    Object.defineProperty(every, 'toJSON', { value: () => 'another', configurable: true });
    try {
      expect(canonicalJson(numbers)).toBe(`[${numbers.join(',')}]`);
    } finally {
      Reflect.deleteProperty(every, 'toJSON');
    }
  });

  test('every number of an array is read once', () => {
    let reads = 0;
    const numbers = new Proxy(
      Array.from({ length: 3_000 }, (_, i) => i),
      {
        get(target, key, receiver) {
          if (typeof key === 'string' && key !== 'length') reads += 1;
          return Reflect.get(target, key, receiver);
        },
      },
    );
    expect(canonicalJson(numbers)).toBe(JSON.stringify(Array.from({ length: 3_000 }, (_, i) => i)));
    expect(reads).toBe(3_000);
  });

  test.each([
    ['plain', 'plain text '],
    ['ASCII, escaped', 'a "b"\n\u0001\u007f'],
    ['escaped', 'é\n"'],
    ['of surrogates, cut anywhere', 'x\u{1f511}'],
  ])('a long text, %s, is written in pieces of bounded size', (_name, word) => {
    const text = word.repeat(100_000);
    const { text: printed, longest } = pieced({ a: [text, text.slice(0, 65_537), text.slice(0, 65_536)] });
    expect(printed).toBe(byTheBooks({ a: [text, text.slice(0, 65_537), text.slice(0, 65_536)] }));
    expect(longest).toBeLessThan(2 ** 20);
  });

  test('the output is passed on in pieces only if it is long, whatever the value', () => {
    const long = 'a'.repeat(500_000);
    for (const value of ['a'.repeat(4_095), { a: 'a'.repeat(60_000) }, { a: long }, long, [long, 16n ** 100_000n, 1]]) {
      const pieces: string[] = [];
      const write = (piece: Uint8Array) => void pieces.push(Buffer.from(piece).toString('latin1'));
      const rest = canonicalJson(value, { allowBigInt: true, write });
      const whole = canonicalJson(value, { allowBigInt: true });
      expect(pieces.length > 0).toBe(whole.length > 65_536);
      expect(pieces.join('') + rest === whole).toBe(true);
    }
  });

  test('an object with many members is printed, with and without names beyond ASCII', () => {
    const names = Array.from({ length: 50_000 }, (_, i) => `${(i * 7_919) % 50_000}`.padStart(6, 'k'));
    for (const extra of [[], ['\u{1f511}', '\uffff', '\ud800']]) {
      const value = Object.fromEntries([...names, ...extra].map((name) => [name, 1]));
      expect(pieced(value).text).toBe(byTheBooks(value));
    }
  });

  test('an error thrown by the function that receives the pieces ends the printing', () => {
    const write = () => {
      throw new Error('enough');
    };
    expect(() => canonicalJson(['a'.repeat(1_000_000)], { write })).toThrow('enough');
  });
});
