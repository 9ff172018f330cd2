import type { RingStoreErrorKind } from '@sealring/core';
import { findRow, property, type StoreFailure, sameRow, unexplained, unreachable } from '@sealring/core/adapter';

/** `absent`: the blob does not exist. `conflict`: the condition of a write did not hold. */
export interface Failure extends StoreFailure<RingStoreErrorKind | 'absent' | 'conflict'> {
  /** Of stored content that is not a document. */
  readonly revision?: string;
}

/** A failure with this meaning only under one status. */
interface Row extends Failure {
  readonly status?: number;
}

const SERVICE = 'Blob Storage';
const DENIED = 'Blob Storage refused the call';
const CREDENTIALS = "the credentials are missing, wrong or expired, or this machine's clock differs from the service's";
const CONTAINER = 'the container does not exist';
const REQUEST = 'Blob Storage does not accept the request: check container and blob';
const KEY = "the storage account's encryption key cannot be used";
const KEPT = 'the blob is under an immutability policy or a legal hold';
const LEASED = 'another client holds a lease on the blob';
const DAMAGED = 'the document was damaged in transit';
const BUSY = 'Blob Storage cannot serve requests at the moment';

/**
 * Maps an error code or error name to its meaning.
 *
 * Sources: "Azure Blob Storage error codes" and "Common REST API error codes" of the Storage services REST API reference;
 * "Specifying conditional headers for Blob service operations" (409 and 412); error names of `@azure/identity` and
 * `@azure/core-rest-pipeline`.
 */
export const ERROR_TABLE: Readonly<Record<string, Row>> = Object.freeze({
  BlobNotFound: { kind: 'absent', detail: 'the blob does not exist', status: 404 },

  BlobAlreadyExists: { kind: 'conflict', detail: 'the blob exists already', status: 409 },
  ConditionNotMet: { kind: 'conflict', detail: 'another version is stored', status: 412 },
  TargetConditionNotMet: { kind: 'conflict', detail: 'another version is stored', status: 412 },

  // A missing container must not look like an absent ring; it may be about to be created.
  ContainerNotFound: { kind: 'unavailable', detail: CONTAINER },
  ContainerBeingDeleted: { kind: 'unavailable', detail: CONTAINER },
  ResourceNotFound: { kind: 'unavailable', detail: CONTAINER },

  ...sameRow(
    [
      'AccountIsDisabled',
      'AuthorizationFailure',
      'AuthorizationPermissionMismatch',
      'AuthorizationProtocolMismatch',
      'AuthorizationResourceTypeMismatch',
      'AuthorizationServiceMismatch',
      'AuthorizationSourceIPMismatch',
      'ContainerDisabled',
      'InsufficientAccountPermissions',
      'KeyBasedAuthenticationNotPermitted',
      'PublicAccessNotPermitted',
      'UnauthorizedBlobOverwrite',
    ],
    { kind: 'denied', detail: DENIED } as const,
  ),
  AuthenticationFailed: { kind: 'denied', detail: CREDENTIALS },
  InvalidAuthenticationInfo: { kind: 'denied', detail: CREDENTIALS },
  NoAuthenticationInformation: { kind: 'denied', detail: CREDENTIALS },

  // No kind of their own: the caller may not do this, and a retry cannot help.
  ...sameRow(
    [
      'FeatureVersionMismatch',
      'InvalidBlobType',
      'InvalidHeaderValue',
      'InvalidInput',
      'InvalidQueryParameterValue',
      'InvalidResourceName',
      'InvalidUri',
      'OutOfRangeInput',
      'UnsupportedHeader',
      'UnsupportedHttpVerb',
    ],
    { kind: 'denied', detail: REQUEST } as const,
  ),
  KeyVaultAccessTokenCannotBeAcquired: { kind: 'denied', detail: KEY },
  KeyVaultEncryptionKeyNotFound: { kind: 'denied', detail: KEY },
  KeyVaultVaultNotFound: { kind: 'denied', detail: KEY },

  BlobImmutableDueToLegalHold: { kind: 'read-only', detail: KEPT },
  BlobImmutableDueToPolicy: { kind: 'read-only', detail: KEPT },
  ConditionHeadersNotSupported: { kind: 'read-only', detail: 'this service has no conditional writes' },
  RequestBodyTooLarge: { kind: 'too-large', detail: 'the service does not accept a blob of this size' },

  BlobArchived: { kind: 'unavailable', detail: 'the blob is archived: a lifecycle rule applies to it' },
  BlobBeingRehydrated: { kind: 'unavailable', detail: 'the blob is archived: a lifecycle rule applies to it' },
  // The status is that of a conflict, but reading again does not help: the lease has to end.
  LeaseIdMissing: { kind: 'unavailable', detail: LEASED },
  LeaseIdMismatchWithBlobOperation: { kind: 'unavailable', detail: LEASED },
  LeaseLost: { kind: 'unavailable', detail: LEASED },

  // Not `denied`, whatever their status: there was no token, which does not show that the permission on the ring is missing.
  AggregateAuthenticationError: { kind: 'unavailable', detail: CREDENTIALS },
  AuthenticationError: { kind: 'unavailable', detail: CREDENTIALS },
  AuthenticationRequiredError: { kind: 'unavailable', detail: CREDENTIALS },
  ChainedTokenCredentialError: { kind: 'unavailable', detail: CREDENTIALS },
  CredentialUnavailableError: { kind: 'unavailable', detail: CREDENTIALS },

  Crc64Mismatch: { kind: 'unavailable', detail: DAMAGED },
  Md5Mismatch: { kind: 'unavailable', detail: DAMAGED },
  InternalError: { kind: 'unavailable', detail: BUSY },
  OperationTimedOut: { kind: 'unavailable', detail: BUSY },
  ServerBusy: { kind: 'unavailable', detail: BUSY },

  // Of an answer that did not come from Blob Storage, and of a request that failed without a system code.
  PARSE_ERROR: { kind: 'unavailable', detail: 'the answer did not come from Blob Storage' },
  REQUEST_SEND_ERROR: { kind: 'unavailable', detail: 'Blob Storage cannot be reached' },
} satisfies Record<string, Row>);

/**
 * What a rejection of the SDK means. Reads `code`, `name` and `statusCode` only: never a message, and never the class,
 * which differs between copies of the SDK. Never throws, whatever it is given.
 *
 * A code in the table decides, under the status it belongs to, otherwise the status. Anything else is `unavailable`:
 * nothing but Blob Storage's own BlobNotFound with its 404 is an absent blob, not the 404 of a proxy and not that of a
 * container that is gone.
 */
export function classify(error: unknown): Failure {
  const status = property(error, 'statusCode');
  const found = findRow(
    ERROR_TABLE,
    [property(error, 'code'), property(error, 'name')],
    (row) => row.status === undefined || row.status === status,
  );
  if (found !== undefined) {
    return { kind: found.row.kind, detail: `${found.row.detail} (${found.code})`, serviceCode: found.code };
  }
  if (status === 401 || status === 403) return { kind: 'denied', detail: `${DENIED} (status ${status})` };
  if (status === 412) return { kind: 'conflict', detail: 'another version is stored (status 412)' };
  return (status === undefined ? unreachable(error, SERVICE) : undefined) ?? unexplained(status);
}
