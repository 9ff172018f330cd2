import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { requestIdentity } from '../../src/boundary/request-identity.ts';
import { parseExactly } from '../../src/fetch/exact-json.ts';
import { compactJson } from '../../src/index.ts';
import { compactJsonVectors } from '../support/vectors.ts';

const { vectors, rejected } = compactJsonVectors;
const representable = vectors.filter((vector) => vector.jsRepresentable);
const lossy = vectors.filter((vector) => !vector.jsRepresentable);

function parses(wire: string): boolean {
  try {
    JSON.parse(wire);
    return true;
  } catch {
    return false;
  }
}

function printed(wire: string): string | undefined {
  return parses(wire) ? compactJson(JSON.parse(wire), { sortKeys: true }) : undefined;
}

function outcome(wire: string): string {
  try {
    return printed(wire) === undefined ? 'unparsed' : 'printed';
  } catch (error) {
    return error instanceof Error ? error.name : 'no Error';
  }
}

describe('the output of compactJson, compared with the MCP Python SDK', () => {
  test('the file of vectors is complete', () => {
    expect([vectors.length, rejected.length]).toEqual([276, 19]);
    expect(representable.length).toBeGreaterThan(200);
  });

  test.each(representable)('values are written as the Python SDK writes them: $name', ({ wire, canonical, digest }) => {
    const text = compactJson(JSON.parse(wire), { sortKeys: true });
    expect(text).toBe(canonical);
    expect(createHash('sha256').update(text).digest().subarray(0, 16).toString('base64url')).toBe(digest);
  });

  test.each(lossy)(
    'a value that JSON.parse changes ($jsLoss) is written as recorded: $name',
    ({ wire, canonical, jsGuessMatches }) => {
      expect(printed(wire) === canonical).toBe(jsGuessMatches ?? false);
    },
  );

  test.each(rejected)(
    'a value is refused by JSON.parse, or by compactJson because of its depth: $name',
    ({ wire, jsonParseAccepts }) => {
      expect(parses(wire)).toBe(jsonParseAccepts);
      expect(['unparsed', 'RangeError', 'printed']).toContain(outcome(wire));
      expect(outcome(wire) === 'unparsed').toBe(!jsonParseAccepts);
    },
  );
});

const digestOf = (text: string) => requestIdentity('tools/call', { name: 'n', arguments: JSON.parse(text) }).digest;

describe('the digest of arguments', () => {
  test.each(representable)('arguments have the digest of the MCP Python SDK: $name', ({ wire, canonical, digest }) => {
    const args: unknown = JSON.parse(wire);
    const falsy = ['null', 'false', '0', '""', '[]', '{}'].includes(canonical);
    const expected = falsy ? requestIdentity('tools/call', { name: 'n' }).digest : digest;
    expect(requestIdentity('tools/call', { name: 'n', arguments: args }).digest).toBe(expected);
  });

  test.each(lossy.filter(({ jsLoss }) => jsLoss?.includes('unsafe-integer')))(
    'exactly parsed integers beyond 2^53 have the same digest as in the MCP Python SDK: $name',
    ({ wire, digest }) => {
      expect(requestIdentity('tools/call', { arguments: parseExactly(wire) }).digest).toBe(digest);
    },
  );

  test.each(lossy.filter(({ jsGuessMatches }) => jsGuessMatches === true))(
    'arguments that JSON.parse changes without harm have the digest of the MCP Python SDK: $name',
    ({ wire, digest }) => {
      expect(digestOf(wire)).toBe(digest);
    },
  );

  test('a resource has no arguments, even if the request has some', () => {
    const plain = requestIdentity('resources/read', { uri: 'a:b' });
    expect(requestIdentity('resources/read', { uri: 'a:b', arguments: { x: 1 } })).toEqual(plain);
  });

  test('a name and arguments that parameters inherit through __proto__ are ignored (F17)', () => {
    const params: unknown = JSON.parse('{"__proto__":{"name":"refund","arguments":{"a":1}}}');
    expect(requestIdentity('tools/call', params)).toEqual(requestIdentity('tools/call', {}));
    expect(requestIdentity('tools/call', Object.create({ name: 'refund' }))).toEqual(requestIdentity('tools/call', {}));
  });

  test('__proto__ in arguments is an ordinary argument (F17)', () => {
    expect(digestOf('{"__proto__":{"admin":true}}')).not.toBe(digestOf('{}'));
    expect(digestOf('{"a":{"__proto__":1}}')).not.toBe(digestOf('{"a":{}}'));
  });
});
