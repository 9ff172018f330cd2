import { randomBytes } from 'node:crypto';
import { inspect } from 'node:util';
import { afterEach, expect, test, vi } from 'vitest';
import { AesGcmRequestStateCodec } from '../../src/codec/aes-gcm-codec.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

test('a codec shows the number of its keys, and its errors begin with its name', () => {
  const codec = new AesGcmRequestStateCodec([randomBytes(32), randomBytes(32)]);
  expect(inspect(codec)).toBe('AesGcmRequestStateCodec { keys: 2 }');
  expect(JSON.stringify(codec)).toBe('{"codec":"AesGcmRequestStateCodec","keys":2}');
  expect(() => new AesGcmRequestStateCodec([randomBytes(31)])).toThrow(/^AesGcmRequestStateCodec: keys\[0\] must be/);
});

test('the copies of the secrets are overwritten (F22)', () => {
  const copies = vi.spyOn(Buffer, 'allocUnsafeSlow');
  expect(new AesGcmRequestStateCodec([randomBytes(40), randomBytes(41)]).toJSON().keys).toBe(2);
  const secrets = copies.mock.results.map(({ value }) => value as Buffer).filter(({ length }) => length >= 40);
  expect(secrets).toEqual([Buffer.alloc(40), Buffer.alloc(41)]);
});
