import { inspect } from 'node:util';
import { KMSClient } from '@aws-sdk/client-kms';
import { describe, expect, test } from 'vitest';
import { type AwsKmsKeyWrapperOptions, awsKmsKeyWrapper } from '../src/index.ts';
import { FakeKms } from './fake-kms.ts';

const ID = '1234abcd-12ab-34cd-56ef-1234567890ab';
const ARN = `arn:aws:kms:eu-west-1:111122223333:key/${ID}`;

// As a caller without types could pass them.
function untyped(options: unknown): AwsKmsKeyWrapperOptions {
  return Object(options);
}

describe('options', () => {
  test.each([
    ['an unknown option', { keyId: ARN, timeout: 5 }],
    ['no keyId', {}],
    ['a keyId that is not a string', { keyId: Buffer.from(ID) }],
    ['a client without send', { keyId: ARN, client: {} }],
    ['a client of null', { keyId: ARN, client: null }],
    ['alsoUnwrap as one string', { keyId: ARN, alsoUnwrap: ARN }],
    ['alsoUnwrap with a number', { keyId: ARN, alsoUnwrap: [7] }],
    ['multiRegion as text', { keyId: ARN, multiRegion: 'yes' }],
    ['callTimeoutSeconds as text', { keyId: ARN, callTimeoutSeconds: '5' }],
    ['maxAttempts as text', { keyId: ARN, maxAttempts: '3' }],
  ])('%s is a TypeError', (_, options) => {
    expect(() => awsKmsKeyWrapper(untyped(options))).toThrow(TypeError);
  });

  test.each([
    ['keyId', { keyId: 'sealring' }],
    ['alsoUnwrap', { keyId: ARN, alsoUnwrap: [ID] }],
    ['alsoUnwrap', { keyId: ARN, alsoUnwrap: ['arn:aws:kms:eu-west-1:111122223333:alias/x'] }],
    ['alsoUnwrap', { keyId: ARN, alsoUnwrap: Array.from({ length: 65 }, () => ARN) }],
    ['multiRegion', { keyId: ARN, multiRegion: true }],
    ['callTimeoutSeconds', { keyId: ARN, callTimeoutSeconds: 0 }],
    ['callTimeoutSeconds', { keyId: ARN, callTimeoutSeconds: Number.NaN }],
    ['callTimeoutSeconds', { keyId: ARN, callTimeoutSeconds: 61 }],
    ['maxAttempts', { keyId: ARN, maxAttempts: 0 }],
    ['maxAttempts', { keyId: ARN, maxAttempts: 1.5 }],
    ['maxAttempts', { keyId: ARN, maxAttempts: 11 }],
  ])('a %s that KMS or the bounds do not allow is a RangeError that names it: %j', (name, options) => {
    expect(() => awsKmsKeyWrapper(options)).toThrow(RangeError);
    expect(() => awsKmsKeyWrapper(options)).toThrow(name);
  });

  test('alsoUnwrap is copied: later changes to the caller’s list have no effect', async () => {
    const kms = new FakeKms();
    const retired = kms.createKey('99999999-12ab-34cd-56ef-1234567890ab');
    const alsoUnwrap: string[] = [];
    const options = { keyId: kms.createKey(ID), client: kms, alsoUnwrap };
    const keyWrapper = awsKmsKeyWrapper(options);
    const context = { 'sealring:ring': 'test' };
    const wrapped = await awsKmsKeyWrapper({ keyId: retired, client: kms }).wrap(sampleKey(), { context });
    alsoUnwrap.push(retired);
    await expect(keyWrapper.unwrap(wrapped, { context })).rejects.toMatchObject({ kind: 'corrupt' });
  });

  test('inspect shows provider, key and capabilities, and nothing of the client (F21)', () => {
    const client = new KMSClient({
      region: 'eu-west-1',
      maxAttempts: 1,
      credentials: { accessKeyId: 'AKCANARY', secretAccessKey: 'canary-secret' },
    });
    const keyWrapper = awsKmsKeyWrapper({ keyId: ARN, client });
    const shown = inspect(keyWrapper, { depth: Infinity, showHidden: true });
    expect(shown).toContain(ARN);
    expect(shown).not.toMatch(/canary|accessKey|config/i);
    expect(JSON.parse(JSON.stringify(keyWrapper))).toEqual({
      provider: 'aws-kms',
      keyId: ARN,
      supports: { context: true, authenticated: true },
    });
  });

  test('a wrapper with its own client is created and closed without a region or credentials', async () => {
    const keyWrapper = awsKmsKeyWrapper({ keyId: ARN });
    await keyWrapper.close();
    await expect(keyWrapper.generate({ context: {} })).rejects.toMatchObject({ kind: 'unavailable' });
  });
});

function sampleKey(): Uint8Array {
  return Uint8Array.from({ length: 32 }, (_, i) => i);
}
