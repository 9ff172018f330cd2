import { KeyWrapperError, memoryRing } from '@sealring/core';
import { describe, expect, test, vi } from 'vitest';
import { type AwsKmsCodecOptions, awsKmsKeyWrapper, createAwsKmsCodec } from '../src/index.ts';
import { FakeKms } from './fake-kms.ts';

const ID = '1234abcd-12ab-34cd-56ef-1234567890ab';
const payload = new TextEncoder().encode('state');

function setUp(): { kms: FakeKms; options: AwsKmsCodecOptions } {
  const kms = new FakeKms();
  return { kms, options: { keyId: kms.createKey(ID), client: kms, ring: memoryRing(), create: 'now' } };
}

describe('createAwsKmsCodec', () => {
  test('unseals tokens of another instance that shares its ring and KMS key', async () => {
    const { kms, options } = setUp();
    await using first = await createAwsKmsCodec(options);
    await using second = await createAwsKmsCodec(options);
    expect(second.unseal(first.seal(payload))).toEqual(first.unseal(first.seal(payload)));
    expect(new TextDecoder().decode(second.unseal(first.seal(payload)))).toBe('state');
    for (const { context } of kms.requests) expect(context).toMatchObject({ 'sealring:ring': 'default' });
  });

  test('sealing and unsealing make no KMS call (F5)', async () => {
    const { kms, options } = setUp();
    await using codec = await createAwsKmsCodec(options);
    kms.requests.length = 0;
    for (let i = 0; i < 1000; i++) codec.unseal(codec.seal(payload));
    for (let i = 0; i < 1000; i++) expect(() => codec.unseal(`${codec.seal(payload)}x`)).toThrow('malformed');
    expect(kms.requests).toEqual([]);
  });

  test('other options are passed to createKmsCodec, which rejects unknown ones', async () => {
    const { options } = setUp();
    await using codec = await createAwsKmsCodec({ ...options, policy: { tokenLifetimeSeconds: 1800 } });
    expect(codec.tokenLifetimeSeconds).toBe(1800);
    await expect(createAwsKmsCodec(Object({ ...options, keyid: ID }))).rejects.toThrow(TypeError);
    await expect(createAwsKmsCodec({ ...options, keyId: 'no such form' })).rejects.toThrow(RangeError);
  });

  test('options of the key wrapper are passed to the key wrapper', async () => {
    const { options } = setUp();
    for (const wrong of [
      { alsoUnwrap: ['x'] },
      { callTimeoutSeconds: 0 },
      { multiRegion: Object('x') },
      { maxAttempts: 0 },
    ]) {
      const [name = ''] = Object.keys(wrong);
      await expect(createAwsKmsCodec({ ...options, ...wrong }), name).rejects.toThrow(name);
    }
  });

  test('closing the codec closes the key wrapper', async () => {
    const close = vi.spyOn(Object.getPrototypeOf(awsKmsKeyWrapper({ keyId: ID, client: new FakeKms() })), 'close');
    await (await createAwsKmsCodec(setUp().options)).close();
    expect(close).toHaveBeenCalledTimes(1);
  });

  test('the start fails with the KMS error if the KMS denies access', async () => {
    const { kms, options } = setUp();
    kms.deny();
    const start = createAwsKmsCodec(options);
    await expect(start).rejects.toBeInstanceOf(KeyWrapperError);
    await expect(start).rejects.toMatchObject({ kind: 'denied', summary: { attempts: 1 } });
  });
});
