import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import {
  copyDataKey,
  copyWrapped,
  overwrite,
  readWrapOptions,
  readWrappedKey,
  takeDataKey,
} from '../../src/adapter/key-wrapper-arguments.ts';

const PROVIDER = 'a-kms';
const CONTEXT = { context: true };
const NO_CONTEXT = { context: false };
const RULES = { maxBytes: 100, owns: (keyId: string) => keyId === 'mine' };

describe('the options of a wrap', () => {
  test('the context is copied, and missing options are undefined', () => {
    const context = { ring: 'a' };
    const read = readWrapOptions(PROVIDER, { context });
    context.ring = 'b';
    expect(read).toEqual({ context: { ring: 'a' }, signal: undefined, onServiceDate: undefined });
  });

  test('signal and onServiceDate are passed on, and options of a newer core are accepted', () => {
    const { signal } = new AbortController();
    const onServiceDate = (): void => undefined;
    const read = readWrapOptions(PROVIDER, { context: {}, signal, onServiceDate, newer: 1 });
    expect(read).toEqual({ context: {}, signal, onServiceDate });
  });

  test.each([
    ['options', undefined],
    ['options', null],
    ['options', 'canary'],
    ['context', {}],
    ['context', { context: null }],
    ['context', { context: ['canary'] }],
    ['context', { context: 'canary' }],
    ['context', { context: { ring: 7 } }],
    ['signal', { context: {}, signal: null }],
    ['signal', { context: {}, signal: {} }],
    ['onServiceDate', { context: {}, onServiceDate: null }],
    ['onServiceDate', { context: {}, onServiceDate: new Date() }],
  ])('a wrong %s causes a TypeError that names it: %o', (name, options) => {
    const read = (): unknown => readWrapOptions(PROVIDER, options);
    expect(read).toThrow(TypeError);
    expect(read).toThrow(`${PROVIDER}: ${name} must be`);
    expect(read).not.toThrow('canary');
  });
});

describe('a data key to be wrapped', () => {
  test('a data key to be wrapped is copied: overwriting the original leaves the copy unchanged', () => {
    const dataKey = randomBytes(32);
    const before = Uint8Array.from(dataKey);
    const copy = copyDataKey(PROVIDER, dataKey, CONTEXT);
    dataKey.fill(0);
    expect(copy).toEqual(before);
  });

  test('a data key to be wrapped has 32 bytes, and 64 only where the service binds no context (decision 0004)', () => {
    expect(copyDataKey(PROVIDER, randomBytes(32), NO_CONTEXT)).toHaveLength(32);
    expect(copyDataKey(PROVIDER, randomBytes(64), NO_CONTEXT)).toHaveLength(64);
    expect(() => copyDataKey(PROVIDER, randomBytes(64), CONTEXT)).toThrow(RangeError);
    expect(() => copyDataKey(PROVIDER, randomBytes(64), CONTEXT)).toThrow(/a data key must be 32 bytes that/);
    expect(() => copyDataKey(PROVIDER, randomBytes(63), NO_CONTEXT)).toThrow(/a data key must be 32 or 64 bytes that/);
  });

  test.each([0, 1, 31, 33, 48, 63, 65])('a data key of %i bytes is refused with a RangeError', (length) => {
    for (const supports of [CONTEXT, NO_CONTEXT]) {
      expect(() => copyDataKey(PROVIDER, randomBytes(length), supports)).toThrow(RangeError);
    }
  });

  test('a data key of one byte repeated 32 times is refused with a RangeError, even if a hash follows it (F17)', () => {
    expect(() => copyDataKey(PROVIDER, new Uint8Array(32).fill(7), CONTEXT)).toThrow(RangeError);
    const constant = Buffer.concat([Buffer.alloc(32, 7), randomBytes(32)]);
    expect(() => copyDataKey(PROVIDER, constant, NO_CONTEXT)).toThrow(RangeError);
  });

  test.each([[undefined], [null], ['x'.repeat(32)], [32], [[...randomBytes(32)]], [new Uint16Array(32)]])(
    'a data key given as %o is refused with a TypeError (F17)',
    (dataKey) => {
      expect(() => copyDataKey(PROVIDER, dataKey, CONTEXT)).toThrow(TypeError);
    },
  );
});

