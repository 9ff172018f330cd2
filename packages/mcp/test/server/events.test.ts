import { randomBytes } from 'node:crypto';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { BOUNDARY_EVENTS } from '../../src/index.ts';
import { exchange } from '../support/exchange.ts';

const names = BOUNDARY_EVENTS.filter((name) => name !== 'sealring:principal-without-subject');
let heard: [string, unknown][] = [];
const listen = (event: unknown, channel: string | symbol): void => {
  heard.push([String(channel).replace('sealring:boundary-', ''), event]);
};
beforeEach(() => {
  heard = [];
  for (const name of names) subscribe(name, listen);
});
afterEach(() => {
  for (const name of names) unsubscribe(name, listen);
});

const options = { keys: [randomBytes(32)] };
const STATE = 'canary-state';
const asks = (): unknown => ({ resultType: 'input_required', requestState: STATE, inputRequests: {} });

test('the boundary emits one event for each seal, acceptance and refusal, without any part of the token (F21)', async () => {
  const call = { method: 'tools/call', params: { name: 'refund', arguments: {} } };
  const first = await exchange(call, options, undefined, asks);
  const token = String(Reflect.get(Object(first.result), 'requestState'));
  const echo = { ...call, params: { ...call.params, requestState: token } };
  expect((await exchange(echo, options)).state).toBe(STATE);
  await exchange({ ...echo, params: { ...echo.params, name: 'other' } }, options);
  await exchange(call, options, undefined, () => ({ content: [], requestState: STATE }));
  expect(heard).toEqual([
    ['sealed', { method: 'tools/call' }],
    ['unsealed', { method: 'tools/call' }],
    ['refused', { direction: 'inbound', method: 'tools/call', reason: 'request binding' }],
    ['refused', { direction: 'outbound', method: 'tools/call', reason: 'unsealed requestState' }],
  ]);
  expect(JSON.stringify(heard)).not.toContain(STATE);
});
