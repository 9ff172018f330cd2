import { createDecipheriv, randomBytes } from 'node:crypto';
import { inspect } from 'node:util';
import * as fc from 'fast-check';
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { WrappedKey } from '../../src/contracts/key-wrapper.ts';
import { localKeyWrapper } from '../../src/kms/local-key-wrapper.ts';

const masterKey = Buffer.from('\xffcanary-master-key-of-more-than-32-bytes', 'latin1');
const wrapper = localKeyWrapper({ masterKey });
const context = { 'sealring:ring': 'payments', 'sealring:purpose': 'data-key' };
const dataKey = Uint8Array.from({ length: 32 }, (_, index) => index);

const corrupt = { name: 'KeyWrapperError', kind: 'corrupt' };
const refused = { name: 'TypeError', code: 'ERR_SEALRING_OPTION' };
const unavailable = { name: 'KeyWrapperError', kind: 'unavailable' };

function changed(wrapped: WrappedKey, change: (bytes: Uint8Array) => Uint8Array): WrappedKey {
  return { ...wrapped, wrapped: change(Uint8Array.from(wrapped.wrapped)) };
}

afterEach(() => {
  vi.restoreAllMocks();
});

describe('contract of a key wrapper', () => {
  test('an unwrap returns the wrapped bytes in a new array (contract 1)', async () => {
    const wrapped = await wrapper.wrap(dataKey, { context });
    const first = await wrapper.unwrap(wrapped, { context });
    expect(first).toStrictEqual(dataKey);
    expect(first.buffer.byteLength).toBe(32);
    first.fill(0);
    expect(await wrapper.unwrap(wrapped, { context })).toStrictEqual(dataKey);
  });

  test('a wrap uses the data key as it is at the call, and leaves it unchanged (contract 1)', async () => {
    const mine = Uint8Array.from(dataKey);
    const wrapping = wrapper.wrap(mine, { context });
    mine.fill(0);
    expect(await wrapper.unwrap(await wrapping, { context })).toStrictEqual(dataKey);
  });

  test('the order of the context does not matter, but every other difference does (contract 1)', async () => {
    const wrapped = await wrapper.wrap(dataKey, { context });
    const reordered = Object.fromEntries(Object.entries(context).toReversed());
    expect(await wrapper.unwrap(wrapped, { context: reordered })).toStrictEqual(dataKey);
    const others: Record<string, string>[] = [
      {},
      { 'sealring:ring': 'payments' },
      { ...context, 'sealring:ring': 'Payments' },
      { ...context, extra: '' },
      { 'sealring:ring': 'payments","sealring:purpose":"data-key' },
      JSON.parse('{"__proto__":"payments","sealring:purpose":"data-key"}'),
    ];
    for (const other of others) {
      await expect(wrapper.unwrap(wrapped, { context: other })).rejects.toMatchObject(corrupt);
    }
  });

  test('one changed bit anywhere is refused (contract 2)', async () => {
    const wrapped = await wrapper.wrap(dataKey, { context });
    expect(wrapped.wrapped).toHaveLength(60);
    for (let bit = 0; bit < 480; bit++) {
      const flipped = changed(wrapped, (bytes) => bytes.with(bit >> 3, (bytes[bit >> 3] ?? 0) ^ (1 << (bit & 7))));
      await expect(wrapper.unwrap(flipped, { context })).rejects.toMatchObject(corrupt);
    }
  });

  test.each([0, 1, 12, 28, 44, 48, 52, 56, 59, 61, 92])(
    'a wrapped key of %i bytes is refused (contract 2, F19)',
    async (length) => {
      const wrapped = await wrapper.wrap(dataKey, { context });
      const resized = changed(wrapped, (bytes) => Uint8Array.from({ length }, (_, index) => bytes[index] ?? 0));
      await expect(wrapper.unwrap(resized, { context })).rejects.toMatchObject(corrupt);
    },
  );

  test('a wrapped key with another provider or key id is corrupt, whatever else is wrong (contract 3)', async () => {
    const wrapped = await wrapper.wrap(dataKey, { context });
    const aborted = AbortSignal.abort();
    for (const other of [
      { ...wrapped, provider: 'aws-kms' },
      { ...wrapped, provider: '__proto__' },
      { ...wrapped, keyId: 'local:AAAAAAAAAAAA' },
      { ...wrapped, keyId: 'constructor' },
      { ...wrapped, keyId: `${wrapped.keyId} ` },
    ]) {
      await expect(wrapper.unwrap(other, { context, signal: aborted })).rejects.toMatchObject(corrupt);
    }
  });

  test('another master key cannot unwrap, even when the key id is forged (contract 3)', async () => {
    const other = localKeyWrapper({ masterKey: randomBytes(32) });
    const wrapped = await wrapper.wrap(dataKey, { context });
    await expect(other.unwrap(wrapped, { context })).rejects.toMatchObject(corrupt);
    await expect(other.unwrap({ ...wrapped, keyId: other.keyId }, { context })).rejects.toMatchObject(corrupt);
  });

  test('a wrong argument is rejected with a TypeError (contract 4)', async () => {
    const wrapped = await wrapper.wrap(dataKey, { context });
    const loose = (name: string, ...given: unknown[]): Promise<unknown> =>
      Reflect.apply(Reflect.get(wrapper, name), wrapper, given);
    for (const bad of [
      undefined,
      null,
      {},
      { context: null },
      { context: 'text' },
      { context: ['a'] },
      { context: { a: 1 } },
    ]) {
      await expect(loose('wrap', dataKey, bad)).rejects.toMatchObject(refused);
      await expect(loose('unwrap', wrapped, bad)).rejects.toMatchObject(refused);
      await expect(loose('generate', bad)).rejects.toMatchObject(refused);
    }
    for (const bad of [undefined, null, 'text', { ...wrapped, wrapped: 'text' }, { ...wrapped, wrapped: [1] }]) {
      await expect(loose('unwrap', bad, { context })).rejects.toMatchObject(refused);
    }
  });

  test('an aborted signal ends every call as unavailable (contract 5)', async () => {
    const wrapped = await wrapper.wrap(dataKey, { context });
    const options = { context, signal: AbortSignal.abort() };
    const during = (operation: string) => ({ ...unavailable, summary: { operation } });
    await expect(wrapper.wrap(dataKey, options)).rejects.toMatchObject(during('wrap'));
    await expect(wrapper.unwrap(wrapped, options)).rejects.toMatchObject(during('unwrap'));
    await expect(wrapper.generate?.(options)).rejects.toMatchObject(during('generate'));
  });

  test.each([
    ['a text', 'x'.repeat(32)],
    ['an array', [...dataKey]],
    ['an ArrayBuffer', dataKey.buffer],
    ['nothing', undefined],
    ['a number', 32],
  ])('%s is refused as a data key with a TypeError (contract 6, F17)', async (_, bad) => {
    await expect(Reflect.apply(wrapper.wrap.bind(wrapper), undefined, [bad, { context }])).rejects.toBeInstanceOf(
      TypeError,
    );
  });

  test('a data key of the wrong length, or of one repeated byte, causes a RangeError (contract 6, F17)', async () => {
    for (const bad of [
      ...[0, 16, 31, 33, 64].map((length) => randomBytes(length)),
      new Uint8Array(32),
      Buffer.alloc(32, 7),
    ]) {
      await expect(wrapper.wrap(bad, { context })).rejects.toBeInstanceOf(RangeError);
    }
  });

  test('generate returns a new data key each time, with its wrap', async () => {
    const seen = new Set<string>();
    for (let round = 0; round < 50; round++) {
      const made = await wrapper.generate?.({ context });
      if (made === undefined) throw new Error('generate is missing');
      expect(made.dataKey).toHaveLength(32);
      expect(await wrapper.unwrap(made.wrapped, { context })).toStrictEqual(made.dataKey);
      seen.add(Buffer.from(made.dataKey).toString('hex'));
    }
    expect(seen.size).toBe(50);
  });

  test('the capabilities of a key wrapper are declared, and cannot be changed', () => {
    expect(wrapper).toMatchObject({ provider: 'local', supports: { context: true, authenticated: true } });
    expect(Object.isFrozen(wrapper) && Object.isFrozen(wrapper.supports)).toBe(true);
    const wrapped = { provider: 'local', keyId: wrapper.keyId, wrapped: dataKey };
    const other = [wrapped, { ...wrapped, provider: 'kms' }, { ...wrapped, keyId: 'local:other' }];
    expect(other.map((each) => wrapper.owns?.(each))).toEqual([true, false, false]);
  });

  test('any data key and any context round-trip', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ minLength: 32, maxLength: 32, size: 'max' }).filter((key) => new Set(key).size > 1),
        fc.dictionary(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' })),
        async (key, any) => {
          const wrapped = await wrapper.wrap(key, { context: any });
          expect(await wrapper.unwrap(wrapped, { context: any })).toStrictEqual(key);
        },
      ),
    );
  });

  test('two wraps of one data key differ', async () => {
    const [a, b] = await Promise.all([wrapper.wrap(dataKey, { context }), wrapper.wrap(dataKey, { context })]);
    expect(a.wrapped).not.toStrictEqual(b.wrapped);
  });
});

