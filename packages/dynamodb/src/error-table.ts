import type { SingleUseStoreErrorKind } from '@sealring/core';
import { type StoreFailure, vendorError } from '@sealring/core/adapter';

/** `conflict`: the condition of a write did not hold. `contended`: another write was in progress. */
export type Failure = StoreFailure<SingleUseStoreErrorKind | 'conflict' | 'contended'>;

const DENIED = 'DynamoDB refused the call';
const CREDENTIALS = 'the credentials are missing, wrong or expired';
const REQUEST = "DynamoDB does not accept the request: the table's only key must be a string named pk";
const CLOCK: Failure = { kind: 'unavailable', detail: "this machine's clock differs from the service's" };
const THROTTLED = 'DynamoDB throttled the call: the table or the account is over its capacity';

/**
 * Maps an exception name to its meaning.
 *
 * Sources: the "Errors" sections of GetItem and PutItem and the section "Common errors" in the Amazon DynamoDB API
 * reference; "Error handling with DynamoDB" in the developer guide.
 */
export const ERROR_TABLE: Readonly<Record<string, Failure>> = Object.freeze({
  ...vendorError.awsErrorRows<Failure>({
    denied: { kind: 'denied', detail: DENIED },
    credentials: { kind: 'denied', detail: CREDENTIALS },
    expired: { kind: 'unavailable', detail: CREDENTIALS },
    clock: CLOCK,
    // An invalid request has no separate kind. It is `denied`, because the caller may not do this and a retry cannot
    // help.
    request: { kind: 'denied', detail: REQUEST },
    throttled: { kind: 'unavailable', detail: THROTTLED },
    busy: { kind: 'unavailable', detail: 'DynamoDB cannot serve requests at the moment' },
  }),
  ...vendorError.errorTable<Failure['kind']>([
    ['conflict', 'another version is stored', 'ConditionalCheckFailedException'],
    ['contended', 'another Region wrote at the same time', 'ReplicatedWriteConflictException'],
    ['contended', 'a transaction on the item is under way', 'TransactionConflictException'],
    // A missing table must not look like an absent ring; it may be about to be created.
    [
      'unavailable',
      'the table does not exist in this account and region, or is not ready yet',
      'ResourceNotFoundException ResourceInUseException',
    ],
    ['denied', REQUEST, 'SerializationException'],
    ['unavailable', 'DynamoDB refused the endpoint: check the region', 'InvalidEndpointException'],
    ['too-large', 'a local index of the table is full', 'ItemCollectionSizeLimitExceededException'],
    ['unavailable', THROTTLED, 'ProvisionedThroughputExceededException'],
  ]),
});

/** The meaning of a signature that was refused because of a wrong clock. */
const CLOCK_TABLE = Object.freeze({ InvalidSignatureException: CLOCK });

/** A 403 without a JSON body, such as a proxy sends, arrives as a `SyntaxError`. */
const BY_STATUS = vendorError.errorTable<Failure['kind']>([['denied', DENIED, '401 403']]);

/**
 * Classifies a rejection by the SDK. Reads only `name`, `code` and `$metadata`, and the message of a refused signature,
 * which is never copied; never the class, which differs between copies of the SDK.
 */
export function classify(error: unknown): Failure {
  const { codes, status, isClockError } = vendorError.awsErrorFacts(error);
  const store = { service: 'DynamoDB', table: isClockError ? CLOCK_TABLE : ERROR_TABLE, byStatus: BY_STATUS };
  return vendorError.storeFailure<Failure['kind']>(store, error, status, codes);
}
