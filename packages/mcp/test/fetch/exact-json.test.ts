import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseExactly, printExactly } from '../../src/fetch/exact-json.ts';

const integer = fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }).map(String);
const text = fc
  .oneof(fc.string(), fc.constantFrom('12345678901234567890', '"', '\\', '":12345678901234567890,"'))
  .map((one) => JSON.stringify(`k${one}`));
const { json } = fc.letrec<{ json: string }>((tie) => ({
  json: fc.oneof(
    { maxDepth: 3 },
    integer,
    text,
    fc.constantFrom('null', '1.5', '0.1234567890123456', '1e-7'),
    fc.array(tie('json')).map((items) => `[${items.join(',')}]`),
    fc
      .uniqueArray(fc.tuple(text, tie('json')), { selector: ([name]) => name })
      .map((members) => `{${members.map((pair) => pair.join(':')).join(',')}}`),
  ),
}));

test('integers of any size, and strings that look like integers, survive parsing and printing', () => {
  fc.assert(
    fc.property(json, (sent) => {
      expect(printExactly(parseExactly(sent))).toBe(sent);
    }),
  );
});

test.each([
  ['1234567890123456e2', 123456789012345600],
  ['1234567890123456E2', 123456789012345600],
  ['1234567890123456.5', 1234567890123456.5],
  ['5e-1234567890123456', 0],
  ['0.1234567890123456789', 0.12345678901234568],
  ['[-12345678901234567890]', [-12345678901234567890n]],
  ['{"a":12345678901234567890}', { a: 12345678901234567890n }],
  ['9007199254740991', 9007199254740991],
  ['9007199254740992', 9007199254740992n],
  ['-0', 0],
  ['[-0,{"a":-0}]', [0, { a: 0 }]],
  ['-0.0', -0],
  ['-0e0', -0],
  ['"-0"', '-0'],
  ['[1e-0,-1]', [1, -1]],
])('%s is read as the right number', (sent, read) => {
  expect(parseExactly(sent)).toEqual(read);
});

test.each(['1e400', '-1E+400', '[1e0000000000400]', '1'.repeat(5_000), '{1234567890123456:1}', '{"a":}'])(
  '%s is rejected, as invalid JSON or as a number that no double holds',
  (sent) => {
    expect(() => parseExactly(sent)).toThrow(SyntaxError);
  },
);

test('a string is never mistaken for an integer', () => {
  const sent = '["0b6e9c1e-8f7a-4c55-9a55-111111111111-12345678901234567890",12345678901234567890]';
  expect(printExactly(parseExactly(sent))).toBe(sent);
});
