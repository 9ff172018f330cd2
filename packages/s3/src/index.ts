/**
 * Keeps a ring in an Amazon S3 object, or in a compatible service with conditional writes: {@link s3Ring}.
 *
 * @packageDocumentation
 */

export type { S3RingClient, S3RingCommand } from './client.ts';
export type { S3Encryption, S3RingOptions } from './options.ts';
export { s3Ring } from './ring.ts';
