import { createKmsCodec, type KmsCodec, type KmsCodecOptions } from '@sealring/core';
import { option } from '@sealring/core/adapter';
import { awsKmsKeyWrapper } from './key-wrapper.ts';
import type { AwsKmsKeyWrapperOptions } from './options.ts';

/**
 * Options of {@link createAwsKmsCodec}: the options of the key wrapper, and the options of `createKmsCodec` except
 * `keyWrapper`.
 */
export interface AwsKmsCodecOptions
  extends Omit<AwsKmsKeyWrapperOptions, 'maxAttempts'>,
    Omit<KmsCodecOptions, 'keyWrapper' | 'closeKeyWrappers'> {
  /**
   * Attempts for each call that the ring makes; 1 to 10. Default 1, because the ring itself retries calls that a caller
   * waits for.
   */
  readonly maxAttempts?: number | undefined;
}

/**
 * Creates a codec over a ring whose data keys are wrapped by AWS KMS: `awsKmsKeyWrapper` and `createKmsCodec` in one
 * call. Without `client`, the key wrapper takes its credentials from the AWS default chain, and also its region unless
 * `keyId` is an ARN.
 *
 * @throws {TypeError} for an unknown option, or for an option of the wrong type.
 * @throws {RangeError} for an option outside its bounds.
 * @throws {KeyWrapperError} or {@link RingStoreError} if startup fails.
 *
 * @example
 * ```ts
 * import { createAwsKmsCodec } from '@sealring/aws-kms';
 * import { fileRing } from '@sealring/core';
 *
 * await using codec = await createAwsKmsCodec({ keyId: 'alias/sealring', ring: fileRing('ring.json') });
 * ```
 */
export async function createAwsKmsCodec(options: AwsKmsCodecOptions): Promise<KmsCodec> {
  option.checkFactoryOptions('createAwsKmsCodec', options);
  const { keyId, client, alsoUnwrap, multiRegion, callTimeoutSeconds, maxAttempts = 1, ...codecOptions } = options;
  const keyWrapper = awsKmsKeyWrapper({ keyId, client, alsoUnwrap, multiRegion, callTimeoutSeconds, maxAttempts });
  return createKmsCodec({ ...codecOptions, keyWrapper, closeKeyWrappers: true });
}
