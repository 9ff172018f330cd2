import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  finiteNumber,
  isConstant,
  label,
  oneOf,
  refuseUnknownOptions,
  secretBytes,
  show,
} from '../../src/base/options.ts';

describe('a wrong value in an error', () => {
  test.each([
    [undefined, 'undefined'],
    [null, 'null'],
    [5, '5'],
    [Number.NaN, 'NaN'],
    [false, 'false'],
    ['canary', 'a string'],
    [12n, 'a bigint'],
    [Symbol('canary'), 'a symbol'],
    [() => 'canary', 'a function'],
    [[1, 2], 'an array of 2'],
    [Buffer.from('canary'), '6 bytes'],
    [new Uint8Array(3), '3 bytes'],
    [{ secret: 'canary' }, 'an object'],
    [new Uint16Array(3), 'an object'],
    [Promise.resolve('canary'), 'a Promise: did you forget await?'],
  ])('%o is shown as %s (F21)', (value, shown) => {
    expect(show(value)).toBe(shown);
  });

  test('no text, bytes or object shows its content (F21)', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.uint8Array(), fc.object(), fc.array(fc.string())), (value) => {
        expect(show(value)).toMatch(/^(?:a string|\d+ bytes|an object|an array of \d+)$/);
      }),
    );
  });
});

describe('unknown options', () => {
  test('options with known keys, or none, are accepted', () => {
    expect(() => refuseUnknownOptions('owner', {}, ['a'])).not.toThrow();
    expect(() => refuseUnknownOptions('owner', { a: undefined, b: 2 }, ['a', 'b'])).not.toThrow();
  });

  test.each([[undefined], [null], ['text'], [5], [[]], [() => 1]])('%o is not an options object', (options) => {
    expect(() => refuseUnknownOptions('owner', options, ['a'])).toThrow(TypeError);
  });

  test.each([['A'], [' a'], ['__proto__'], ['constructor'], ['toString'], ['']])(
    '%j is an unknown option, and the error names the owner, the key and the known keys (F17)',
    (key) => {
      const options: unknown = JSON.parse(`{${JSON.stringify(key)}:1}`);
      expect(() => refuseUnknownOptions('owner', options, ['a', 'b'])).toThrow(TypeError);
      expect(() => refuseUnknownOptions('owner', options, ['a', 'b'])).toThrow(
        `owner: unknown option ${JSON.stringify(key)}; the options are a, b`,
      );
    },
  );
});

describe('numbers', () => {
  test('a number within the bounds, inclusive, is returned', () => {
    for (const value of [1, 1.5, 10]) expect(finiteNumber('owner', 'name', value, 1, 10)).toBe(value);
  });

  test.each([['5'], [null], [undefined], [5n], [true], [new Date(5)], [Object(5)]])(
    '%o is refused as a number with a TypeError, and never coerced (F17)',
    (value) => {
      expect(() => finiteNumber('owner', 'name', value, 1, 10)).toThrow(TypeError);
      expect(() => finiteNumber('owner', 'name', value, 1, 10)).toThrow(/^owner: name /);
    },
  );

  test.each([[0.999], [10.001], [-5], [Number.NaN], [Number.POSITIVE_INFINITY], [Number.NEGATIVE_INFINITY]])(
    '%d is out of bounds: the RangeError names the option and the value',
    (value) => {
      expect(() => finiteNumber('owner', 'name', value, 1, 10)).toThrow(RangeError);
      expect(() => finiteNumber('owner', 'name', value, 1, 10)).toThrow(`name must be from 1 to 10, got ${value}`);
    },
  );
});

describe('choices', () => {
  const choices = ['if-absent', 'now', 'never'] as const;

  test('a choice is returned', () => {
    for (const choice of choices) expect(oneOf('owner', 'name', choice, choices)).toBe(choice);
  });

  test.each([['Now'], [''], ['now '], ['toString'], ['__proto__'], ['0']])(
    '%j is refused as a choice with a RangeError (F17)',
    (value) => {
      expect(() => oneOf('owner', 'name', value, choices)).toThrow(RangeError);
      expect(() => oneOf('owner', 'name', value, choices)).toThrow('owner: name must be one of if-absent, now, never');
    },
  );

  test.each([[undefined], [null], [0], [['now']], [Object('now')]])('%o causes a TypeError (F17)', (value) => {
    expect(() => oneOf('owner', 'name', value, choices)).toThrow(TypeError);
  });
});

describe('labels', () => {
  test.each([['a'], ['default'], ['A.b_c-9'], ['__proto__'], ['x'.repeat(64)]])('%j is a label', (value) => {
    expect(label('owner', 'ringName', value)).toBe(value);
  });

  test.each([[''], ['x'.repeat(65)], ['a b'], ['a/b'], ['a\0b'], ['a\n'], ['é'], ['a:b'], ['\u0430']])(
    '%j is refused as a label with a RangeError (F25)',
    (value) => {
      expect(() => label('owner', 'ringName', value)).toThrow(RangeError);
      expect(() => label('owner', 'ringName', value)).toThrow(/^owner: ringName /);
    },
  );

  test.each([[undefined], [null], [5], [['a']], [Object('a')], [Buffer.from('a')]])(
    '%o is refused as a label with a TypeError (F17)',
    (value) => {
      expect(() => label('owner', 'ringName', value)).toThrow(TypeError);
    },
  );

  test('an error shows at most 80 characters of the value', () => {
    expect(() => label('owner', 'ringName', `${'x'.repeat(80)}canary`)).not.toThrow(/canary/);
  });

  test('any text is either returned unchanged as a label or refused (F25)', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 70 }), (value) => {
        const allowed =
          value.length >= 1 && value.length <= 64 && /^[A-Za-z0-9._-]*$/.test(value) && !value.includes('\n');
        const outcome = (() => {
          try {
            return label('owner', 'name', value);
          } catch (error) {
            return error;
          }
        })();
        expect(allowed ? outcome === value : outcome instanceof RangeError).toBe(true);
      }),
    );
  });
});

