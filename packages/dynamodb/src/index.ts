/**
 * Keeps a ring in an item of DynamoDB: {@link dynamodbRing}; and ids that may be used once: {@link dynamodbSingleUse}.
 *
 * @packageDocumentation
 */

export type { DynamodbStoreClient, DynamodbStoreCommand } from './client.ts';
export type { DynamodbRingOptions, DynamodbSingleUseOptions } from './options.ts';
export { dynamodbRing } from './ring.ts';
export { dynamodbSingleUse } from './single-use.ts';
