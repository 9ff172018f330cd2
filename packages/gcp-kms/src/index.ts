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
