import { inspect } from 'node:util';
import { KeyManagementServiceClient } from '@google-cloud/kms';
import { describe, expect, test } from 'vitest';
import { type GcpKmsKeyWrapperOptions, gcpKmsKeyWrapper } from '../src/index.ts';
import { clientOptions, context, rejectionOf, sampleKey, World } from './world.ts';

const world = new World();
const KEY = 'projects/shop/locations/europe-west1/keyRings/mcp/cryptoKeys/sealring';

// Values that a caller without types could pass.
function untyped(options: unknown): GcpKmsKeyWrapperOptions {
  return Object(options);
}

describe('options', () => {
  test.each([
    ['an unknown option', { keyId: KEY, keyName: KEY }],
    ['no keyId', {}],
    ['a keyId that is not a string', { keyId: Buffer.from(KEY) }],
    ['a client without methods', { keyId: KEY, client: {} }],
    ['a client without encrypt', { keyId: KEY, client: { decrypt: async () => [] } }],
    ['a client without decrypt', { keyId: KEY, client: { encrypt: async () => [] } }],
    ['a client of null', { keyId: KEY, client: null }],
    ['alsoUnwrap as one string', { keyId: KEY, alsoUnwrap: KEY }],
    ['alsoUnwrap with a number', { keyId: KEY, alsoUnwrap: [7] }],
    ['callTimeoutSeconds as text', { keyId: KEY, callTimeoutSeconds: '5' }],
    ['maxAttempts as text', { keyId: KEY, maxAttempts: '3' }],
    ['dangerouslyAllowHttp as text', { keyId: KEY, dangerouslyAllowHttp: 'yes' }],
  ])('%s causes a TypeError that names the option', (_, options) => {
    const [name = 'keyId'] = Object.keys(options).toReversed();
    expect(() => gcpKmsKeyWrapper(untyped(options))).toThrow(TypeError);
    expect(() => gcpKmsKeyWrapper(untyped(options))).toThrow(new RegExp(`^gcpKmsKeyWrapper: .*\\b${name}\\b`));
  });

  test.each([
    ['keyId', 'of another form', { keyId: 'sealring' }],
    ['keyId', 'with a version', { keyId: `${KEY}/cryptoKeyVersions/1` }],
    ['alsoUnwrap', 'with a version', { keyId: KEY, alsoUnwrap: [`${KEY}/cryptoKeyVersions/1`] }],
    ['alsoUnwrap', 'of 65 keys', { keyId: KEY, alsoUnwrap: Array.from({ length: 65 }, () => KEY) }],
    ['endpoint', 'of another machine without TLS', { keyId: KEY, endpoint: 'http://emulator.example:4443' }],
    ['callTimeoutSeconds', 'of 0', { keyId: KEY, callTimeoutSeconds: 0 }],
    ['maxAttempts', 'of 0', { keyId: KEY, maxAttempts: 0 }],
    ['maxAttempts', 'of 11', { keyId: KEY, maxAttempts: 11 }],
  ])('a %s %s causes a RangeError that names it', (name, _, options) => {
    expect(() => gcpKmsKeyWrapper(options)).toThrow(RangeError);
    expect(() => gcpKmsKeyWrapper(options)).toThrow(`gcpKmsKeyWrapper: ${name}`);
  });

  test('alsoUnwrap is copied: later changes to the caller’s list have no effect', async () => {
    const retired = world.setUp();
    const alsoUnwrap: string[] = [];
    const { keyWrapper } = world.setUp({ alsoUnwrap });
    const wrapped = await retired.keyWrapper.wrap(sampleKey(), { context });
    alsoUnwrap.push(retired.keyId);
    expect(await rejectionOf(keyWrapper.unwrap(wrapped, { context }))).toMatchObject({ kind: 'corrupt' });
  });

  test('inspect shows the provider, the key and the capabilities, but no part of the client (F21)', async () => {
    const client = new KeyManagementServiceClient({ ...clientOptions(world.server), projectId: 'canary' });
    expect(inspect(client, { depth: 2 })).toContain('canary');
    const keyWrapper = gcpKmsKeyWrapper({ keyId: KEY, client });
    const shown = inspect(keyWrapper, { depth: Infinity, showHidden: true });
    expect(shown).toContain(KEY);
    expect(shown).not.toMatch(/canary|client/i);
    expect(JSON.parse(JSON.stringify(keyWrapper))).toEqual({
      provider: 'gcp-kms',
      keyId: KEY,
      supports: { context: true, authenticated: true, keyVersions: true },
    });
    expect(Object.isFrozen(keyWrapper)).toBe(true);
  });
});
