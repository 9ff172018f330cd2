import type { RingStoreErrorKind } from '@sealring/core';
import { type StoreFailure, vendorError } from '@sealring/core/adapter';

/** `not-found`: a 404 for the object, the bucket or the path. `conflict`: the condition of a write did not hold. */
export interface Failure extends StoreFailure<Exclude<RingStoreErrorKind, 'absent'> | 'not-found' | 'conflict'> {
  /** The revision of stored content that is not a document. */
  readonly revision?: string;
}

const SERVICE = 'Cloud Storage';
const DENIED = 'Cloud Storage refused the call';
const MISSING = 'the bucket or the object does not exist';

/**
 * Maps the reason of an error answer to its meaning.
 *
 * Source: "HTTP status and error codes for JSON" of the Cloud Storage documentation.
 */
export const ERROR_TABLE: Readonly<Record<string, Failure>> = vendorError.errorTable<Failure['kind']>([
  ['conflict', 'another generation is stored', 'conditionNotMet', 412],
  ['conflict', 'another write is under way', 'conflict', 409],

  // A missing object and a missing bucket have the same reason, so the store then lists the bucket.
  ['not-found', MISSING, 'notFound', 404],

  ['denied', DENIED, 'forbidden insufficientPermissions accountDisabled countryBlocked'],
  ['denied', 'an organization policy forbids the call', 'orgPolicyConstraintFailed'],
  ['denied', 'the credentials are missing, wrong or expired', 'authError'],
  // Invalid requests have no separate kind. They are `denied`, because the caller may not do this and a retry cannot
  // help.
  [
    'denied',
    'Cloud Storage does not accept the request: check the bucket and the object',
    'badRequest invalidArgument invalidParameter methodNotAllowed parseError sslRequired turnedDown',
  ],
  [
    'denied',
    'the bucket is set to Requester Pays, which a ring store does not support',
    `AuthenticationRequiredRequesterPays UserProjectAccessDenied UserProjectAccountProblem userProjectInvalid
    userProjectMissing`,
  ],
  [
    'denied',
    "the object's Cloud KMS key cannot be used",
    `cloudKmsBadKey cloudKmsDecryptionKeyNotFound cloudKmsDisabledKey cloudKmsEncryptionKeyNotFound
    cloudKmsKeyLocationNotAllowed resourceIsEncryptedWithCustomerEncryptionKey`,
  ],

  [
    'read-only',
    'the object is under a retention policy or a hold, and cannot be replaced',
    'objectUnderActiveHold retentionPolicyNotMet',
  ],
  ['too-large', 'the service does not accept an object of this size', 'uploadTooLarge'],

  // Cloud Storage also gives this reason when a checksum does not match.
  ['unavailable', 'the document was damaged in transit, or the request is not accepted', 'invalid'],
  // The last three are not `denied`, although some come with status 403: the rate limit was exceeded, and no permission
  // is missing.
  [
    'unavailable',
    'Cloud Storage cannot serve requests at the moment',
    'backendError internalError uploadBrokenConnection quotaExceeded rateLimitExceeded userRateLimitExceeded',
  ],
]);

const BY_STATUS = vendorError.errorTable<Failure['kind']>([
  ['denied', DENIED, '401 403'],
  ['not-found', MISSING, '404'],
  ['conflict', 'another generation is stored', '412'],
]);

/** Classifies an unsuccessful answer by its status and the reason in its body, never by its text. */
export function failureOf(status: unknown, reason: unknown): Failure {
  return vendorError.storeFailure({ service: SERVICE, table: ERROR_TABLE, byStatus: BY_STATUS }, undefined, status, [
    reason,
  ]);
}

/**
 * Classifies a rejection by the SDK. A rejection is never an answer from Cloud Storage, because the SDK resolves for
 * every answer: either the network failed, or no access token was available. The result is therefore always
 * `unavailable`. Never throws.
 */
export function classify(error: unknown): Failure {
  return (
    vendorError.unreachable(error, SERVICE) ?? {
      kind: 'unavailable',
      detail: 'the call failed: no connection, or no credentials',
    }
  );
}
