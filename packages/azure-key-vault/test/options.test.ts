import { generateKeyPairSync } from 'node:crypto';
import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import {
  type AzureKeyVaultKeyWrapperOptions,
  azureKeyVaultKeyWrapper,
  type FetchAzureSignPublicKeysOptions,
  fetchAzureSignPublicKeys,
} from '../src/index.ts';

const VERSION = '0123456789abcdef0123456789abcdef';
const KEY = 'https://payments.vault.azure.net/keys/ring-wrapping';
const SIGN = `https://payments.vault.azure.net/keys/ring-signing/${VERSION}`;
const credential = { getToken: () => Promise.resolve({ token: 'canary-token', expiresOnTimestamp: 0 }) };
const clients = { keys: () => Object({}), cryptography: () => Object({}) };
// The example of RFC 7517, appendix A.1.
const JWK = {
  kty: 'EC',
  crv: 'P-256',
  x: 'MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4',
  y: '4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM',
};

const P384 = generateKeyPairSync('ec', { namedCurve: 'P-384' }).publicKey.export({ format: 'jwk' });

// Values that a caller without types could pass.
function untyped(options: unknown): AzureKeyVaultKeyWrapperOptions & FetchAzureSignPublicKeysOptions {
  return Object(options);
}

describe('options of the key wrapper', () => {
  test.each([
    ['an unknown option', { keyId: KEY, credential, timeout: 5 }],
    ['no keyId', { credential }],
    ['a keyId that is not a string', { keyId: new URL(KEY), credential }],
    ['neither credential nor clients', { keyId: KEY }],
    ['both credential and clients', { keyId: KEY, credential, clients }],
    ['a credential without getToken', { keyId: KEY, credential: {} }],
    ['a credential that is a token', { keyId: KEY, credential: 'canary-token' }],
    ['a credential of null', { keyId: KEY, credential: null }],
    ['clients without keys', { keyId: KEY, clients: { cryptography: clients.cryptography } }],
    ['clients without cryptography', { keyId: KEY, clients: { keys: clients.keys } }],
    ['an algorithm that is not a string', { keyId: KEY, credential, algorithm: 7 }],
    ['alsoUnwrap as one string', { keyId: KEY, credential, alsoUnwrap: KEY }],
    ['alsoUnwrap with a number', { keyId: KEY, credential, alsoUnwrap: [7] }],
    ['a signKeyId that is not a string', { keyId: KEY, credential, signKeyId: 7, signPublicKeys: [JWK] }],
    ['a signKeyId without signPublicKeys', { keyId: KEY, credential, signKeyId: SIGN }],
    ['signPublicKeys as one key', { keyId: KEY, credential, signPublicKeys: JWK }],
    ['signPublicKeys with a string', { keyId: KEY, credential, signPublicKeys: ['canary'] }],
    ['callTimeoutSeconds as text', { keyId: KEY, credential, callTimeoutSeconds: '5' }],
    ['maxAttempts as text', { keyId: KEY, credential, maxAttempts: '3' }],
    [
      'disableChallengeResourceVerification as text',
      { keyId: KEY, credential, disableChallengeResourceVerification: 'yes' },
    ],
  ])('%s causes a TypeError', (_, options) => {
    expect(() => azureKeyVaultKeyWrapper(untyped(options))).toThrow(TypeError);
    expect(() => azureKeyVaultKeyWrapper(untyped(options))).toThrow(
      new RegExp(
        `^azureKeyVaultKeyWrapper: (?!.*canary).*\\b(?:exactly one of|keyId|${Object.keys(options).join('|')})\\b`,
      ),
    );
  });

  test.each([
    ['keyId', { keyId: 'ring-wrapping' }],
    ['keyId', { keyId: KEY.replace('https', 'http') }],
    ['keyId', { keyId: `${KEY}/` }],
    ['algorithm', { algorithm: 'RSA-OAEP' }],
    ['alsoUnwrap\\[1\\]', { alsoUnwrap: [KEY, 'x'] }],
    ['alsoUnwrap', { alsoUnwrap: Array.from({ length: 65 }, () => KEY) }],
    ['signKeyId', { signKeyId: KEY, signPublicKeys: [JWK] }],
    ['signPublicKeys', { signPublicKeys: [] }],
    ['signPublicKeys', { signPublicKeys: Array.from({ length: 17 }, () => JWK) }],
    ['signPublicKeys\\[0\\]', { signPublicKeys: [P384] }],
    ['signPublicKeys\\[0\\]', { signPublicKeys: [{ ...JWK, y: JWK.x }] }],
    ['signPublicKeys\\[0\\]', { signPublicKeys: [{ ...JWK, x: undefined }] }],
    ['signPublicKeys', { algorithm: 'A256KW', signPublicKeys: [JWK] }],
    ['callTimeoutSeconds', { callTimeoutSeconds: 0 }],
    ['maxAttempts', { maxAttempts: 0 }],
    ['maxAttempts', { maxAttempts: 11 }],
    [
      'disableChallengeResourceVerification',
      { credential: undefined, clients, disableChallengeResourceVerification: true },
    ],
  ])('an invalid value of %s causes a RangeError that names the option: %j', (name, options) => {
    const given = untyped({ keyId: KEY, credential, ...options });
    expect(() => azureKeyVaultKeyWrapper(given)).toThrow(RangeError);
    expect(() => azureKeyVaultKeyWrapper(given)).toThrow(new RegExp(`^azureKeyVaultKeyWrapper: ${name}`));
  });

  test('the private part of a JSON Web Key is neither used nor shown', () => {
    const signPublicKeys = [{ ...JWK, d: 'canary' }];
    const keyWrapper = azureKeyVaultKeyWrapper({ keyId: KEY, credential, signPublicKeys });
    expect(inspect(keyWrapper, { depth: Infinity, showHidden: true })).not.toContain('canary');
    const wrong = untyped({ keyId: KEY, credential, signPublicKeys: [{ d: 'canary' }] });
    expect(() => azureKeyVaultKeyWrapper(wrong)).not.toThrow(/canary/);
  });

  test('inspect shows the provider, the key and the capabilities, but no part of the credential (F21)', async () => {
    const keyWrapper = azureKeyVaultKeyWrapper({ keyId: KEY, credential, signKeyId: SIGN, signPublicKeys: [JWK] });
    await expect(
      keyWrapper.wrap(new Uint8Array(32).fill(1, 1), { context: {}, signal: AbortSignal.abort() }),
    ).rejects.toThrow('unavailable');
    const shown = inspect(keyWrapper, { depth: Infinity, showHidden: true });
    expect(shown).toContain(KEY);
    expect(shown).not.toMatch(/canary|credential|token/i);
    expect(JSON.parse(JSON.stringify(keyWrapper))).toEqual({
      provider: 'azure-key-vault',
      keyId: KEY,
      supports: { context: false, authenticated: false, keyVersions: true },
    });
  });

  test('a key id with a version does not follow new versions of the key', () => {
    const oneVersion = `${KEY}/0123456789abcdef0123456789abcdef`;
    expect(azureKeyVaultKeyWrapper({ keyId: KEY, credential }).supports.keyVersions).toBe(true);
    expect(azureKeyVaultKeyWrapper({ keyId: oneVersion, credential }).supports.keyVersions).toBe(false);
  });

  test('wraps are authenticated with A256KW but not with RSA-OAEP-256, and signing needs signKeyId', () => {
    const rsa = { keyId: KEY, credential };
    expect(azureKeyVaultKeyWrapper({ ...rsa, algorithm: 'A256KW' }).supports.authenticated).toBe(true);
    expect(azureKeyVaultKeyWrapper(rsa).supports.authenticated).toBe(false);
    expect(Object.keys(azureKeyVaultKeyWrapper(rsa))).not.toContain('verify');
    expect(Object.keys(azureKeyVaultKeyWrapper({ ...rsa, signPublicKeys: [JWK] }))).toContain('verify');
    expect(Object.keys(azureKeyVaultKeyWrapper({ ...rsa, signPublicKeys: [JWK] }))).not.toContain('sign');
  });
});

