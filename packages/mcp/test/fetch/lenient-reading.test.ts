import { describe, expect, test } from 'vitest';
import { isMisleading, mayBeCarrier, mayHaveState } from '../../src/fetch/lenient-reading.ts';
import { refusedEncoding } from '../../src/fetch/request-body.ts';

describe('the lenient reader', () => {
  test.each([
    ['requestState', true],
    ['request\\u0053tate', true],
    ['request\\U0053\\u0074ate', true],
    ['request\\u{53}tate', true],
    ['request\\x53tate', true],
    ['request\\\nState', true],
    ['request\\\r\nState', true],
    ['request\\State', true],
    ['r\0e\0quest\0State', true],
    ['request\uFFFDState', true],
    ['request\\\\State', false],
    ['request\\u005State', false],
    ['requeststate', false],
  ])('finds a state in %j: %s', (text, found) => {
    expect(mayHaveState(text)).toBe(found);
  });

  test.each([
    ['tools/call', true],
    ['prompts\\/get', true],
    ['resources\\u002fread', true],
    ['\\tools/call', true],
    ['tools\\\\/call', false],
    ['tools/list', false],
  ])('finds a request that may carry a state in %j: %s', (text, found) => {
    expect(mayBeCarrier(text)).toBe(found);
  });

  test.each([
    [{ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'a', _meta: {}, task: {} } }, false],
    [{ method: 'a' }, false],
    [{ method: 5, params: null }, false],
    [{ method: 'tools/call\0' }, true],
    [{ method: 'a', params: [] }, true],
    [{ method: 'a', params: 'a' }, true],
    [{ Method: 'a' }, true],
    [{ JSONRPC: '2.0' }, true],
    [{ method: 'a', Id: 1 }, true],
    [{ method: 'a', Params: {} }, true],
    [{ method: 'a', params: { Name: 'a' } }, true],
    [{ method: 'a', params: { Arguments: {} } }, true],
    [{ 'me-thod\0x': 'a' }, true],
    [JSON.parse('{"__proto__":{}}'), true],
    [{ method: 'a', params: { request_state: 'a' } }, true],
    [{ method: 'a', params: { InputResponses: 'a' } }, true],
    [{ method: 'a', params: { arg\u0075ments: {}, URI: 'a' } }, true],
    [{ method: 'a', params: JSON.parse('{"__proto__":{}}') }, true],
    [[], true],
    [null, true],
    ['a', true],
  ])('another parser reads %j differently: %s', (message, misleading) => {
    expect(isMisleading(message)).toBe(misleading);
  });

  test('a name of over 100 characters, which could take hours, is not folded unless a NUL ends it earlier', () => {
    const spelled = (length: number): string => `request${'-'.repeat(length - 12)}State`;
    expect(isMisleading({ params: { [spelled(100)]: 'a' } })).toBe(true);
    expect(isMisleading({ params: { [spelled(101)]: 'a' } })).toBe(false);
    expect(isMisleading({ params: { [`requestState\0${'a'.repeat(100)}`]: 'a' } })).toBe(true);
    expect(isMisleading({ params: { ['\u0300\u0316'.repeat(2_000_000)]: 'a' } })).toBe(false);
  });
});

test.each<[string, string, string | undefined]>([
  ['identity', 'text/plain', undefined],
  [' Identity ', 'a/json; charset=UTF-8', undefined],
  ['identity', 'a/json;charset = "utf8" ; a=b', undefined],
  ['identity', 'a/json; charset=us-ascii;charset=utf8', undefined],
  ['br', 'text/plain', 'Content-Encoding must be identity'],
  ...['=utf-7', '="utf-8', '=utf-80', '=utf-8 x', '=', '', ' x=utf-8', '=utf-8; charset=utf-16'].map(
    (end): [string, string, string] => ['identity', `a/json; charset${end}`, 'charset must be utf-8'],
  ),
])('a body with the encoding %j and the type %j is refused with %s', (encoding, type, reason) => {
  expect(refusedEncoding(new Headers({ 'content-encoding': encoding, 'content-type': type }))).toBe(reason);
});
