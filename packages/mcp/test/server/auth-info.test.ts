import { describe, expect, test } from 'vitest';
import { authenticatedPrincipal, authInfoOf, InvalidClaimError } from '../../src/index.ts';

const token = 'canary-token';
const principalOf = (claims: Record<string, unknown>) =>
  authenticatedPrincipal({ http: { authInfo: authInfoOf({ token, claims }) } });

describe('authInfoOf', () => {
  test('returns the client, scopes, expiry, issuer and subject of an access token', () => {
    const claims = {
      client_id: 'shop',
      iss: 'https://login.example',
      sub: 'ada',
      exp: 2e9 + 0.9,
      scope: ' read  write ',
    };
    expect(authInfoOf({ token, claims })).toStrictEqual({
      token,
      clientId: 'shop',
      scopes: ['read', 'write'],
      expiresAt: 2e9,
      extra: { iss: 'https://login.example', sub: 'ada' },
    });
    expect(authInfoOf({ token, claims: {} })).toStrictEqual({ token, clientId: 'unknown', scopes: [], extra: {} });
  });

  test.each([
    [{ client_id: 'c', azp: 'a', sub: 's' }, '["c",null,"s"]'],
    [{ client_id: '', azp: 'a', sub: 's' }, '["a",null,"s"]'],
    [{ azp: '', sub: 's' }, '["s",null,"s"]'],
    [{ sub: '' }, '["unknown",null,""]'],
    [{ client_id: 'c', iss: '', sub: null }, '["c","",null]'],
    [JSON.parse('{"__proto__":{"sub":"admin"}}'), '["unknown",null,null]'],
  ])('represents the principal of %j as %s', (claims, text) => {
    expect(principalOf(claims)).toBe(text);
  });

  test.each([
    [{ scp: ['read', 'write'] }, ['read', 'write']],
    [{ scope: null, scp: 'read' }, ['read']],
    [{ scope: '', scp: 'read' }, []],
  ])('reads the scopes of %j', (claims, scopes) => {
    expect(authInfoOf({ token, claims }).scopes).toEqual(scopes);
  });

  test.each([
    ['client_id', { client_id: 5 }, 'a string'],
    ['client_id', { client_id: false, azp: 'a' }, 'a string'],
    ['azp', { azp: ['canary'] }, 'a string'],
    ['sub', { client_id: 'c', sub: 0 }, 'a string'],
    ['iss', { iss: { canary: 1 } }, 'a string'],
    ['exp', { exp: '2000000000' }, 'a number'],
    ['exp', { exp: Number.POSITIVE_INFINITY }, 'a number'],
    ['scope', { scope: 5 }, 'a string or an array of strings'],
    ['scp', { scp: ['read', 5] }, 'a string or an array of strings'],
  ] as const)('throws an InvalidClaimError that names %s, but not its value, for %j', (claim, claims, expected) => {
    const thrown = (() => {
      try {
        return authInfoOf({ token, claims });
      } catch (error) {
        return error;
      }
    })();
    expect(thrown).toBeInstanceOf(InvalidClaimError);
    expect(thrown).toMatchObject({
      claim,
      code: 'ERR_INVALID_CLAIM',
      message: `the claim "${claim}" must be ${expected}`,
    });
  });
});
