import { PutItemCommand } from '@aws-sdk/client-dynamodb';
import type { RingStoreErrorKind } from '@sealring/core';
import { checkClaim, claimLifeMs } from '@sealring/core/adapter';
import { Connection, PROOF } from './connection.ts';
import { type DynamodbSingleUseOptions, readSingleUseOptions } from './options.ts';

const OWNER = 'dynamodbSingleUse';

/** Where redeemed tokens are remembered: a `SingleUseStore` of `@sealring/mcp`. */
export interface DynamodbSingleUse {
  /** For how much longer than it lives a token is remembered: `RequestStateSecurity` refuses less than the ring's. Seconds. */
  readonly clockSkewSeconds: number;
  /**
   * True for exactly one caller per `id`, false for every other, until `expiresAt` and `clockSkewSeconds` longer; false
   * for everybody once that has passed.
   * @throws {TypeError | RangeError} for an `id` that is no text of 1 to 256 characters, or an invalid date.
   * @throws {SingleUseStoreError} when the store cannot tell: the token must then be refused.
   */
  claim(id: string, expiresAt: Date): Promise<boolean>;
  /** Ends the calls under way, and closes a client of the store's own; one that was given stays open. */
  close(): Promise<void>;
}

/** The store cannot tell whether a token was redeemed. `kind` is as in `RingStoreError`; the text is fixed and ours. */
export class SingleUseStoreError extends Error {
  override readonly name = 'SingleUseStoreError';
  /** As that of a `RingStoreError`. */
  readonly kind: RingStoreErrorKind;
  constructor(kind: RingStoreErrorKind, detail: string) {
    super(`single-use store ${kind}: ${detail}`);
    this.kind = kind;
  }

  /** The section of the documentation on this kind, a path in Sealring's repository. */
  get help(): string {
    return `docs/errors.md#singleusestoreerror-${this.kind}`;
  }
}

/**
 * Remembers redeemed tokens in a DynamoDB table, one item each: `{ pk: 'used#<id>', expires }`. A claim is one PutItem
 * on the condition that there is no such item, or that it has expired.
 *
 * `expires` is a number of seconds since the Unix epoch, `clockSkewSeconds` after the token's own end: the
 * attribute for the table's time to live, which then removes what nobody needs any more. Without it nothing is wrong but the size.
 *
 * @throws {TypeError} for an unknown option or one of a wrong type.
 * @throws {RangeError} for an option outside its bounds.
 *
 * @example
 * ```ts
 * const security = new RequestStateSecurity({ codec, singleUse: dynamodbSingleUse({ table: 'sealring' }) });
 * ```
 */
export function dynamodbSingleUse(options: DynamodbSingleUseOptions): DynamodbSingleUse {
  const settings = readSingleUseOptions(OWNER, options);
  const connection = new Connection(settings);
  return Object.freeze<DynamodbSingleUse>({
    clockSkewSeconds: settings.clockSkewMs / 1_000,

    async claim(id, expiresAt) {
      checkClaim(OWNER, id, expiresAt);
      const nowMs = Date.now();
      const leftMs = claimLifeMs(expiresAt, settings.clockSkewMs, nowMs);
      if (leftMs <= 0) return false;
      const expires = Math.ceil((nowMs + leftMs) / 1000);
      const command = new PutItemCommand({
        ...PROOF,
        TableName: settings.table,
        Item: { pk: { S: `used#${id}` }, expires: { N: String(expires) } },
        ConditionExpression: 'attribute_not_exists(pk) OR #expires < :now',
        ExpressionAttributeNames: { '#expires': 'expires' },
        ExpressionAttributeValues: { ':now': { N: String(Math.floor(nowMs / 1000)) } },
      });
      const outcome = await connection.send(command);
      if ('answer' in outcome) return true;
      const { kind, detail } = outcome.failure;
      if (kind === 'conflict') return false;
      throw new SingleUseStoreError(kind === 'contended' ? 'unavailable' : kind, detail);
    },

    async close() {
      connection.close();
    },
  });
}