describe('the data key in the answer of a service', () => {
  test('a data key in the answer of a service is copied, and the bytes of the SDK are overwritten (F22)', () => {
    const plaintext = randomBytes(32);
    const before = Uint8Array.from(plaintext);
    expect(takeDataKey(PROVIDER, 'unwrap', plaintext, CONTEXT)).toEqual(before);
    expect(plaintext).toEqual(Buffer.alloc(32));
    expect(takeDataKey(PROVIDER, 'unwrap', randomBytes(64), NO_CONTEXT)).toHaveLength(64);
  });

  test.each([
    ['64 bytes under a context', () => randomBytes(64)],
    ['31 bytes', () => randomBytes(31)],
    ['a constant', () => Buffer.alloc(32, 7)],
    ['nothing', () => Buffer.alloc(0)],
  ])('%s as the data key in an answer is corrupt, but still overwritten (adapter rule 4)', (_, make) => {
    const plaintext = make();
    expect(() => takeDataKey(PROVIDER, 'generate', plaintext, CONTEXT)).toThrow(
      expect.objectContaining({ kind: 'corrupt', summary: expect.objectContaining({ operation: 'generate' }) }),
    );
    expect(plaintext).toEqual(Buffer.alloc(plaintext.length));
  });

  test.each([[undefined], [null], ['canary'], [{}], [[...randomBytes(32)]]])(
    'an answer with %o as the data key is corrupt (adapter rule 4)',
    (plaintext) => {
      expect(() => takeDataKey(PROVIDER, 'unwrap', plaintext, CONTEXT)).toThrow(
        expect.objectContaining({ name: 'KeyWrapperError', kind: 'corrupt' }),
      );
    },
  );

  test('overwrite ignores a value that is not bytes', () => {
    for (const value of [undefined, null, 'text', 7, {}]) expect(() => overwrite(value)).not.toThrow();
  });
});

test('the ciphertext in the answer of a service has 1 to maxBytes bytes, and is copied (adapter rule 4)', () => {
  const wrapped = randomBytes(100);
  const copy = copyWrapped(PROVIDER, 'wrap', wrapped, 100);
  expect(copy).toEqual(new Uint8Array(wrapped));
  wrapped.fill(0);
  expect(copy).not.toEqual(new Uint8Array(wrapped));
  for (const wrong of [undefined, 'text', new Uint8Array(0), randomBytes(101)]) {
    expect(() => copyWrapped(PROVIDER, 'wrap', wrong, 100)).toThrow(expect.objectContaining({ kind: 'corrupt' }));
  }
});

describe('a wrapped key to be unwrapped', () => {
  test('a wrapped key to be unwrapped is copied', () => {
    const wrapped = new Uint8Array(randomBytes(100));
    const before = Uint8Array.from(wrapped);
    const read = readWrappedKey(PROVIDER, { provider: PROVIDER, keyId: 'mine', wrapped }, RULES);
    wrapped.fill(0);
    expect(read).toEqual({ provider: PROVIDER, keyId: 'mine', wrapped: before });
  });

  test.each([
    [undefined],
    [null],
    ['text'],
    [{}],
    [{ provider: 7, keyId: 'mine', wrapped: new Uint8Array(1) }],
    [{ provider: PROVIDER, keyId: 7, wrapped: new Uint8Array(1) }],
    [{ provider: PROVIDER, keyId: 'mine', wrapped: 'text' }],
    [{ provider: PROVIDER, keyId: 'mine', wrapped: [1] }],
  ])('a wrapped key given as %o is refused with a TypeError', (wrappedKey) => {
    expect(() => readWrappedKey(PROVIDER, wrappedKey, RULES)).toThrow(TypeError);
  });

  test.each([
    ['another provider', { provider: 'b-kms', keyId: 'mine', wrapped: new Uint8Array(1) }],
    ['a KMS key outside the allow-list', { provider: PROVIDER, keyId: 'yours', wrapped: new Uint8Array(1) }],
    ['no bytes', { provider: PROVIDER, keyId: 'mine', wrapped: new Uint8Array(0) }],
    ['more bytes than the service takes', { provider: PROVIDER, keyId: 'mine', wrapped: new Uint8Array(101) }],
  ])('a wrapped key with %s is corrupt (adapter rule 6)', (_, wrappedKey) => {
    expect(() => readWrappedKey(PROVIDER, wrappedKey, RULES)).toThrow(
      expect.objectContaining({ kind: 'corrupt', summary: expect.objectContaining({ operation: 'unwrap' }) }),
    );
  });
});
