export type { S3RingClient, S3RingCommand } from './client.ts';
export type { S3Encryption, S3RingOptions } from './options.ts';
export { s3Ring } from './ring.ts';