describe('master keys', () => {
  test('a master key has the same key id as bytes, base64 and base64url', () => {
    // Base64 of this has both of the characters that base64url replaces.
    const bytes = Buffer.concat([Buffer.from('fbff', 'hex'), randomBytes(30)]);
    const forms = [bytes, bytes.toString('base64'), bytes.toString('base64url')];
    const keyIds = forms.map((form) => localKeyWrapper({ masterKey: form }).keyId);
    expect(new Set(keyIds).size).toBe(1);
    expect(keyIds[0]).toMatch(/^local:[\w-]{12}$/);
    expect(keyIds[0]).not.toBe(wrapper.keyId);
  });

  test.each([
    ['a sentence', 'in production: a key wrapper on your KMS', /not base64.*openssl rand -base64 32/],
    ['base64 with a line break', `${randomBytes(32).toString('base64')}\n`, /not base64/],
    ['base64 that lost a character', randomBytes(32).toString('base64url').slice(0, -2), /not base64|got 31/],
    ['hexadecimal', randomBytes(32).toString('hex'), /hexadecimal.*Buffer\.from\(text, 'hex'\)/],
    ['hexadecimal in upper case', randomBytes(48).toString('hex').toUpperCase(), /hexadecimal/],
    ['base64 of 31 bytes', randomBytes(31).toString('base64'), /at least 32 bytes.*got 31/],
    ['base64 of text', Buffer.from('a sentence that is long enough for a key').toString('base64'), /printable text/],
    ['the bytes of a sentence', Buffer.from('a sentence that is long enough for a key'), /printable text/],
    ['the bytes of base64', Buffer.from(randomBytes(32).toString('base64')), /printable text.*decode it/],
    ['the bytes of every kind of text', Buffer.from(' ~\t\r'.repeat(8)), /printable text/],
    ['the bytes of a hex line', Buffer.from(`${randomBytes(32).toString('hex')}\n`), /printable text/],
  ])('%s is refused with advice on what to pass instead', (_, value, reason) => {
    expect(() => localKeyWrapper({ masterKey: value })).toThrow(RangeError);
    expect(() => localKeyWrapper({ masterKey: value })).toThrow(reason);
    const alsoUnwrap = [value];
    expect(() => localKeyWrapper({ masterKey: randomBytes(32), alsoUnwrap })).toThrow(/alsoUnwrap\[0\]/);
  });

  test.each([
    ['text with a DEL character at its end', Buffer.from('a sentence that is long enough.\u007f')],
    ['text with a backspace at its end', Buffer.from('a sentence that is long enough.\b')],
    ['text with another control character at its end', Buffer.from('a sentence that is long enough.\u000e')],
    ['base64url that begins in hexadecimal', `${randomBytes(32).toString('hex')}____`],
    ['base64url that ends in hexadecimal', `____${randomBytes(32).toString('hex')}`],
    ['base64url that looks like hexadecimal, but is too short for it', randomBytes(24).toString('hex')],
  ])('a master key given as %s is accepted', (_, value) => {
    expect(localKeyWrapper({ masterKey: value }).keyId).toMatch(/^local:/);
  });

  test('a key wrapped by an earlier version still unwraps', async () => {
    const old: WrappedKey = {
      provider: 'local',
      keyId: 'local:7US9dVvQDN18',
      wrapped: Uint8Array.from(
        Buffer.from(
          '6b6442040fe02e7c62e676f115876af65e74b272de10ed093b30442879996231fc2a7ef7a9bc4202d584bc764e3b0bafc6d182fb8a232ccb6aa109c3',
          'hex',
        ),
      ),
    };
    expect(await wrapper.unwrap(old, { context })).toStrictEqual(dataKey);
  });

  test('an earlier master key unwraps but does not wrap', async () => {
    const before = await wrapper.wrap(dataKey, { context });
    const after = localKeyWrapper({ masterKey: randomBytes(32), alsoUnwrap: [masterKey] });
    expect(await after.unwrap(before, { context })).toStrictEqual(dataKey);
    expect((await after.wrap(dataKey, { context })).keyId).toBe(after.keyId);
    expect(after.keyId).not.toBe(wrapper.keyId);
  });

  test('master keys are copied, and the given array is left unchanged', async () => {
    const mine = Buffer.from(masterKey);
    const copied = localKeyWrapper({ masterKey: mine });
    expect(mine.equals(masterKey)).toBe(true);
    mine.fill(0);
    expect(await wrapper.unwrap(await copied.wrap(dataKey, { context }), { context })).toStrictEqual(dataKey);
  });

  test.each([
    ['no options', undefined, TypeError],
    ['an unknown option', { masterKey, masterkey: masterKey }, TypeError],
    ['no master key', {}, TypeError],
    ['a number', { masterKey: 32 }, TypeError],
    ['an array of numbers', { masterKey: [...masterKey] }, TypeError],
    ['a lone surrogate', { masterKey: '\ud800'.repeat(32) }, RangeError],
    ['31 bytes', { masterKey: randomBytes(31) }, RangeError],
    ['31 characters', { masterKey: 'canary-key-of-31-characters-xxx' }, RangeError],
    ['zeros', { masterKey: new Uint8Array(32) }, RangeError],
    ['one byte repeated', { masterKey: Buffer.alloc(64, 9) }, RangeError],
    ['one character repeated', { masterKey: 'x'.repeat(40) }, RangeError],
    ['alsoUnwrap that is not a list', { masterKey, alsoUnwrap: masterKey }, TypeError],
    ['a short earlier key', { masterKey, alsoUnwrap: [randomBytes(31)] }, RangeError],
    ['the same key twice', { masterKey, alsoUnwrap: [masterKey] }, RangeError],
    ['a hole among the earlier keys', { masterKey, alsoUnwrap: Array(1) }, TypeError],
  ])('%s is refused (F17)', (_, options, error) => {
    const make = () => Reflect.apply(localKeyWrapper, undefined, [options]);
    expect(make).toThrow(error);
    expect(make).toThrow(expect.objectContaining({ code: 'ERR_SEALRING_OPTION' }));
    expect(make).not.toThrow(/canary/);
  });

  test('the error names the option whose master key is refused', () => {
    expect(() => Reflect.apply(localKeyWrapper, undefined, [{ masterKey, alsoUnwrap: masterKey }])).toThrow(
      /alsoUnwrap must be an array/,
    );
    expect(() => Reflect.apply(localKeyWrapper, undefined, [{ masterKey: 32 }])).toThrow(/masterKey must be/);
  });
});

