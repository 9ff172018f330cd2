import { inspect } from 'node:util';
import { KMSClient } from '@aws-sdk/client-kms';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { type AwsKmsKeyWrapperOptions, awsKmsKeyWrapper } from '../src/index.ts';
import { FakeKms } from './fake-kms.ts';

const ID = '1234abcd-12ab-34cd-56ef-1234567890ab';
const ARN = `arn:aws:kms:eu-west-1:111122223333:key/${ID}`;

// Values that a caller without types could pass.
function untyped(options: unknown): AwsKmsKeyWrapperOptions {
  return Object(options);
}

/** The methods of the SDK's client that the wrapper calls. */
const sdk: { send(command: unknown): Promise<unknown> } = KMSClient.prototype;

afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

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
  ])('%s causes a TypeError that names the option', (_, options) => {
    const [name = 'keyId'] = Object.keys(options).toReversed();
    expect(() => awsKmsKeyWrapper(untyped(options))).toThrow(TypeError);
    expect(() => awsKmsKeyWrapper(untyped(options))).toThrow(new RegExp(`^awsKmsKeyWrapper: .*\\b${name}\\b`));
  });

  test.each([
    ['keyId', { keyId: 'sealring' }],
    ['alsoUnwrap', { keyId: ARN, alsoUnwrap: [ID] }],
    ['alsoUnwrap', { keyId: ARN, alsoUnwrap: ['arn:aws:kms:eu-west-1:111122223333:alias/x'] }],
    ['alsoUnwrap', { keyId: ARN, alsoUnwrap: Array.from({ length: 65 }, () => ARN) }],
    ['multiRegion', { keyId: ARN, multiRegion: true }],
    ['callTimeoutSeconds', { keyId: ARN, callTimeoutSeconds: 0 }],
    ['maxAttempts', { keyId: ARN, maxAttempts: 0 }],
    ['maxAttempts', { keyId: ARN, maxAttempts: 11 }],
  ])('%s causes a RangeError that names it if KMS or the bounds do not allow the value: %j', (name, options) => {
    expect(() => awsKmsKeyWrapper(options)).toThrow(RangeError);
    expect(() => awsKmsKeyWrapper(options)).toThrow(`awsKmsKeyWrapper: ${name}`);
  });

  const MRK = `mrk-${'0f'.repeat(16)}`;
  const inVirginia = (id: string): string => `arn:aws:kms:us-east-1:111122223333:key/${id}`;
  test.each([
    ['a key of another region', { keyId: ARN, alsoUnwrap: [inVirginia(ID)] }],
    [
      'a key of another region than the alias',
      { keyId: ARN.replace(/key.*/, 'alias/x'), alsoUnwrap: [inVirginia(ID)] },
    ],
    ['a replica without multiRegion', { keyId: ARN.replace(ID, MRK), alsoUnwrap: [inVirginia(MRK)] }],
    [
      'another multi-Region key of another region',
      { keyId: ARN.replace(ID, MRK), alsoUnwrap: [inVirginia(MRK.replace('0f', '0e'))], multiRegion: true },
    ],
  ])('alsoUnwrap with %s causes a RangeError, because KMS finds it only there', (_, options) => {
    expect(() => awsKmsKeyWrapper(options)).toThrow(RangeError);
    expect(() => awsKmsKeyWrapper(options)).toThrow(/alsoUnwrap\[0\] .* eu-west-1.* keyWrapper: \[old, new\]/);
  });

  test.each([
    ['a key of another account', { keyId: ARN, alsoUnwrap: [ARN.replace('1111', '9999')] }],
    ['a replica', { keyId: ARN.replace(ID, MRK), alsoUnwrap: [inVirginia(MRK)], multiRegion: true }],
    ['any region beside an alias name', { keyId: 'alias/x', alsoUnwrap: [inVirginia(ID)] }],
    ['any region beside a key id', { keyId: ID, alsoUnwrap: [inVirginia(ID)] }],
  ])('alsoUnwrap with %s is accepted', (_, options) => {
    expect(awsKmsKeyWrapper(options).keyId).toBe(options.keyId);
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

  test('inspect shows the provider, the key and the capabilities, but no part of the client (F21)', () => {
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

  test('a wrapper with its own client can be created and closed without a region or credentials', async () => {
    const destroy = vi.spyOn(KMSClient.prototype, 'destroy');
    const keyWrapper = awsKmsKeyWrapper({ keyId: ARN });
    await keyWrapper.close();
    expect(destroy).toHaveBeenCalledTimes(1);
    await expect(keyWrapper.generate({ context: {} })).rejects.toMatchObject({ kind: 'unavailable' });
  });

  test.each([
    [ARN, 'us-east-1', 'eu-west-1'],
    ['alias/sealring', 'us-east-1', 'us-east-1'],
  ])(
    'with the key %s and AWS_REGION %s, the wrapper’s own client makes one attempt per call, in %s',
    async (keyId, environment, region) => {
      vi.stubEnv('AWS_REGION', environment);
      const send = vi.spyOn(sdk, 'send').mockImplementation(() => Promise.resolve({}));
      await expect(awsKmsKeyWrapper({ keyId }).generate({ context: {} })).rejects.toMatchObject({ kind: 'corrupt' });
      const [{ config } = new KMSClient()] = send.mock.contexts as KMSClient[];
      expect([await config.region(), await config.maxAttempts()]).toEqual([region, 1]);
    },
  );

  test.each([
    ['eu-west-3', ': eu-west-3'],
    ['EU-west-3', ''],
    ['eu-west-3X', ''],
    ['e'.repeat(33), ''],
  ])(
    'a key that the wrapper’s own client does not find in %s is reported as not-found, with the hint “…%s”',
    async (region, end) => {
      vi.stubEnv('AWS_REGION', region);
      const refusal = { name: 'NotFoundException' };
      vi.spyOn(sdk, 'send').mockImplementation(() => Promise.reject(refusal));
      const hint = `no such KMS key in this account and region${end}`;
      const notFound = { kind: 'not-found', summary: { hint } };
      await expect(awsKmsKeyWrapper({ keyId: ID }).generate({ context: {} })).rejects.toMatchObject(notFound);
    },
  );
});

function sampleKey(): Uint8Array {
  return Uint8Array.from({ length: 32 }, (_, i) => i);
}
