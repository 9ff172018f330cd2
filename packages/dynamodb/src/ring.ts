import { randomBytes } from 'node:crypto';
import { GetItemCommand, PutItemCommand, type PutItemCommandInput } from '@aws-sdk/client-dynamodb';
import { RingConflictError, type RingStore, RingStoreError, type StoredRing } from '@sealring/core';
import { ringStorage, vendorError } from '@sealring/core/adapter';
import { CAPACITY, Connection } from './connection.ts';
import type { Failure } from './error-table.ts';
import { type DynamodbRingOptions, readRingOptions } from './options.ts';

const OWNER = 'dynamodbRing';
const REVISION_BYTES = 16;
/** The revision of an item that has none, because another tool wrote it. */
const NO_REVISION = 'foreign';

/**
 * A ring store in one item of a DynamoDB table: `{ pk: 'ring#<name>', document, revision }`, all strings.
 *
 * A write is one PutItem with a condition: that the item does not exist, or that its revision is the expected one. A revision
 * is 16 random bytes, so that none recurs, even for the same document. Reads are strongly consistent: an eventually
 * consistent read may return an older ring, or none just after the ring was created.
 *
 * A document may be up to 262 144 bytes long; DynamoDB's limit is 400 KiB. The error for a stored item that is
 * `too-large` or `corrupt` contains the item's revision, so that the item can be replaced. A table that does not exist
 * is `unavailable`, never an absent ring. A write that fails as `unavailable` may have succeeded. The store's methods
 * reject with {@link RingStoreError}, {@link RingConflictError}, or a `TypeError` for wrong arguments; each call ends
 * within `callTimeoutSeconds`.
 *
 * Source: Amazon DynamoDB API reference, version 2012-08-10, GetItem and PutItem.
 *
 * @throws {TypeError} for an unknown option, or for an option of the wrong type.
 * @throws {RangeError} for an option outside its bounds.
 *
 * @example
 * ```ts
 * import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
 * import { dynamodbRing } from '@sealring/dynamodb';
 *
 * const client = new DynamoDBClient({ region: 'eu-west-1', maxAttempts: 1 });
 * const ring = dynamodbRing({ table: 'sealring', name: 'payments', client });
 * ```
 */
export function dynamodbRing(options: DynamodbRingOptions): RingStore & Required<Pick<RingStore, 'close'>> {
  const settings = readRingOptions(OWNER, options);
  const connection = new Connection(settings);
  const pk = { S: `ring#${settings.name}` };

  return Object.freeze<RingStore & Required<Pick<RingStore, 'close'>>>({
    kind: 'dynamodb',
    location: `dynamodb table ${settings.table}, item ${pk.S}`,

    async read(given) {
      ringStorage.checkRead(OWNER, given);
      const command = new GetItemCommand({ ...CAPACITY, TableName: settings.table, Key: { pk }, ConsistentRead: true });
      const outcome = await connection.send(command, given);
      if ('failure' in outcome) throw refusal(outcome.failure);
      return storedRing(vendorError.property(outcome.answer, 'Item'));
    },

    async write(document, given) {
      ringStorage.checkWrite(OWNER, document, given);
      const revision = randomBytes(REVISION_BYTES).toString('base64url');
      const command = new PutItemCommand({
        ...CAPACITY,
        TableName: settings.table,
        Item: { pk, document: { S: document }, revision: { S: revision } },
        ...conditionOf(given.expected),
      });
      const outcome = await connection.send(command, given);
      if ('answer' in outcome) return { revision };
      const { kind } = outcome.failure;
      throw kind === 'conflict' || kind === 'contended' ? new RingConflictError() : refusal(outcome.failure);
    },

    async close() {
      connection.close();
    },
  });
}

function conditionOf(
  expected: string | undefined,
): Pick<PutItemCommandInput, 'ConditionExpression' | 'ExpressionAttributeNames' | 'ExpressionAttributeValues'> {
  if (expected === undefined) return { ConditionExpression: 'attribute_not_exists(pk)' };
  const names = { '#revision': 'revision' };
  const values = { ':expected': { S: expected } };
  if (expected !== NO_REVISION) {
    return {
      ConditionExpression: '#revision = :expected',
      ExpressionAttributeNames: names,
      ExpressionAttributeValues: values,
    };
  }
  return {
    ConditionExpression:
      'attribute_exists(pk) AND (NOT attribute_type(#revision, :string) OR #revision IN (:expected, :empty))',
    ExpressionAttributeNames: names,
    ExpressionAttributeValues: { ...values, ':string': { S: 'S' }, ':empty': { S: '' } },
  };
}

/** @throws {RingStoreError} for an item that is not a ring. */
function storedRing(item: unknown): StoredRing | undefined {
  if (item === undefined) return undefined;
  const [document, revision] = [textOf(item, 'document'), textOf(item, 'revision')];
  if (document === '' || revision === '') {
    const found = { revision: revision || NO_REVISION };
    throw new RingStoreError(
      'corrupt',
      'the document or revision of the item is missing, empty or not a string',
      found,
    );
  }
  if (Buffer.byteLength(document) > ringStorage.MAX_DOCUMENT_BYTES) throw ringStorage.tooLarge(revision);
  return { document, revision };
}

function textOf(item: unknown, name: string): string {
  const value = vendorError.property(vendorError.property(item, name), 'S');
  return typeof value === 'string' ? value : '';
}

function refusal({ kind, detail, serviceCode }: Failure): RingStoreError {
  // The read conflicted with a transaction, which ends by itself.
  return new RingStoreError(kind === 'conflict' || kind === 'contended' ? 'unavailable' : kind, detail, {
    serviceCode,
  });
}
