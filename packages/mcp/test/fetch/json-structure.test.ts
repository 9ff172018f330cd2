import { expect, test } from 'vitest';
import { parseExactly } from '../../src/fetch/exact-json.ts';
import { hasDuplicates, hasReference } from '../../src/fetch/json-structure.ts';

test.each([
  ['{"a":1,"b":[{"a":2},{"a":":"}]}', false],
  ['{"a":1,"\\u0061":2}', true],
  ['[{"b":{"a":1,"a":1}}]', true],
  ['{"__proto__":1}', false],
  ['{"__proto__":1,"__proto__":2}', true],
  ['{"a":12345678901234567890,"a":1}', true],
  ['"a:b"', false],
  [`${'['.repeat(100_000)}{"a":1,"a":1}${']'.repeat(100_000)}`, true],
])('the check for members with the same name reads %s as %s', (text, expected) => {
  expect(hasDuplicates(text, parseExactly(text))).toBe(expected);
});

test.each([
  '$',
  '$.x',
  '$x',
  '$..x',
  '@',
  '@.x',
  '..',
  '../x',
  '',
  'x',
  'x.y',
  '/x',
  './x',
  '[0]',
  '1',
  ' $.x',
  'Pet.json',
  // fastjson 1.2 does not take these for a fragment or a URL.
  '#',
  'a:',
  'https:',
])('a parser could resolve the reference %j', (reference) => {
  expect(hasReference({ a: [{ b: { $ref: reference } }] })).toBe(true);
  expect(hasReference({ a: { ref: reference, $id: reference } })).toBe(false);
});

test.each(['#/definitions/a', '#a', 'https://example.com/a.json', 'urn:a:b'])(
  'no parser resolves the reference %j, unless an object has it as its $id',
  (reference) => {
    expect(hasReference([{ $ref: reference }, { $id: `${reference}/b` }])).toBe(false);
    expect(hasReference({ a: { $ref: reference }, b: [{ $id: reference }] })).toBe(true);
  },
);

test.each([[{ $ref: 1 }], [{ $ref: null }], [{ $ref: { $id: 'a' } }], [null], ['$ref'], [[]]])(
  '%j contains no reference',
  (value) => {
    expect(hasReference(value)).toBe(false);
  },
);

test('a reference is found in a value that is nested 100 000 deep', () => {
  const text = `${'['.repeat(100_000)}{"$ref":"$"}${']'.repeat(100_000)}`;
  expect(hasReference(JSON.parse(text))).toBe(true);
});
