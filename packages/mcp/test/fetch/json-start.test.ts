import { expect, test } from 'vitest';
import { JsonStart } from '../../src/fetch/json-start.ts';

/** The result for these bytes, in one part and byte by byte. */
function results(bytes: Uint8Array): readonly unknown[] {
  const start = new JsonStart();
  const single = [...bytes].map((byte) => start.mayBeJson(Uint8Array.of(byte))).find((result) => result !== undefined);
  return [new JsonStart().mayBeJson(bytes), single];
}

test.each([
  ['7b', true],
  ['0a095b', true],
  ['2f', true],
  ['23', true],
  ['61', false],
  ['22', false],
  ['', undefined],
  ['200d0a', undefined],
  ['efbbbf7b', true],
  ['fffe7b00', true],
  ['007b', true],
  ['8b7b22', true],
  ['8b20c37b0922', true],
  ['8b7b27', true],
  ['8b5b7b', true],
  ['8b5b205b', true],
  ['8b5b22', true],
  ['8b7b', undefined],
  ['8b7b7d', false],
  ['8b5b31', false],
  ['8b23', false],
  ['8b2f2a', false],
  ['8b61', false],
  ['c3a97b7d', false],
])('a body with the first bytes %s may be JSON: %s', (hex, expected) => {
  expect(results(Buffer.from(hex, 'hex'))).toEqual([expected, expected]);
});
