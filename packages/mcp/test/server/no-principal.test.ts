import { McpServer } from '@modelcontextprotocol/server';
import { AesGcmRequestStateCodec } from '@sealring/core';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { principalBinder as binderOf } from '../../src/server/principal-binder.ts';
import { exchange } from '../support/exchange.ts';
import { NOT_SEALED, REFUSED, signedIn } from '../support/served.ts';

const KEY = Buffer.from('00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff', 'hex');
const codec = new AesGcmRequestStateCodec([KEY]);
const CALL = { method: 'tools/call', params: { name: 't' } };
const ask = () => ({ resultType: 'input_required', requestState: 'x' });
const client = { token: 't', clientId: 'web', scopes: [] };
const reasons = (outcome: { readonly events: readonly { readonly reason: string }[] }) =>
  outcome.events.map(({ reason }) => reason);

const emitWarning = vi.spyOn(process, 'emitWarning');
beforeEach(() => void emitWarning.mockReset().mockImplementation(() => {}));
afterEach(() => void vi.resetModules());

describe('requireSubject', () => {
  const options = { codec, requireSubject: true };
  test.each([
    ['no principal at all', undefined],
    ['an access token without a subject', client],
    ['10: an empty subject', signedIn('')],
    ['10: a subject that is null', signedIn(null)],
  ])('%s: refuses states in both directions, and emits an event', async (_name, authInfo) => {
    const sealed = await exchange(CALL, options, authInfo, ask);
    expect(sealed).toMatchObject({ error: NOT_SEALED, events: [{ direction: 'outbound', method: 'tools/call' }] });
    expect(reasons(sealed)).toEqual(['principal binding error']);
    const made = await exchange(CALL, { codec }, authInfo, ask);
    const params = { ...CALL.params, requestState: Object(made.result).requestState };
    const echoed = await exchange({ ...CALL, params }, options, authInfo);
    expect(echoed).toMatchObject({ handled: false, error: REFUSED, events: [{ direction: 'inbound' }] });
    expect(reasons(echoed)).toEqual(['principal binding error']);
  });

  test('refuses a state that was sealed without a user in a request with a user', async () => {
    const made = await exchange(CALL, { codec }, undefined, ask);
    const params = { ...CALL.params, requestState: Object(made.result).requestState };
    expect(reasons(await exchange({ ...CALL, params }, options, signedIn('ada')))).toEqual(['principal drift']);
  });

  test('accepts a request with a user, and a call without a state', async () => {
    const made = await exchange(CALL, options, signedIn('ada'), ask);
    const params = { ...CALL.params, requestState: Object(made.result).requestState };
    expect(await exchange({ ...CALL, params }, options, signedIn('ada'))).toMatchObject({ state: 'x', events: [] });
    expect(await exchange(CALL, options)).toMatchObject({ handled: true, error: undefined, events: [] });
  });

  test('a user is not required with bindPrincipal: null', async () => {
    const made = await exchange(CALL, { codec, bindPrincipal: null }, undefined, ask);
    const params = { ...CALL.params, requestState: Object(made.result).requestState };
    expect(await exchange({ ...CALL, params }, { codec, bindPrincipal: null })).toMatchObject({
      state: 'x',
      events: [],
    });
  });

  test('emits one process warning that explains what to configure', async () => {
    const { bind, warnings } = await freshBinder({ requireSubject: true });
    for (let i = 0; i < 3; i++) expect(() => bind(Object({ http: undefined }))).toThrow(TypeError);
    expect(warnings()).toHaveLength(1);
    for (const words of [/^requireSubject refused/, /request\.auth .*authInfo/, /extra\.sub/, /bindPrincipal: null$/])
      expect(warnings()[0]).toMatch(words);
    expect(warnings()[0]).toContain('docs/guides/wire-a-verifier.md');
  });
});

test.each([
  [{ authorization: 'Bearer canary' }, 1],
  [{}, 0],
])(
  'without requireSubject, a request without authInfo and with the headers %j causes %i warnings',
  async (sent, count) => {
    const { bind, warnings } = await freshBinder({});
    const req = new Request('http://127.0.0.1/mcp', { headers: sent });
    for (const http of [undefined, {}, { req }, { req }]) expect(bind(Object({ http }))).toBe(null);
    const authInfo = { token: 't', clientId: 'web', scopes: [] };
    expect(bind(Object({ http: { req, authInfo } }))).toBe('["web",null,null]');
    expect(
      warnings().filter((warning) => /^a requestState is bound to no user.*request\.auth/.test(warning)),
    ).toHaveLength(count);
    expect(warnings().join()).not.toContain('canary');
  },
);

test('a request with authInfo causes no warning, whatever its headers are', async () => {
  const { bind, warnings } = await freshBinder({});
  const req = new Request('http://127.0.0.1/mcp', { headers: { authorization: 'Bearer canary' } });
  expect(bind(Object({ http: { req, authInfo: signedIn('ada') } }))).toBe('["web","https://idp.example","ada"]');
  expect(warnings()).toEqual([]);
});

/** The binder of a policy, in a process that has not warned yet. */
async function freshBinder(options: object): Promise<{
  readonly bind: ReturnType<typeof binderOf>;
  readonly warnings: () => readonly string[];
}> {
  vi.resetModules();
  const { principalBinder } = await import('../../src/server/principal-binder.ts');
  const { policyOf } = await import('../../src/server/policy.ts');
  const { RequestStateSecurity } = await import('../../src/index.ts');
  const warnings = (): string[] =>
    emitWarning.mock.calls
      .filter(([, one]) => Object(one).code === 'SEALRING_NO_SUBJECT')
      .map(([text]) => String(text));
  return { bind: principalBinder(policyOf(new RequestStateSecurity({ codec, ...options }))), warnings };
}

test('createProtectedMcpServer rejects an empty server name, which every unnamed server would share as its audience', async () => {
  const { createProtectedMcpServer, RequestStateSecurity } = await import('../../src/index.ts');
  const serverInfo = { name: '', version: '1.0.0' };
  for (const policy of [{ codec }, { codec, audience: 'a' }]) {
    const make = () => createProtectedMcpServer({ McpServer, serverInfo, security: new RequestStateSecurity(policy) });
    expect(make).toThrow(RangeError);
    expect(make).toThrow('serverInfo.name must not be empty');
  }
});
