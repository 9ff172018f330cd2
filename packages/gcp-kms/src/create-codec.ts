import { createKmsCodec, type KmsCodec, type KmsCodecOptions } from '@sealring/core';
import { option } from '@sealring/core/adapter';
import { gcpKmsKeyWrapper } from './key-wrapper.ts';
import type { GcpKmsKeyWrapperOptions } from './options.ts';

/**
 * Options of {@link createGcpKmsCodec}: the options of the key wrapper, and the options of `createKmsCodec` except
 * `keyWrapper`.
 */
export interface GcpKmsCodecOptions
  extends Omit<GcpKmsKeyWrapperOptions, 'maxAttempts'>,
    Omit<KmsCodecOptions, 'keyWrapper' | 'closeKeyWrappers'> {
  /**
   * Attempts for each call that the ring makes; 1 to 10. Default 1, because the ring itself retries calls that a caller
   * waits for.
   */
  readonly maxAttempts?: number | undefined;
}

/**
 * Creates a codec over a ring whose data keys are wrapped by Google Cloud KMS: `gcpKmsKeyWrapper` and `createKmsCodec`
 * in one call. Without `client`, it uses Application Default Credentials.
 *
 * @throws {TypeError} for an unknown option, or for an option of the wrong type.
 * @throws {RangeError} for an option outside its bounds.
 * @throws {KeyWrapperError} or {@link RingStoreError} if startup fails.
 *
 * @example
 * ```ts
 * import { fileRing } from '@sealring/core';
 * import { createGcpKmsCodec } from '@sealring/gcp-kms';
 *
 * await using codec = await createGcpKmsCodec({
 *   keyId: 'projects/shop/locations/europe-west1/keyRings/mcp/cryptoKeys/sealring',
 *   ring: fileRing('ring.json'),
 * });
 * ```
 */
export async function createGcpKmsCodec(options: GcpKmsCodecOptions): Promise<KmsCodec> {
  option.checkFactoryOptions('createGcpKmsCodec', options);
  const { keyId, client, endpoint, dangerouslyAllowHttp, alsoUnwrap, callTimeoutSeconds, ...others } = options;
  const { maxAttempts = 1, ...codecOptions } = others;
  const access = { client, endpoint, dangerouslyAllowHttp, callTimeoutSeconds, maxAttempts };
  const keyWrapper = gcpKmsKeyWrapper({ keyId, alsoUnwrap, ...access });
  return createKmsCodec({ ...codecOptions, keyWrapper, closeKeyWrappers: true });
}
