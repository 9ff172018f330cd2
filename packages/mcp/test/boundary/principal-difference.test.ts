import { readFileSync } from 'node:fs';
import type { AuthInfo } from '@modelcontextprotocol/server';
import { AesGcmRequestStateCodec } from '@sealring/core';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import type { RequestStateSecurityOptions } from '../../src/index.ts';
import { exchange } from '../support/exchange.ts';
import { NOT_SEALED, REFUSED } from '../support/served.ts';

/** Counts the hashes, which Node still computes. */
const hashed = vi.hoisted(() => ({ principals: 0 }));
vi.mock(import('node:crypto'), async (original) => {
  const crypto = await original();
  const hash = ((...given: Parameters<typeof crypto.hash>) => {
    if (Buffer.from(given[1] as Uint8Array).includes('mcp/request-state/principal:')) hashed.principals += 1;
    return crypto.hash(...given);
  }) as typeof crypto.hash;
  return { ...crypto, default: { ...crypto, hash }, hash };
});

const codec = new AesGcmRequestStateCodec(['a key of thirty-two bytes or more, for tests']);
const CALL = { method: 'tools/call', params: { name: 'refund' } };
const ISSUER = 'https://canary-issuer.example';
const guide = readFileSync(new URL('../../../../docs/guides/fastmcp.md', import.meta.url), 'utf8');
const UNKNOWN = 'the client, the issuer or the user differs';

type Parts = readonly [clientId: string, iss: string | null, sub: string | null];

function authInfo([clientId, iss, sub]: Parts): AuthInfo {
  return { token: 't', clientId, scopes: [], extra: { iss, sub } };
}

/** The answer and the log for a state that was sealed for one principal and sent by another. */
async function echoed(sealedFor: Parts | undefined, echoedBy: Parts | undefined, options: object = {}) {
  const security: RequestStateSecurityOptions = { codec, ...options };
  const auth = (parts: Parts | undefined) => (parts === undefined ? undefined : authInfo(parts));
  const made = await exchange(CALL, security, auth(sealedFor), () => ({
    resultType: 'input_required',
    requestState: 'x',
  }));
  expect(made.error).not.toEqual(NOT_SEALED);
  const params = { ...CALL.params, requestState: Object(made.result).requestState };
  hashed.principals = 0;
  const { error, errors, events, handled } = await exchange({ ...CALL, params }, security, auth(echoedBy));
  return { error, handled, events, log: errors.map(({ message }) => message) };
}

beforeEach(() => {
  hashed.principals = 0;
});

describe('a state of another principal', () => {
  const client = 'canary-client';
  const sub = 'canary-user';
  test.each<[Parts, Parts, string]>([
    [[client, null, sub], [client, ISSUER, sub], 'the state was sealed without an issuer'],
    [[client, ISSUER, null], [client, ISSUER, sub], 'the state was sealed without a subject'],
    [[client, null, null], [client, ISSUER, sub], 'the state was sealed without an issuer or subject'],
    [[client, `${ISSUER}/`, sub], [client, ISSUER, sub], 'the issuers differ in a trailing slash'],
    [[client, ISSUER, sub], [client, `${ISSUER}/`, sub], 'the issuers differ in a trailing slash'],
    [[sub, ISSUER, sub], [client, ISSUER, sub], 'the state was sealed with the subject as client id'],
    [
      [sub, null, sub],
      [client, ISSUER, sub],
      'the state was sealed with the subject as client id and without an issuer',
    ],
    [[client, sub, ISSUER], [client, ISSUER, sub], 'issuer and subject are swapped'],
    [[client, sub, null], [client, null, sub], 'issuer and subject are swapped'],
    [[client, ISSUER, 'mallory'], [client, ISSUER, sub], UNKNOWN],
    [['other', ISSUER, sub], [client, ISSUER, sub], UNKNOWN],
    [[client, ISSUER, sub], [client, null, sub], `${UNKNOWN}; the request has no issuer`],
    [[client, ISSUER, sub], [client, ISSUER, null], `${UNKNOWN}; the request has no subject`],
    [[client, ISSUER, sub], [client, null, null], `${UNKNOWN}; the request has neither issuer nor subject`],
  ])('the log says how the state of %j differs from the request of %j: %s', async (sealedFor, echoedBy, difference) => {
    const { error, handled, events, log } = await echoed(sealedFor, echoedBy);
    expect(log).toEqual([`requestState: refused inbound on tools/call: principal (${difference})`]);
    expect(log.join()).not.toContain('canary');
    expect([error, handled]).toEqual([REFUSED, false]);
    expect(guide).toContain(`| \`${difference}\` |`);
    // The event keeps its shape: the difference is in the log only.
    expect(events).toEqual([{ direction: 'inbound', method: 'tools/call', reason: 'principal' }]);
    // One hash of the check itself, and one for each variant, whichever of them matches.
    expect(hashed.principals).toBe(8);
  });

  test('no other principal is tried when the token is accepted', async () => {
    expect(await echoed([client, ISSUER, sub], [client, ISSUER, sub])).toMatchObject({ handled: true, log: [] });
    expect(hashed.principals).toBe(1);
  });

  test.each([
    ['the state has a principal, but the request has none', [client, ISSUER, sub], undefined],
    ['the request has a principal, but the state has none', undefined, [client, ISSUER, sub]],
  ] as const)('the log names the side without a principal: %s', async (difference, sealedFor, echoedBy) => {
    const { error, log } = await echoed(sealedFor, echoedBy);
    expect(log).toEqual([`requestState: refused inbound on tools/call: principal drift (${difference})`]);
    expect(guide).toContain(`| \`${difference}\` |`);
    expect(error).toEqual(REFUSED);
    expect(hashed.principals).toBe(0);
  });

  test.each(['alice', '"alice"', '["a","b"]', '[null,"b","c"]', '["a",5,"c"]', '{"a":1}', '["a"'])(
    'the log has only the reason when a custom bindPrincipal returned %s',
    async (principal) => {
      const principals = ['another', principal];
      const { error, log } = await echoed(undefined, undefined, { bindPrincipal: () => principals.shift() ?? null });
      expect(log).toEqual(['requestState: refused inbound on tools/call: principal']);
      expect(error).toEqual(REFUSED);
      expect(hashed.principals).toBe(1);
    },
  );
});
