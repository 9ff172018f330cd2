import type { RingStoreErrorKind } from '@sealring/core';
import { type StoreFailure, vendorError } from '@sealring/core/adapter';

/** `absent`: the blob does not exist. `conflict`: the condition of a write did not hold. */
export interface Failure extends StoreFailure<RingStoreErrorKind | 'absent' | 'conflict'> {
  /** The revision of stored content that is not a document. */
  readonly revision?: string | undefined;
}

const DENIED = 'Blob Storage refused the call';
const CREDENTIALS = "the credentials are missing, wrong or expired, or this machine's clock differs from the service's";

/**
 * Maps an error code or error name to its meaning.
 *
 * Sources: "Azure Blob Storage error codes" and "Common REST API error codes" of the Storage services REST API reference;
 * "Specifying conditional headers for Blob service operations" (409 and 412); error names of `@azure/identity` and
 * `@azure/core-rest-pipeline`.
 */
export const ERROR_TABLE: Readonly<Record<string, Failure>> = vendorError.errorTable<Failure['kind']>([
  ['absent', 'the blob does not exist', 'BlobNotFound', 404],
  ['conflict', 'the blob already exists', 'BlobAlreadyExists', 409],
  ['conflict', 'another version is stored', 'ConditionNotMet TargetConditionNotMet', 412],

  // A missing container must not look like an absent ring, because the container may be about to be created.
  ['unavailable', 'the container does not exist', 'ContainerNotFound ContainerBeingDeleted ResourceNotFound'],

  [
    'denied',
    DENIED,
    `AccountIsDisabled AuthorizationFailure AuthorizationPermissionMismatch AuthorizationProtocolMismatch
    AuthorizationResourceTypeMismatch AuthorizationServiceMismatch AuthorizationSourceIPMismatch ContainerDisabled
    InsufficientAccountPermissions KeyBasedAuthenticationNotPermitted PublicAccessNotPermitted UnauthorizedBlobOverwrite`,
  ],
  ['denied', CREDENTIALS, 'AuthenticationFailed InvalidAuthenticationInfo NoAuthenticationInformation'],
  // Invalid requests have no separate kind. They are `denied`, because the service does not allow them and a retry
  // cannot help.
  [
    'denied',
    'Blob Storage does not accept the request: check the container and the blob',
    `FeatureVersionMismatch InvalidBlobType InvalidHeaderValue InvalidInput InvalidQueryParameterValue InvalidResourceName
    InvalidUri OutOfRangeInput UnsupportedHeader UnsupportedHttpVerb`,
  ],
  [
    'denied',
    "the storage account's encryption key cannot be used",
    'KeyVaultAccessTokenCannotBeAcquired KeyVaultEncryptionKeyNotFound KeyVaultVaultNotFound',
  ],

  [
    'read-only',
    'the blob is under an immutability policy or a legal hold',
    'BlobImmutableDueToLegalHold BlobImmutableDueToPolicy',
  ],
  ['read-only', 'this service has no conditional writes', 'ConditionHeadersNotSupported'],
  ['too-large', 'the service does not accept a blob of this size', 'RequestBodyTooLarge'],

  [
    'unavailable',
    'the blob is archived: rehydrate it, and exclude it from lifecycle rules',
    'BlobArchived BlobBeingRehydrated',
  ],
  // The status means a conflict, but reading the blob again does not help, because the lease must end first.
  [
    'unavailable',
    'another client holds a lease on the blob',
    'LeaseIdMissing LeaseIdMismatchWithBlobOperation LeaseLost',
  ],
  // These errors are not `denied`, whatever their status: a missing token does not mean that the permission on the ring
  // is missing.
  [
    'unavailable',
    CREDENTIALS,
    `AggregateAuthenticationError AuthenticationError AuthenticationRequiredError ChainedTokenCredentialError
    CredentialUnavailableError`,
  ],
  ['unavailable', 'the document was damaged in transit', 'Crc64Mismatch Md5Mismatch'],
  ['unavailable', 'Blob Storage cannot serve requests at the moment', 'InternalError OperationTimedOut ServerBusy'],
  // Used for an answer that did not come from Blob Storage, and for a request that failed without a system code.
  ['unavailable', 'the answer did not come from Blob Storage', 'PARSE_ERROR'],
  ['unavailable', 'Blob Storage cannot be reached', 'REQUEST_SEND_ERROR'],
]);

const BY_STATUS = vendorError.errorTable<Failure['kind']>([
  ['denied', DENIED, '401 403'],
  ['conflict', 'another version is stored', '412'],
]);

/**
 * Classifies an error from an SDK call. Reads `code`, `name` and `statusCode` only: never a message, and never the
 * class, which differs between copies of the SDK.
 *
 * Only Blob Storage's own 404 BlobNotFound means that the blob is absent; a 404 from a proxy or for a missing
 * container does not.
 */
export function classify(error: unknown): Failure {
  const store = { service: 'Blob Storage', table: ERROR_TABLE, byStatus: BY_STATUS };
  return vendorError.storeFailure(store, error, vendorError.property(error, 'statusCode'), [
    vendorError.property(error, 'code'),
    vendorError.property(error, 'name'),
  ]);
}
