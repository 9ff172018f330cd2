import type { RingStoreErrorKind } from '@sealring/core';
import { findRow, type StoreFailure, sameRow, unexplained, unreachable } from '@sealring/core/adapter';

/** `not-found`: a 404, of object, bucket, or path. `conflict`: the condition of a write did not hold. */
export interface Failure extends StoreFailure<Exclude<RingStoreErrorKind, 'absent'> | 'not-found' | 'conflict'> {
  /** Of stored content that is not a document. */
  readonly revision?: string;
}

/** A failure with this meaning only under one status. */
interface Row extends Failure {
  readonly status?: number;
}

const SERVICE = 'Cloud Storage';
const DENIED = 'Cloud Storage refused the call';
const CREDENTIALS = 'the credentials are missing, wrong or expired';
const REQUEST = 'Cloud Storage does not accept the request: check bucket and object';
const PAYER = 'the bucket is set to Requester Pays, which a ring store does not support';
const KMS = "the object's Cloud KMS key cannot be used";
const KEPT = 'the object is under a retention policy or a hold, and cannot be replaced';
const BUSY = 'Cloud Storage cannot serve requests at the moment';

/**
 * Maps the reason of an error answer to its meaning.
 *
 * Source: "HTTP status and error codes for JSON" of the Cloud Storage documentation.
 */
export const ERROR_TABLE: Readonly<Record<string, Row>> = Object.freeze({
  conditionNotMet: { kind: 'conflict', detail: 'another generation is stored', status: 412 },
  conflict: { kind: 'conflict', detail: 'another write is under way', status: 409 },

  // A missing object and a missing bucket have the same reason, so the ring sends a listing.
  notFound: { kind: 'not-found', detail: 'the bucket or the object does not exist', status: 404 },

  forbidden: { kind: 'denied', detail: DENIED },
  insufficientPermissions: { kind: 'denied', detail: DENIED },
  accountDisabled: { kind: 'denied', detail: DENIED },
  countryBlocked: { kind: 'denied', detail: DENIED },
  orgPolicyConstraintFailed: { kind: 'denied', detail: 'a policy of the organisation forbids it' },
  authError: { kind: 'denied', detail: CREDENTIALS },

  // No kind of their own: the caller may not do this, and a retry cannot help.
  badRequest: { kind: 'denied', detail: REQUEST },
  invalidArgument: { kind: 'denied', detail: REQUEST },
  invalidParameter: { kind: 'denied', detail: REQUEST },
  methodNotAllowed: { kind: 'denied', detail: REQUEST },
  parseError: { kind: 'denied', detail: REQUEST },
  sslRequired: { kind: 'denied', detail: REQUEST },
  turnedDown: { kind: 'denied', detail: REQUEST },
  ...sameRow(
    [
      'AuthenticationRequiredRequesterPays',
      'UserProjectAccessDenied',
      'UserProjectAccountProblem',
      'userProjectInvalid',
      'userProjectMissing',
    ],
    { kind: 'denied', detail: PAYER } as const,
  ),
  ...sameRow(
    [
      'cloudKmsBadKey',
      'cloudKmsDecryptionKeyNotFound',
      'cloudKmsDisabledKey',
      'cloudKmsEncryptionKeyNotFound',
      'cloudKmsKeyLocationNotAllowed',
      'resourceIsEncryptedWithCustomerEncryptionKey',
    ],
    { kind: 'denied', detail: KMS } as const,
  ),

  objectUnderActiveHold: { kind: 'read-only', detail: KEPT },
  retentionPolicyNotMet: { kind: 'read-only', detail: KEPT },
  uploadTooLarge: { kind: 'too-large', detail: 'the service does not accept an object of this size' },

  // Also the reason for a checksum that does not match.
  invalid: { kind: 'unavailable', detail: 'the document was damaged in transit, or the request is not accepted' },
  backendError: { kind: 'unavailable', detail: BUSY },
  internalError: { kind: 'unavailable', detail: BUSY },
  uploadBrokenConnection: { kind: 'unavailable', detail: BUSY },
  // Not `denied`, though some have a 403: the rate limit was exceeded, no permission is missing.
  quotaExceeded: { kind: 'unavailable', detail: BUSY },
  rateLimitExceeded: { kind: 'unavailable', detail: BUSY },
  userRateLimitExceeded: { kind: 'unavailable', detail: BUSY },
} satisfies Record<string, Row>);

/**
 * What an unsuccessful answer means, by its status and the reason in its body, never by its text. A reason in the
 * table decides, under the status it belongs to, otherwise the status. Anything else is `unavailable`.
 */
export function failureOf(status: number, reason: unknown): Failure {
  const found = findRow(ERROR_TABLE, [reason], (row) => row.status === undefined || row.status === status);
  if (found !== undefined) {
    return { kind: found.row.kind, detail: `${found.row.detail} (${found.code})`, serviceCode: found.code };
  }
  if (status === 401 || status === 403) return { kind: 'denied', detail: `${DENIED} (status ${status})` };
  if (status === 404) return { kind: 'not-found', detail: 'the bucket or the object does not exist (status 404)' };
  if (status === 412) return { kind: 'conflict', detail: 'another generation is stored (status 412)' };
  return unexplained(status);
}

/**
 * What a rejection of the SDK means: not an answer of Cloud Storage, because each of those resolves. The network
 * failed or no access token was available, so it is always `unavailable`. Never throws.
 */
export function classify(error: unknown): Failure {
  return (
    unreachable(error, SERVICE) ?? { kind: 'unavailable', detail: 'the call failed: no connection, or no credentials' }
  );
}
