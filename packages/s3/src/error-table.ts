import type { RingStoreErrorKind } from '@sealring/core';
import {
  CONNECTION_FAILURES,
  findRow,
  property,
  type StoreFailure,
  sameRow,
  unexplained,
} from '@sealring/core/adapter';

/** `absent`: there is no such object. `conflict`: the condition of a write did not hold. */
export interface Failure extends StoreFailure<RingStoreErrorKind | 'absent' | 'conflict'> {
  /** Of what is stored, where it is no document. */
  readonly stored?: Identity;
}

/** What tells one version of the object from every other, and what a condition can name of it. */
export interface Identity {
  readonly etag: string;
  readonly revision: string;
}

const RIGHTS = 'S3 refused the call; for an object that is not there also to who may not list the bucket';
const CREDENTIALS = 'the credentials are missing, wrong or expired';
const CLOCK = "this machine's clock differs from the service's";
const REGION = "the client's region is not the bucket's";
const BUCKET = 'there is no such bucket';
const REQUEST = 'S3 does not accept the request: check bucket, key and expectedBucketOwner';
const KMS = "the object's KMS key cannot be used";
const BUSY = 'S3 is there and cannot serve now';
const NETWORK = 'S3 cannot be reached';

/**
 * Error code, exception name, or system code of a failed connection, to what it means.
 *
 * Sources: "Error responses" of the Amazon S3 API reference; "How to prevent object overwrites with conditional writes"
 * of the Amazon S3 user guide (409, 412 and the 404 of an object deleted meanwhile); Node's system errors.
 */
export const ERROR_TABLE: Readonly<Record<string, Failure>> = Object.freeze({
  NoSuchKey: { kind: 'absent', detail: 'there is no such object' },

  PreconditionFailed: { kind: 'conflict', detail: 'another version is stored' },
  ConditionalRequestConflict: { kind: 'conflict', detail: 'another write is under way' },

  // A bucket that is not there must not look like a ring that is not there yet; somebody may be making it.
  NoSuchBucket: { kind: 'unavailable', detail: BUCKET },

  AccessDenied: { kind: 'denied', detail: RIGHTS },
  AllAccessDisabled: { kind: 'denied', detail: RIGHTS },
  AccountProblem: { kind: 'denied', detail: RIGHTS },
  NotSignedUp: { kind: 'denied', detail: RIGHTS },
  InvalidAccessKeyId: { kind: 'denied', detail: CREDENTIALS },
  InvalidToken: { kind: 'denied', detail: CREDENTIALS },
  SignatureDoesNotMatch: { kind: 'denied', detail: CREDENTIALS },

  // No kind of their own: the caller may not do this, and a repetition cannot help.
  InvalidArgument: { kind: 'denied', detail: REQUEST },
  InvalidBucketName: { kind: 'denied', detail: REQUEST },
  InvalidRequest: { kind: 'denied', detail: REQUEST },
  KeyTooLongError: { kind: 'denied', detail: REQUEST },
  MethodNotAllowed: { kind: 'denied', detail: REQUEST },

  'KMS.DisabledException': { kind: 'denied', detail: KMS },
  'KMS.KMSInvalidStateException': { kind: 'denied', detail: KMS },
  'KMS.NotFoundException': { kind: 'denied', detail: KMS },

  NotImplemented: { kind: 'read-only', detail: 'this service has no conditional writes' },
  EntityTooLarge: { kind: 'too-large', detail: 'the service takes no object of this size' },
  InvalidObjectState: { kind: 'unavailable', detail: 'the object is archived: a lifecycle rule applies to it' },

  AuthorizationHeaderMalformed: { kind: 'unavailable', detail: REGION },
  IllegalLocationConstraintException: { kind: 'unavailable', detail: REGION },
  PermanentRedirect: { kind: 'unavailable', detail: REGION },
  Redirect: { kind: 'unavailable', detail: REGION },
  TemporaryRedirect: { kind: 'unavailable', detail: REGION },

  // Not `denied`, whatever their status: credentials or a clock that lapsed say nothing about the right to the ring.
  ExpiredToken: { kind: 'unavailable', detail: CREDENTIALS },
  ExpiredTokenException: { kind: 'unavailable', detail: CREDENTIALS },
  TokenRefreshRequired: { kind: 'unavailable', detail: CREDENTIALS },
  CredentialsProviderError: { kind: 'unavailable', detail: CREDENTIALS },
  TokenProviderError: { kind: 'unavailable', detail: CREDENTIALS },
  RequestExpired: { kind: 'unavailable', detail: CLOCK },
  RequestTimeTooSkewed: { kind: 'unavailable', detail: CLOCK },

  BadDigest: { kind: 'unavailable', detail: 'the document was damaged on its way' },
  XAmzContentChecksumMismatch: { kind: 'unavailable', detail: 'the document was damaged on its way' },
  IncompleteBody: { kind: 'unavailable', detail: NETWORK },
  InternalError: { kind: 'unavailable', detail: BUSY },
  OperationAborted: { kind: 'unavailable', detail: BUSY },
  RequestLimitExceeded: { kind: 'unavailable', detail: BUSY },
  RequestTimeout: { kind: 'unavailable', detail: BUSY },
  ServiceUnavailable: { kind: 'unavailable', detail: BUSY },
  SlowDown: { kind: 'unavailable', detail: BUSY },
  ThrottlingException: { kind: 'unavailable', detail: BUSY },

  ...sameRow(CONNECTION_FAILURES, { kind: 'unavailable', detail: NETWORK }),
} satisfies Record<string, Failure>);

/**
 * What a rejection of the SDK means. Looks at `name`, `code` and `$metadata.httpStatusCode` only: never at a message,
 * and never at a class, which differs between copies of the SDK. Never throws, whatever it is given.
 *
 * A name in the table decides. Else the status does. Else it is `unavailable`: nothing but S3's own NoSuchKey with its
 * 404 is an absent object, not the 404 of a proxy and not that of a bucket that is gone.
 */
export function classify(error: unknown): Failure {
  const status = property(property(error, '$metadata'), 'httpStatusCode');
  const found = findRow(
    ERROR_TABLE,
    [property(error, 'name'), property(error, 'code')],
    ({ kind }) => kind !== 'absent' || status === 404,
  );
  if (found !== undefined) return { kind: found.row.kind, detail: `${found.row.detail} (${found.code})` };
  if (status === 401 || status === 403) return { kind: 'denied', detail: `${RIGHTS} (status ${status})` };
  if (status === 412) return { kind: 'conflict', detail: 'another version is stored (status 412)' };
  return unexplained(status);
}
