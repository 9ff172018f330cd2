import { describe, expect, test } from 'vitest';
import { mayBeCarrier, mayHaveState, readLeniently } from '../../src/fetch/lenient-reading.ts';
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
    [{ jsonrpc: '2.0', id: 1, result: {} }, false],
    [{ jsonrpc: '2.0', id: 1, error: {} }, false],
    [{ method: 'a' }, false],
    [{ method: 'a', params: null }, false],
    [{ method: 'a', extra: 1 }, true],
    [{ method: 'a', result: {} }, true],
    [{ jsonrpc: '2.0', id: 1, params: {} }, true],
    [{ method: 5, params: null }, true],
    [{ method: ['tools/call'] }, true],
    [{ method: null }, true],
    [{ method: 'tools/call\0' }, true],
    [{ method: 'tools\uD800/call' }, true],
    [{ method: 'tools\uFFFD/call' }, true],
    [{ method: 'a \u{1F600}' }, false],
    [{ method: 'a', params: [] }, true],
    [{ method: 'a', params: 'a' }, true],
    [{ Method: 'a' }, true],
    [{ 'met\uD800hod': 'a' }, true],
    [{ 'met\uFFFDhod': 'a' }, true],
    [{ JSONRPC: '2.0' }, true],
    [{ method: 'a', Id: 1 }, true],
    [{ method: 'a', Params: {} }, true],
    [{ method: 'a', params: { Name: 'a' } }, true],
    [{ method: 'a', params: { Arguments: {} } }, true],
    [{ 'me-thod\0x': 'a' }, true],
    [JSON.parse('{"__proto__":{}}'), true],
    [{ method: 'a', params: { request_state: 'a' } }, true],
    [{ method: 'a', params: { 'request\uDFFFState': 'a' } }, true],
    [{ method: 'a', params: { InputResponses: 'a' } }, true],
    [{ method: 'a', params: { arg\u0075ments: {}, URI: 'a' } }, true],
    [{ method: 'a', params: JSON.parse('{"__proto__":{}}') }, true],
    [{ 0: { method: 'a' } }, true],
    [{ a: { Method: 'a' } }, true],
    [{ a: [1, { jsonrpc: '2.0' }] }, true],
    [{ a: { b: { method: 'a' } } }, false],
    [{ ID: 7, params: 'all', text: 'tools/call' }, false],
    [null, true],
    ['a', true],
    [[], false],
    [['tools/call', 1, null], false],
    [['2.0', 1, 'tools/call', {}], true],
    [[{ text: 'a' }, { method: 'a' }], false],
    [[[{ method: 'a' }]], true],
    [[{ 0: { method: 'a' } }], true],
  ])('if the text names a call, another parser reads %j differently: %s', (message, misleading) => {
    expect(readLeniently(message, true).isMisleading).toBe(misleading);
  });

  test.each([
    [{ jsonrpc: '2.0', method: true }, true],
    [{ JSONRPC: '2.0', Method: 0 }, true],
    [{ method: true, params: {} }, true],
    [
      [
        { jsonrpc: '2.0', method: 'a' },
        { jsonrpc: '2.0', method: ['a'] },
      ],
      true,
    ],
    [{ 0: { method: true, params: {} } }, true],
    [{ params: { method: true, params: {} } }, true],
    [{ method: 'a', params: { method: true, params: {} } }, false],
    [{ method: { type: 'card' }, id: 7 }, false],
    [{ method: 'a', extra: 1, Params: [] }, false],
    [{ jsonrpc: '2.0', id: 1, result: {} }, false],
    [[['a']], false],
  ])('if the text names no call, another parser reads %j differently: %s', (message, misleading) => {
    expect(readLeniently(message, false).isMisleading).toBe(misleading);
  });

  test.each([
    [{ jsonrpc: '2.0' }, true],
    [{ method: 'ping' }, true],
    [{ METHOD: 'ping' }, true],
    [[{ a: 1 }, { method: 'ping' }], true],
    [{ 0: { id: 1 }, method: true }, true],
    [{ 0: { jsonrpc: '2.0', method: 'ping' } }, true],
    [{ a: { method: 'GET' } }, false],
    [{ a: 1 }, false],
    [5, false],
  ])('a parser could find a JSON-RPC message in %j: %s', (body, holdsRpc) => {
    expect(readLeniently(body, false).holdsRpc).toBe(holdsRpc);
  });

  test('a name of over 100 characters, which could take hours, is not folded unless a NUL ends it earlier', () => {
    const spelled = (length: number): string => `request${'-'.repeat(length - 12)}State`;
    const isMisleading = (name: string): boolean =>
      readLeniently({ method: 'a', params: { [name]: 'a' } }, true).isMisleading;
    expect(isMisleading(spelled(100))).toBe(true);
    expect(isMisleading(spelled(101))).toBe(false);
    expect(isMisleading(`requestState\0${'a'.repeat(100)}`)).toBe(true);
    expect(isMisleading('\u0300\u0316'.repeat(2_000_000))).toBe(false);
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
