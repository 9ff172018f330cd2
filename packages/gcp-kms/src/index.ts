/**
 * Wraps data keys with Google Cloud KMS: {@link gcpKmsKeyWrapper}, and {@link createGcpKmsCodec} for a codec in one call.
 *
 * @packageDocumentation
 */

export type {
  GcpKmsCallOptions,
  GcpKmsChecksum,
  GcpKmsClient,
  GcpKmsDecryptRequest,
  GcpKmsEncryptRequest,
} from './client.ts';
export { createGcpKmsCodec, type GcpKmsCodecOptions } from './create-codec.ts';
export { gcpKmsKeyWrapper } from './key-wrapper.ts';
export type { GcpKmsKeyWrapperOptions } from './options.ts';
