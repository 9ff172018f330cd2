import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { checksumHolds, crc32c } from '../src/crc32c.ts';
import { crc32cBitwise } from './world.ts';

describe('CRC32C', () => {
  test.each([
    ['32 zeros', new Uint8Array(32), 0x8a9136aa],
    ['32 times 0xff', new Uint8Array(32).fill(0xff), 0x62a8ab43],
    ['0 to 31', Uint8Array.from({ length: 32 }, (_, i) => i), 0x46dd794e],
    ['31 to 0', Uint8Array.from({ length: 32 }, (_, i) => 31 - i), 0x113fdb5c],
    ['123456789', Buffer.from('123456789'), 0xe3069283],
    ['nothing', new Uint8Array(), 0],
  ])('the CRC32C of %s matches RFC 3720, B.4, and other published values', (_, bytes, expected) => {
    expect(crc32c(bytes)).toBe(expected);
  });

  test('matches a bitwise computation', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        expect(crc32c(bytes)).toBe(crc32cBitwise(bytes));
      }),
    );
  });

  test.each([
    ['text, as the SDK decodes it', { value: '3808858755' }, true],
    ['a number', { value: 3808858755 }, true],
    ['another number, as text', { value: '3808858756' }, false],
    ['text with a sign', { value: '+3808858755' }, false],
    ['text with white space', { value: ' 3808858755' }, false],
    ['hexadecimal text', { value: '0xe3069283' }, false],
    ['nothing', null, false],
    ['an empty object', {}, false],
    ['a bare number', 3808858755, false],
  ])('the check of a checksum that is %s (%j) returns %s', (_, checksum, holds) => {
    expect(checksumHolds(Buffer.from('123456789'), checksum)).toBe(holds);
  });

  test('matches no checksum of a value that is not bytes, not even the checksum of the empty input', () => {
    expect(checksumHolds('123456789', { value: 3808858755 })).toBe(false);
    expect(checksumHolds(undefined, { value: 0 })).toBe(false);
    expect(checksumHolds(new Uint8Array(), null)).toBe(false);
  });
});
