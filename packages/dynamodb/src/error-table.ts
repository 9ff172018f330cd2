import type { RingStoreErrorKind } from '@sealring/core';
import {
  CONNECTION_FAILURES,
  findRow,
  property,
  type StoreFailure,
  sameRow,
  unexplained,
} from '@sealring/core/adapter';

/** `conflict`: the condition of a write did not hold. `contended`: somebody else's write was in the way. */
export type Failure = StoreFailure<RingStoreErrorKind | 'conflict' | 'contended'>;

const RIGHTS = 'DynamoDB refused the call';
const CREDENTIALS = 'the credentials are missing, wrong or expired';
const CLOCK = "this machine's clock differs from the service's";
const TABLE = 'there is no such table in this account and region, or it is not ready yet';
const REQUEST = "DynamoDB does not accept the request: the table's only key must be a string, pk";
const THROTTLED = 'DynamoDB throttles: the table or the account is over its capacity';
const BUSY = 'DynamoDB is there and cannot serve now';
const NETWORK = 'DynamoDB cannot be reached';

/**
 * Exception name, or system code of a failed connection, to what it means.
 *
 * Sources: the "Errors" of GetItem and PutItem and the "Common errors" of the Amazon DynamoDB API reference;
 * "Error handling with DynamoDB" of its developer guide; Node's system errors.
 */
export const ERROR_TABLE: Readonly<Record<string, Failure>> = Object.freeze({
  ConditionalCheckFailedException: { kind: 'conflict', detail: 'another version is stored' },
  ReplicatedWriteConflictException: { kind: 'contended', detail: 'another Region wrote at the same time' },
  TransactionConflictException: { kind: 'contended', detail: 'a transaction on the item is under way' },

  // A table that is not there must not look like a ring that is not there yet; somebody may be making it.
  ResourceNotFoundException: { kind: 'unavailable', detail: TABLE },
  ResourceInUseException: { kind: 'unavailable', detail: TABLE },

  AccessDeniedException: { kind: 'denied', detail: RIGHTS },
  AccessDenied: { kind: 'denied', detail: RIGHTS },
  NotAuthorized: { kind: 'denied', detail: RIGHTS },
  OptInRequired: { kind: 'denied', detail: RIGHTS },
  UnrecognizedClientException: { kind: 'denied', detail: CREDENTIALS },
  InvalidClientTokenId: { kind: 'denied', detail: CREDENTIALS },
  MissingAuthenticationToken: { kind: 'denied', detail: CREDENTIALS },
  MissingAuthenticationTokenException: { kind: 'denied', detail: CREDENTIALS },
  IncompleteSignature: { kind: 'denied', detail: CREDENTIALS },
  IncompleteSignatureException: { kind: 'denied', detail: CREDENTIALS },
  InvalidSignatureException: { kind: 'denied', detail: CREDENTIALS },

  // No kind of their own: the caller may not do this, and a repetition cannot help.
  ValidationException: { kind: 'denied', detail: REQUEST },
  ValidationError: { kind: 'denied', detail: REQUEST },
  SerializationException: { kind: 'denied', detail: REQUEST },
  InvalidEndpointException: { kind: 'unavailable', detail: NETWORK },

  ItemCollectionSizeLimitExceededException: { kind: 'too-large', detail: 'a local index of the table is full' },

  LimitExceededException: { kind: 'unavailable', detail: THROTTLED },
  ProvisionedThroughputExceededException: { kind: 'unavailable', detail: THROTTLED },
  RequestLimitExceeded: { kind: 'unavailable', detail: THROTTLED },
  Throttling: { kind: 'unavailable', detail: THROTTLED },
  ThrottlingException: { kind: 'unavailable', detail: THROTTLED },
  TooManyRequestsException: { kind: 'unavailable', detail: THROTTLED },

  // Not `denied`, whatever their status: credentials or a clock that lapsed say nothing about the right to the ring.
  ExpiredToken: { kind: 'unavailable', detail: CREDENTIALS },
  ExpiredTokenException: { kind: 'unavailable', detail: CREDENTIALS },
  CredentialsProviderError: { kind: 'unavailable', detail: CREDENTIALS },
  TokenProviderError: { kind: 'unavailable', detail: CREDENTIALS },
  RequestExpired: { kind: 'unavailable', detail: CLOCK },
  RequestTimeTooSkewed: { kind: 'unavailable', detail: CLOCK },

  InternalFailure: { kind: 'unavailable', detail: BUSY },
  InternalServerError: { kind: 'unavailable', detail: BUSY },
  RequestTimeout: { kind: 'unavailable', detail: BUSY },
  RequestTimeoutException: { kind: 'unavailable', detail: BUSY },
  ServiceUnavailable: { kind: 'unavailable', detail: BUSY },
  ServiceUnavailableException: { kind: 'unavailable', detail: BUSY },

  ...sameRow(CONNECTION_FAILURES, { kind: 'unavailable', detail: NETWORK }),
} satisfies Record<string, Failure>);

/**
 * What a rejection of the SDK means. Looks at `name`, `code` and `$metadata.httpStatusCode` only: never at a message,
 * and never at a class, which differs between copies of the SDK. Never throws, whatever it is given.
 *
 * A name in the table decides. Else the status does: a 403 without a JSON body, as proxies send it, reaches us as a
 * `SyntaxError`. Else it is `unavailable`.
 */
export function classify(error: unknown): Failure {
  const status = property(property(error, '$metadata'), 'httpStatusCode');
  const found = findRow(ERROR_TABLE, [property(error, 'name'), property(error, 'code')]);
  if (found !== undefined)
    return { kind: found.row.kind, detail: `${found.row.detail} (${found.code})`, code: found.code };
  if (status === 401 || status === 403) return { kind: 'denied', detail: `${RIGHTS} (status ${status})` };
  return unexplained(status);
}