test('no buffer still holds a master key or a data key (F22)', async () => {
  const deciphers = Object.getPrototypeOf(createDecipheriv('aes-256-gcm', randomBytes(32), randomBytes(12)));
  const wrapped = await wrapper.wrap(dataKey, { context });
  const spies = [
    vi.spyOn(Buffer, 'from'),
    vi.spyOn(Buffer, 'allocUnsafeSlow'),
    vi.spyOn(deciphers as { update(): Buffer }, 'update'),
  ];
  const again = localKeyWrapper({ masterKey });
  await again.unwrap(wrapped, { context });
  await expect(again.unwrap(wrapped, { context: {} })).rejects.toMatchObject(corrupt);
  const made = spies.map(({ mock }) => mock.results.map(({ value }) => value as Buffer));
  expect(made.map(({ length }) => length > 0)).toEqual([true, true, true]);
  const secrets = made.flat().filter(({ length }) => length === 32 || length === masterKey.length);
  expect(secrets.map((bytes) => bytes.equals(Buffer.alloc(bytes.length)))).toEqual([true, true, true, true]);
});

test('neither a wrapper nor an error shows a key (F21)', async () => {
  const wrapped = await wrapper.wrap(dataKey, { context });
  const deep = { depth: Number.POSITIVE_INFINITY, showHidden: true, getters: true };
  const failures = await Promise.allSettled([
    wrapper.unwrap(wrapped, { context: { secret: 'canary-context' } }),
    wrapper.wrap(dataKey.subarray(1), { context }),
    wrapper.wrap(dataKey, { context, signal: AbortSignal.abort() }),
  ]);
  const shown = [wrapper, { nested: [wrapper] }, ...failures]
    .flatMap((value) => [
      inspect(value, deep),
      inspect(value, { ...deep, customInspect: false }),
      JSON.stringify(value),
    ])
    .join('\n');
  expect(failures.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
  for (const secret of [masterKey, dataKey.subarray(4)].map((bytes) => Buffer.from(bytes))) {
    for (const form of ['latin1', 'hex', 'base64'] as const) {
      expect(shown).not.toContain(secret.toString(form).slice(0, 20));
    }
  }
  expect(shown).not.toContain('canary');
  expect(shown).not.toContain('KeyObject');
});
