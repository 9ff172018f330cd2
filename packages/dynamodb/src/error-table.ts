import type { SingleUseStoreErrorKind } from '@sealring/core';
import { awsErrorRows, findRow, property, type StoreFailure, unexplained, unreachable } from '@sealring/core/adapter';

/** `conflict`: the condition of a write did not hold. `contended`: another write was in progress. */
export type Failure = StoreFailure<SingleUseStoreErrorKind | 'conflict' | 'contended'>;

const SERVICE = 'DynamoDB';
const DENIED = 'DynamoDB refused the call';
const CREDENTIALS = 'the credentials are missing, wrong or expired';
const TABLE = 'the table does not exist in this account and region, or is not ready yet';
const REQUEST = "DynamoDB does not accept the request: the table's only key must be a string, pk";
const THROTTLED = 'DynamoDB throttles: the table or the account is over its capacity';
const BUSY = 'DynamoDB cannot serve requests at the moment';

/**
 * Maps an exception name to its meaning.
 *
 * Sources: the "Errors" of GetItem and PutItem and the "Common errors" of the Amazon DynamoDB API reference;
 * "Error handling with DynamoDB" of its developer guide.
 */
export const ERROR_TABLE: Readonly<Record<string, Failure>> = Object.freeze({
  ConditionalCheckFailedException: { kind: 'conflict', detail: 'another version is stored' },
  ReplicatedWriteConflictException: { kind: 'contended', detail: 'another Region wrote at the same time' },
  TransactionConflictException: { kind: 'contended', detail: 'a transaction on the item is under way' },

  // A missing table must not look like an absent ring; it may be about to be created.
  ResourceNotFoundException: { kind: 'unavailable', detail: TABLE },
  ResourceInUseException: { kind: 'unavailable', detail: TABLE },

  ...awsErrorRows<Failure>({
    denied: { kind: 'denied', detail: DENIED },
    credentials: { kind: 'denied', detail: CREDENTIALS },
    expired: { kind: 'unavailable', detail: CREDENTIALS },
    clock: { kind: 'unavailable', detail: "this machine's clock differs from the service's" },
    // No kind of its own: the caller may not do this, and a retry cannot help.
    request: { kind: 'denied', detail: REQUEST },
    throttled: { kind: 'unavailable', detail: THROTTLED },
    busy: { kind: 'unavailable', detail: BUSY },
  }),
  SerializationException: { kind: 'denied', detail: REQUEST },
  InvalidEndpointException: { kind: 'unavailable', detail: 'DynamoDB refused the endpoint: check the region' },
  ItemCollectionSizeLimitExceededException: { kind: 'too-large', detail: 'a local index of the table is full' },
  ProvisionedThroughputExceededException: { kind: 'unavailable', detail: THROTTLED },
} satisfies Record<string, Failure>);

/**
 * What a rejection of the SDK means. Reads `name`, `code` and `$metadata.httpStatusCode` only: never a message, and
 * never the class, which differs between copies of the SDK. Never throws, whatever it is given.
 *
 * A name in the table decides, otherwise the status: a 403 without a JSON body, as proxies send it, arrives as a
 * `SyntaxError`. Anything else is `unavailable`.
 */
export function classify(error: unknown): Failure {
  const status = property(property(error, '$metadata'), 'httpStatusCode');
  const found = findRow(ERROR_TABLE, [property(error, 'name'), property(error, 'code')]);
  if (found !== undefined)
    return { kind: found.row.kind, detail: `${found.row.detail} (${found.code})`, serviceCode: found.code };
  if (status === 401 || status === 403) return { kind: 'denied', detail: `${DENIED} (status ${status})` };
  return (status === undefined ? unreachable(error, SERVICE) : undefined) ?? unexplained(status);
}