describe('options of fetchAzureSignPublicKeys', () => {
  test.each([
    ['an unknown option', { signKeyIds: [SIGN], credential, keyId: KEY }, TypeError],
    ['no signKeyIds', { credential }, TypeError],
    ['no credential', { signKeyIds: [SIGN] }, TypeError],
    ['signKeyIds as one string', { signKeyIds: SIGN, credential }, TypeError],
    ['a signal that is not an AbortSignal', { signKeyIds: [SIGN], credential, signal: {} }, TypeError],
    ['an id without a version', { signKeyIds: [KEY], credential }, RangeError],
    ['no ids', { signKeyIds: [], credential }, RangeError],
    ['more than 16 ids', { signKeyIds: Array.from({ length: 17 }, () => SIGN), credential }, RangeError],
    ['maxAttempts out of bounds', { signKeyIds: [SIGN], credential, maxAttempts: 11 }, RangeError],
  ])('%s is refused before any call', async (_, options, type) => {
    await expect(fetchAzureSignPublicKeys(untyped(options))).rejects.toThrow(type);
    await expect(fetchAzureSignPublicKeys(untyped(options))).rejects.toThrow(
      new RegExp(
        `^fetchAzureSignPublicKeys: .*\\b(?:${['exactly one of', 'signKeyIds', ...Object.keys(options)].join('|')})\\b`,
      ),
    );
  });
});
