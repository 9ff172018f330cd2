import { PutItemCommand } from '@aws-sdk/client-dynamodb';
import { type SingleUseStore, SingleUseStoreError } from '@sealring/core';
import { singleUseStorage } from '@sealring/core/adapter';
import { CAPACITY, Connection } from './connection.ts';
import { type DynamodbSingleUseOptions, readSingleUseOptions } from './options.ts';

const OWNER = 'dynamodbSingleUse';

/**
 * Remembers redeemed tokens in a DynamoDB table, one item each: `{ pk: 'used#<id>', expires }`. A claim is one PutItem
 * on the condition that the item does not exist or has expired.
 *
 * `expires` is a time in seconds since the Unix epoch: `clockSkewSeconds` after the token expires. Make it the table's
 * time-to-live attribute, so that DynamoDB removes expired items; otherwise the table only grows.
 *
 * @throws {TypeError} for an unknown option, or for an option of the wrong type.
 * @throws {RangeError} for an option outside its bounds.
 *
 * @example
 * ```ts
 * const security = new RequestStateSecurity({ codec, singleUse: dynamodbSingleUse({ table: 'sealring' }) });
 * ```
 */
export function dynamodbSingleUse(options: DynamodbSingleUseOptions): Required<SingleUseStore> {
  const settings = readSingleUseOptions(OWNER, options);
  const connection = new Connection(settings);
  return Object.freeze<Required<SingleUseStore>>({
    clockSkewSeconds: settings.clockSkewMs / 1_000,

    async claim(id, expiresAt) {
      singleUseStorage.checkClaim(OWNER, id, expiresAt);
      const nowMs = Date.now();
      const leftMs = singleUseStorage.claimLifeMs(expiresAt, settings.clockSkewMs, nowMs);
      if (leftMs <= 0) return false;
      const expires = Math.ceil((nowMs + leftMs) / 1000);
      const command = new PutItemCommand({
        ...CAPACITY,
        TableName: settings.table,
        Item: { pk: { S: `used#${id}` }, expires: { N: String(expires) } },
        ConditionExpression: 'attribute_not_exists(pk) OR #expires < :now',
        ExpressionAttributeNames: { '#expires': 'expires' },
        ExpressionAttributeValues: { ':now': { N: String(Math.floor(nowMs / 1000)) } },
      });
      const outcome = await connection.send(command);
      if ('answer' in outcome) return true;
      const { kind, detail, serviceCode } = outcome.failure;
      if (kind === 'conflict') return false;
      throw new SingleUseStoreError(kind === 'contended' ? 'unavailable' : kind, detail, { serviceCode });
    },

    async close() {
      connection.close();
    },
  });
}