describe('secrets', () => {
  test('bytes are copied: later changes on either side do not affect the other', () => {
    const given = Uint8Array.from({ length: 40 }, (_, index) => index);
    const copy = secretBytes('owner', 'key', given, 32);
    expect(Uint8Array.from(copy)).toStrictEqual(given);
    copy.fill(0);
    expect(given[39]).toBe(39);
    const again = secretBytes('owner', 'key', given, 32);
    given.fill(0);
    expect(again[39]).toBe(39);
  });

  test('a view is copied within its bounds', () => {
    const whole = Uint8Array.from({ length: 64 }, (_, index) => index);
    expect([...secretBytes('owner', 'key', whole.subarray(8, 40), 32)]).toEqual(Array.from(whole.slice(8, 40)));
    expect([...secretBytes('owner', 'key', Buffer.from(whole).subarray(8, 40), 32)]).toEqual(
      Array.from(whole.slice(8, 40)),
    );
  });

  test('text is converted to UTF-8, and its length is counted in bytes', () => {
    expect(secretBytes('owner', 'key', 'é'.repeat(16), 32).toString('utf8')).toBe('é'.repeat(16));
    expect(() => secretBytes('owner', 'key', 'é'.repeat(15), 32)).toThrow(RangeError);
  });

  test.each([
    ['a number, which would become so many zeros', 32],
    ['an array', Array(32).fill(1)],
    ['an ArrayBuffer', new ArrayBuffer(32)],
    ['a Uint16Array', new Uint16Array(32)],
    ['a DataView', new DataView(new ArrayBuffer(32))],
    ['a look-alike', { length: 32, 0: 1 }],
    ['a Buffer as JSON', Buffer.alloc(32, 1).toJSON()],
    ['a boxed text', Object('x'.repeat(32))],
    ['nothing', undefined],
    ['null', null],
    ['a high surrogate alone', `${'x'.repeat(32)}\ud800`],
    ['a low surrogate alone', `\udc00${'x'.repeat(32)}`],
  ])('%s is refused as a secret with a TypeError (F17)', (_, value) => {
    expect(() => secretBytes('owner', 'keys[3]', value, 32)).toThrow(TypeError);
    expect(() => secretBytes('owner', 'keys[3]', value, 32)).toThrow(/^owner: keys\[3\] /);
  });

  test.each([[''], ['canary'], [new Uint8Array(31)], [new Uint8Array(0)]])(
    '%o is too short, and the RangeError does not show it (F17, F21)',
    (value) => {
      expect(() => secretBytes('owner', 'key', value, 32)).toThrow(RangeError);
      expect(() => secretBytes('owner', 'key', value, 32)).not.toThrow(/canary/);
    },
  );

  test('the minimum length is accepted', () => {
    expect(secretBytes('owner', 'key', new Uint8Array(32), 32)).toHaveLength(32);
    expect(secretBytes('owner', 'key', 'x'.repeat(32), 32)).toHaveLength(32);
  });
});

describe('constant bytes', () => {
  test('bytes that are all the same are constant, whichever byte is repeated', () => {
    for (const byte of [0, 1, 0x7f, 0xff]) expect(isConstant(new Uint8Array(32).fill(byte))).toBe(true);
    expect(isConstant(new Uint8Array(1))).toBe(true);
  });

  test('bytes are not constant if one byte differs anywhere', () => {
    for (let index = 0; index < 32; index++) expect(isConstant(new Uint8Array(32).with(index, 1))).toBe(false);
  });
});

describe('a misspelt option', () => {
  const known = ['keyWrapper', 'ring', 'ringName'];
  test.each([
    ['keywrapper', 'keyWrapper'],
    ['rng', 'ring'],
    ['ringNames', 'ringName'],
    ['rimg', 'ring'],
    ['riing', 'ring'],
    ['RINGNAME', 'ringName'],
    ['KEYWrapper', 'keyWrapper'],
  ])('%s is refused with the name that is probably meant: %s', (name, meant) => {
    expect(() => refuseUnknownOptions('owner', { [name]: 1 }, known)).toThrow(
      `owner: unknown option "${name}" (did you mean "${meant}"?); the options are keyWrapper, ring, ringName`,
    );
  });

  test('an unknown option is refused without a suggestion if no name is similar', () => {
    expect(() => refuseUnknownOptions('owner', { store: 1 }, known)).toThrow(
      'owner: unknown option "store"; the options are keyWrapper, ring, ringName',
    );
    expect(() => refuseUnknownOptions('owner', { ab: 1 }, ['abc'])).toThrow(
      'owner: unknown option "ab"; the options are abc',
    );
  });
});
