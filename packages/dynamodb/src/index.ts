/**
 * Keeps a ring in an item of DynamoDB: {@link dynamodbRing}; and ids of tokens that may be redeemed once:
 * {@link dynamodbSingleUse}.
 *
 * @packageDocumentation
 */

export type { DynamodbStoreClient, DynamodbStoreCommand } from './client.ts';
export type { DynamodbRingOptions, DynamodbSingleUseOptions } from './options.ts';
export { dynamodbRing } from './ring.ts';
export { dynamodbSingleUse } from './single-use.ts';
