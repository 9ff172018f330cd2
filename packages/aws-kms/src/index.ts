/**
 * Wraps data keys with AWS KMS: {@link awsKmsKeyWrapper}, and {@link createAwsKmsCodec} for a codec in one call.
 *
 * @packageDocumentation
 */

export type { AwsKmsClient, AwsKmsCommand } from './client.ts';
export { type AwsKmsCodecOptions, createAwsKmsCodec } from './create-codec.ts';
export { awsKmsKeyWrapper } from './key-wrapper.ts';
export type { AwsKmsKeyWrapperOptions } from './options.ts';
