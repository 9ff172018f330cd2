/**
 * Keeps a ring in a DynamoDB item: {@link dynamodbRing}. Remembers which single-use tokens were redeemed:
 * {@link dynamodbSingleUse}.
 *
 * @packageDocumentation
 */

export type { DynamodbStoreClient, DynamodbStoreCommand } from './client.ts';
export type { DynamodbRingOptions, DynamodbSingleUseOptions } from './options.ts';
export { dynamodbRing } from './ring.ts';
export { dynamodbSingleUse } from './single-use.ts';
