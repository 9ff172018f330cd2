import { inspect } from 'node:util';
import { KeyManagementServiceClient } from '@google-cloud/kms';
import { describe, expect, test } from 'vitest';
import { type GcpKmsKeyWrapperOptions, gcpKmsKeyWrapper } from '../src/index.ts';
import { clientOptions, context, rejectionOf, sampleKey, World } from './world.ts';

const world = new World();
const KEY = 'projects/shop/locations/europe-west1/keyRings/mcp/cryptoKeys/sealring';

// As a caller without types could give them.
function untyped(options: unknown): GcpKmsKeyWrapperOptions {
  return Object(options);
}

describe('options', () => {
  test.each([
    ['an unknown option', { keyName: KEY, keyId: KEY }],
    ['no keyName', {}],
    ['a keyName that is not a string', { keyName: Buffer.from(KEY) }],
    ['a client without methods', { keyName: KEY, client: {} }],
    ['a client without encrypt', { keyName: KEY, client: { decrypt: async () => [] } }],
    ['a client without decrypt', { keyName: KEY, client: { encrypt: async () => [] } }],
    ['a client of null', { keyName: KEY, client: null }],
    ['alsoUnwrap as one string', { keyName: KEY, alsoUnwrap: KEY }],
    ['alsoUnwrap with a number', { keyName: KEY, alsoUnwrap: [7] }],
    ['timeoutSeconds as text', { keyName: KEY, timeoutSeconds: '5' }],
    ['maxAttempts as text', { keyName: KEY, maxAttempts: '3' }],
  ])('%s is a TypeError', (_, options) => {
    expect(() => gcpKmsKeyWrapper(untyped(options))).toThrow(TypeError);
  });

  test.each([
    ['keyName', 'of another form', { keyName: 'sealring' }],
    ['keyName', 'with a version', { keyName: `${KEY}/cryptoKeyVersions/1` }],
    ['alsoUnwrap', 'with a version', { keyName: KEY, alsoUnwrap: [`${KEY}/cryptoKeyVersions/1`] }],
    ['alsoUnwrap', 'of 65 keys', { keyName: KEY, alsoUnwrap: Array.from({ length: 65 }, () => KEY) }],
    ['timeoutSeconds', 'of 0', { keyName: KEY, timeoutSeconds: 0 }],
    ['timeoutSeconds', 'of NaN', { keyName: KEY, timeoutSeconds: Number.NaN }],
    ['timeoutSeconds', 'of 61', { keyName: KEY, timeoutSeconds: 61 }],
    ['maxAttempts', 'of 0', { keyName: KEY, maxAttempts: 0 }],
    ['maxAttempts', 'of 1.5', { keyName: KEY, maxAttempts: 1.5 }],
    ['maxAttempts', 'of 11', { keyName: KEY, maxAttempts: 11 }],
  ])('a %s %s is a RangeError that names it', (name, _, options) => {
    expect(() => gcpKmsKeyWrapper(options)).toThrow(RangeError);
    expect(() => gcpKmsKeyWrapper(options)).toThrow(name);
  });

  test('alsoUnwrap is copied: what the caller does to his list later changes nothing', async () => {
    const retired = world.setUp();
    const alsoUnwrap: string[] = [];
    const { keyWrapper } = world.setUp({ alsoUnwrap });
    const wrapped = await retired.keyWrapper.wrap(sampleKey(), { context });
    alsoUnwrap.push(retired.keyName);
    expect(await rejectionOf(keyWrapper.unwrap(wrapped, { context }))).toMatchObject({ kind: 'corrupt' });
  });

  test('F21: inspect shows provider, key and capabilities, and nothing of the client', async () => {
    const client = new KeyManagementServiceClient({ ...clientOptions(world.server), projectId: 'canary' });
    expect(inspect(client, { depth: 2 })).toContain('canary');
    const keyWrapper = gcpKmsKeyWrapper({ keyName: KEY, client });
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
