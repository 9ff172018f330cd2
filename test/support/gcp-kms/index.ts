export { clientOf, clientOptions, realClient } from './client.ts';
export { crc32cBitwise } from './crc32c-bitwise.ts';
export type { FakeGcpKms, KmsAnswer } from './fake-kms.ts';
export { Status } from './grpc-failure.ts';
export { type RunningGcpKms, startGcpKms } from './server.ts';
