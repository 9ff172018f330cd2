import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { BoundaryRequest } from '../../src/boundary/boundary.ts';
import { BOUNDARY_EVENTS, RequestStateSecurity } from '../../src/index.ts';
import { policyOf } from '../../src/server/policy.ts';
import { StateGuard } from '../../src/server/state-guard.ts';
import { NOT_SEALED } from '../support/served.ts';

const policy = policyOf(new RequestStateSecurity({ keys: ['a key of thirty-two bytes or more, for tests'] }));
const boundary = policy.boundaryFor(null);
const ASKED = { resultType: 'input_required', requestState: 'plaintext' };
const PRINTED = JSON.stringify(ASKED);

let told: unknown[] = [];
const listen = (event: unknown) => void told.push(event);
beforeEach(() => {
  told = [];
  for (const name of BOUNDARY_EVENTS) subscribe(name, listen);
});
afterEach(() => {
  for (const name of BOUNDARY_EVENTS) unsubscribe(name, listen);
});

const guardOf = (changes: object = {}) =>
  new StateGuard(policy, Object.assign(Object.create(boundary), changes), (error) => told.push(error.message));

function requestOf(signal = new AbortController().signal): BoundaryRequest {
  const identity = boundary.identify('tools/call', { name: 't' });
  return { method: 'tools/call', identity, signal, bindPrincipal: () => null, warn: () => {} };
}

describe('a result that is not input_required', () => {
  test.each([
    ['its own member', { requestState: 'plaintext' }],
    ['its structured content', { structuredContent: ASKED }],
    ['a text', { content: [{ text: 'first' }, { text: PRINTED }] }],
    ['an embedded resource', { content: [{ resource: { text: PRINTED } }] }],
    ['a message of a prompt', { messages: [{ content: { text: PRINTED } }] }],
    ['a resource', { contents: [{ text: PRINTED }] }],
  ])('a result is not sent if %s has a state', (_name, result) => {
    expect(() => guardOf().complete('tools/call', result, false)).toThrow(expect.objectContaining(NOT_SEALED));
    expect(told).toEqual([
      'requestState: refused outbound on tools/call: unsealed requestState',
      { direction: 'outbound', method: 'tools/call', reason: 'unsealed requestState' },
    ]);
  });

  test.each([
    ['an input_required result without a state', JSON.stringify({ resultType: 'input_required' })],
    ['an object with a state, but without the resultType input_required', JSON.stringify({ requestState: 'x' })],
    ['text with both words that is not JSON', '"input_required" has a "requestState"'],
    ['not a string', 5],
  ])('a result is sent unchanged if its text is %s', (_name, text) => {
    const result = { content: [{ text }] };
    expect(guardOf().complete('tools/call', result, false)).toBe(result);
    expect(told).toEqual([]);
  });
});

test('a token that is not verified because the client disconnected is not reported as refused', async () => {
  const leaving = new AbortController();
  const unseal = async () => {
    leaving.abort(new Error('left'));
    leaving.signal.throwIfAborted();
  };
  await expect(guardOf({ unseal }).unseal(requestOf(leaving.signal), 'token')).rejects.toThrow('left');
  expect(told).toEqual([]);
});

test('the event for a sealed state is emitted only if sealing returns a token', async () => {
  expect(await guardOf({ seal: () => undefined }).seal(requestOf(), '', undefined)).toBe(undefined);
  expect(told).toEqual([]);
  expect(await guardOf({ seal: () => 'token' }).seal(requestOf(), 'x', undefined)).toBe('token');
  expect(told).toEqual([{ method: 'tools/call' }]);
});
