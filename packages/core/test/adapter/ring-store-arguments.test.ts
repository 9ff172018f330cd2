import { describe, expect, test } from 'vitest';
import {
  checkClaim,
  checkRead,
  checkWatcher,
  checkWrite,
  claimLifeMs,
  clockSkewMsOf,
} from '../../src/adapter/ring-store-arguments.ts';
import { MAX_DOCUMENT_BYTES, RingConflictError } from '../../src/contracts/ring-store.ts';

const OWNER = 'aRing';
const EXPECTED = { expected: undefined };

// Values that a caller without types could pass.
function read(options: unknown): () => void {
  return () => Reflect.apply(checkRead, undefined, [OWNER, options]);
}

function write(document: unknown, options: unknown): () => void {
  return () => Reflect.apply(checkWrite, undefined, [OWNER, document, options]);
}

const CALL_OPTIONS = { signal: new AbortController().signal, onServiceDate: () => undefined };
const WRONG_CALL_OPTIONS: readonly (readonly [string, unknown])[] = [
  ['unknown option', { timeout: 5 }],
  ['signal', { signal: null }],
  ['signal', { signal: { aborted: false } }],
  ['onServiceDate', { onServiceDate: null }],
  ['onServiceDate', { onServiceDate: new Date() }],
];

describe('the options of a read', () => {
  test.each([[undefined], [{}], [CALL_OPTIONS], [{ signal: undefined, onServiceDate: undefined }]])(
    '%o is accepted',
    (options) => {
      expect(read(options)).not.toThrow();
    },
  );

  const wrong: readonly (readonly [string, unknown])[] = [
    ['options', null],
    ['options', 'text'],
    ['unknown option', EXPECTED],
    ...WRONG_CALL_OPTIONS,
  ];
  test.each(wrong)('a wrong %s causes a TypeError that names it: %o', (name, options) => {
    expect(read(options)).toThrow(TypeError);
    expect(read(options)).toThrow(`${OWNER}: ${name}`);
  });

  test('an aborted signal causes an error of kind unavailable', () => {
    expect(read({ signal: AbortSignal.abort() })).toThrow(expect.objectContaining({ kind: 'unavailable' }));
  });
});

describe('the arguments of a write', () => {
  test.each([[EXPECTED], [{ expected: 'r' }], [{ expected: '' }], [{ ...EXPECTED, ...CALL_OPTIONS }]])(
    '%o is accepted',
    (options) => {
      expect(write('x', options)).not.toThrow();
    },
  );

  test.each(WRONG_CALL_OPTIONS)('a wrong %s causes a TypeError that names it: %o', (name, options) => {
    const wrong = { ...EXPECTED, ...Object(options) };
    expect(write('x', wrong)).toThrow(TypeError);
    expect(write('x', wrong)).toThrow(`${OWNER}: ${name}`);
  });

  test.each([[undefined], [null], [[]], ['text']])('%o is not an options object', (options) => {
    expect(write('x', options)).toThrow(TypeError);
    expect(write('x', options)).toThrow(`${OWNER}: options`);
  });

  test('expected must be given, as a revision or as undefined (F8)', () => {
    expect(write('x', {})).toThrow(TypeError);
    expect(write('x', Object.create(EXPECTED))).toThrow(TypeError);
    for (const expected of [null, 7, {}]) expect(write('x', { expected })).toThrow(TypeError);
    expect(write('x', { expected: '\ud800' })).toThrow(RingConflictError);
  });

  test.each([[undefined], [null], [7], [Buffer.from('canary')], [''], ['\ud800']])(
    '%o is not a document',
    (document) => {
      expect(write(document, EXPECTED)).toThrow(TypeError);
      expect(write(document, EXPECTED)).toThrow(`${OWNER}: document `);
      expect(write(document, EXPECTED)).not.toThrow('canary');
    },
  );

  test('a document has at most 262 144 bytes of UTF-8 (F23)', () => {
    expect(write('x'.repeat(MAX_DOCUMENT_BYTES), EXPECTED)).not.toThrow();
    const tooLarge = expect.objectContaining({ name: 'RingStoreError', kind: 'too-large' });
    expect(write('x'.repeat(MAX_DOCUMENT_BYTES + 1), EXPECTED)).toThrow(tooLarge);
    expect(write('é'.repeat(MAX_DOCUMENT_BYTES / 2 + 1), EXPECTED)).toThrow(tooLarge);
  });

  test('an aborted signal causes an error of kind unavailable', () => {
    const options = { ...EXPECTED, signal: AbortSignal.abort() };
    expect(write('x', options)).toThrow(expect.objectContaining({ kind: 'unavailable' }));
  });
});

test('a watcher must be a function', () => {
  expect(() => checkWatcher(OWNER, () => undefined)).not.toThrow();
  for (const changed of [undefined, null, {}]) expect(() => checkWatcher(OWNER, changed)).toThrow(TypeError);
});

describe('the arguments of a claim', () => {
  const date = new Date(0);

  test('an id of 1 to 256 characters and a date are accepted', () => {
    for (const id of ['x', 'x'.repeat(256)]) expect(() => checkClaim(OWNER, id, date)).not.toThrow();
  });

  test.each([
    [undefined, date, TypeError],
    [7, date, TypeError],
    ['', date, RangeError],
    ['x'.repeat(257), date, RangeError],
    ['\ud800', date, RangeError],
    ['x', undefined, TypeError],
    ['x', 0, TypeError],
    ['x', new Date(Number.NaN), RangeError],
  ])('a claim of the id %o that expires at %o is refused', (id, expiresAt, type) => {
    expect(() => checkClaim(OWNER, id, expiresAt)).toThrow(type);
    expect(() => checkClaim(OWNER, id, expiresAt)).toThrow(`${OWNER}: ${id === 'x' ? 'expiresAt' : 'id'} `);
  });
});

test('a claim is remembered until it expires, and for the clock skew of the ring beyond that', () => {
  expect([clockSkewMsOf(OWNER, undefined), clockSkewMsOf(OWNER, 60)]).toEqual([300_000, 60_000]);
  expect(() => clockSkewMsOf(OWNER, null)).toThrow(/clockSkewSeconds/);
  expect(claimLifeMs(new Date(5_000), 300, 1_000.5)).toBe(4_300);
});
