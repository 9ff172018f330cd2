import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import { type VaultTransitKeyWrapperOptions, vaultTransitKeyWrapper } from '../src/index.ts';
import { context, sampleKey } from './fixture.ts';

const good = { address: 'https://vault.example.com:8200', keyId: 'payments', token: 'hvs.canary-token' };

// Values that a caller without types could pass.
function untyped(options: unknown): VaultTransitKeyWrapperOptions {
  return options as VaultTransitKeyWrapperOptions;
}

function errorOf(options: unknown): unknown {
  try {
    vaultTransitKeyWrapper(untyped(options));
  } catch (error) {
    return error;
  }
  throw new Error('it was expected to fail');
}

describe('options', () => {
  test.each([
    ['nothing', undefined, 'options'],
    ['an unknown option', { ...good, timeout: 5 }, 'timeout'],
    ['no address', { ...good, address: undefined }, 'address'],
    ['an address that is a URL object', { ...good, address: new URL(good.address) }, 'address'],
    ['no keyId', { ...good, keyId: undefined }, 'keyId'],
    ['a mount that is not a string', { ...good, mount: 7 }, 'mount'],
    ['a namespace of null', { ...good, namespace: null }, 'namespace'],
    ['neither token nor client', { ...good, token: undefined }, 'token'],
    ['a token as bytes', { ...good, token: Buffer.from('hvs.canary-token') }, 'token'],
    ['a client that is a function', { ...good, client: fetch }, 'client'],
    ['a client without fetch', { ...good, client: {} }, 'client'],
    ['alsoUnwrap as one string', { ...good, alsoUnwrap: 'transit/keys/old' }, 'alsoUnwrap'],
    ['alsoUnwrap with a number', { ...good, alsoUnwrap: [7] }, 'alsoUnwrap[0]'],
    ['callTimeoutSeconds as text', { ...good, callTimeoutSeconds: '5' }, 'callTimeoutSeconds'],
    ['maxAttempts as text', { ...good, maxAttempts: '3' }, 'maxAttempts'],
    ['dangerouslyAllowHttp as text', { ...good, dangerouslyAllowHttp: 'yes' }, 'dangerouslyAllowHttp'],
  ])('%s causes a TypeError that names the option', (_, options, name) => {
    const error = errorOf(options);
    expect(error).toBeInstanceOf(TypeError);
    expect(error).toHaveProperty('message', expect.stringContaining(name));
    expect(String(error)).toContain('Error: vaultTransitKeyWrapper: ');
    expect(inspect(error)).not.toContain('canary');
  });

  test.each([
    ['address', { address: 'vault.example.com' }],
    ['address', { address: 'ftp://vault.example.com' }],
    ['address', { address: 'https://user:canary@vault.example.com' }],
    ['address', { address: 'https://user@vault.example.com' }],
    ['address', { address: 'https://vault.example.com?token=canary' }],
    ['address', { address: 'https://vault.example.com#canary' }],
    ['address', { address: 'http://vault.example.com:8200' }],
    ['address', { address: 'http://127.0.0.1.example.com:8200' }],
    ['address', { address: 'http://10.0.0.1:8200' }],
    ['keyId', { keyId: '' }],
    ['keyId', { keyId: 'a/b' }],
    ['keyId', { keyId: '..' }],
    ['keyId', { keyId: '-a' }],
    ['keyId', { keyId: 'a'.repeat(129) }],
    ['mount', { mount: '' }],
    ['mount', { mount: '/transit' }],
    ['mount', { mount: 'a/../b' }],
    ['mount', { mount: 'a?b' }],
    ['namespace', { namespace: '' }],
    ['namespace', { namespace: 'a//b' }],
    ['token', { token: '' }],
    ['token', { token: 'hvs.canary-token\n' }],
    ['token', { token: 'canary\r\nX-Other: 1' }],
    ['token', { token: 'canary'.repeat(2000) }],
    ['alsoUnwrap', { alsoUnwrap: ['old'] }],
    ['alsoUnwrap', { alsoUnwrap: ['transit/keys/old:v1'] }],
    ['alsoUnwrap', { alsoUnwrap: Array.from({ length: 65 }, () => 'transit/keys/old') }],
    ['callTimeoutSeconds', { callTimeoutSeconds: 0 }],
    ['maxAttempts', { maxAttempts: 0 }],
    ['maxAttempts', { maxAttempts: 11 }],
  ])('an invalid value of %s causes a RangeError that names the option: %j', (name, change) => {
    const error = errorOf({ ...good, ...change });
    expect(error).toBeInstanceOf(RangeError);
    expect(error).toHaveProperty('message', expect.stringContaining(name));
    expect(String(error)).toContain('Error: vaultTransitKeyWrapper: ');
    expect(inspect(error)).not.toContain('canary');
  });

  test.each([
    'http://127.0.0.1:8200',
    'http://localhost:8200',
    'http://[::1]:8200',
    'https://vault.example.com/prefix/',
  ])('%s is accepted as the address', (address) => {
    expect(vaultTransitKeyWrapper({ ...good, address }).keyId).toBe('transit/keys/payments');
  });

  test('http:// to another machine needs dangerouslyAllowHttp', () => {
    const address = 'http://vault.example.com:8200';
    expect(vaultTransitKeyWrapper({ ...good, address, dangerouslyAllowHttp: true }).provider).toBe('vault-transit');
  });

  test('a slash at the end of mount or namespace, as Vault prints them, is ignored', () => {
    const keyWrapper = vaultTransitKeyWrapper({ ...good, namespace: 'team/sub/', mount: 'deep/transit/' });
    expect(keyWrapper.keyId).toBe('team/sub/deep/transit/keys/payments');
  });

  test('requests are POSTs to the address and its path, contain the token if there is one, and follow no redirects', async () => {
    const seen: unknown[] = [];
    const client = {
      fetch(url: string, { method, headers, redirect }: { method: string; headers: object; redirect: string }) {
        seen.push({ url, method, headers, redirect });
        return Promise.reject(new TypeError('fetch failed'));
      },
    };
    const address = 'https://vault.example.com/prefix//';
    for (const token of [good.token, undefined]) {
      const options = { address, keyId: 'k', namespace: 'team', client, maxAttempts: 1, ...(token && { token }) };
      await expect(vaultTransitKeyWrapper(options).wrap(sampleKey(), { context })).rejects.toMatchObject({
        kind: 'unavailable',
      });
    }
    const common = { 'Content-Type': 'application/json', 'X-Vault-Request': 'true' };
    const request = {
      url: 'https://vault.example.com/prefix/v1/team/transit/encrypt/k',
      method: 'POST',
      redirect: 'manual',
    };
    expect(seen).toEqual([
      { ...request, headers: { ...common, 'X-Vault-Token': good.token } },
      { ...request, headers: common },
    ]);
  });

  test('alsoUnwrap is copied: later changes to the caller’s list have no effect', () => {
    const alsoUnwrap = ['transit/keys/old'];
    const keyWrapper = vaultTransitKeyWrapper({ ...good, alsoUnwrap });
    alsoUnwrap[0] = 'transit/keys/other';
    const wrapOf = (key: string) => ({ provider: 'vault-transit', keyId: `${key}:v1`, wrapped: new Uint8Array(1) });
    expect(keyWrapper.owns?.(wrapOf('transit/keys/old'))).toBe(true);
    expect(keyWrapper.owns?.(wrapOf('transit/keys/other'))).toBe(false);
  });

  test('inspect shows the provider, the key and the capabilities, but no token (F21)', () => {
    for (const token of [good.token, () => good.token]) {
      const keyWrapper = vaultTransitKeyWrapper({ ...good, token });
      expect(inspect(keyWrapper, { depth: Infinity, showHidden: true, getters: true })).not.toMatch(/canary|token/i);
      expect(JSON.parse(JSON.stringify(keyWrapper))).toEqual({
        provider: 'vault-transit',
        keyId: 'transit/keys/payments',
        supports: { context: true, authenticated: true, keyVersions: true },
      });
      expect(Object.isFrozen(keyWrapper)).toBe(true);
    }
  });
});
