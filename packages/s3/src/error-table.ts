import type { RingStoreErrorKind } from '@sealring/core';
import { type StoreFailure, vendorError } from '@sealring/core/adapter';

/** `absent`: the object does not exist. `conflict`: the condition of a write did not hold. */
export interface Failure extends StoreFailure<RingStoreErrorKind | 'absent' | 'conflict'> {
  /** The identity of stored content that is not a document. */
  readonly stored?: Identity | undefined;
}

/** The revision of one version of the object, and its ETag, the only part of it that a condition can name. */
export interface Identity {
  readonly etag: string;
  readonly revision: string;
}

const DENIED =
  'S3 refused the call; without the permission to list the bucket, it also does so for an object that does not exist';
const CREDENTIALS = 'the credentials are missing, wrong or expired';
const REQUEST = 'S3 does not accept the request: check the bucket, the key and expectedBucketOwner';
const BUSY = 'S3 cannot serve requests at the moment';

/**
 * Maps an error code or exception name to its meaning.
 *
 * Sources: "Error responses" of the Amazon S3 API reference; "How to prevent object overwrites with conditional writes"
 * of the Amazon S3 user guide (409, 412, and 404 for an object that was deleted in the meantime).
 */
export const ERROR_TABLE: Readonly<Record<string, Failure>> = Object.freeze({
  ...vendorError.awsErrorRows<Failure>({
    denied: { kind: 'denied', detail: DENIED },
    credentials: { kind: 'denied', detail: CREDENTIALS },
    expired: { kind: 'unavailable', detail: CREDENTIALS },
    clock: { kind: 'unavailable', detail: "this machine's clock differs from the service's" },
    // An invalid request has no separate kind. It is `denied`, because the caller may not do this and a retry cannot
    // help.
    request: { kind: 'denied', detail: REQUEST },
    throttled: { kind: 'unavailable', detail: BUSY },
    busy: { kind: 'unavailable', detail: BUSY },
  }),
  ...vendorError.errorTable<Failure['kind']>([
    ['absent', 'the object does not exist', 'NoSuchKey', 404],
    ['conflict', 'another version is stored', 'PreconditionFailed'],
    ['conflict', 'another write is under way', 'ConditionalRequestConflict'],
    // A missing bucket must not look like an absent ring; it may be about to be created.
    ['unavailable', 'the bucket does not exist', 'NoSuchBucket'],
    ['denied', DENIED, 'AllAccessDisabled AccountProblem NotSignedUp'],
    ['denied', CREDENTIALS, 'InvalidAccessKeyId InvalidToken SignatureDoesNotMatch'],
    ['denied', REQUEST, 'InvalidArgument InvalidBucketName InvalidRequest KeyTooLongError MethodNotAllowed'],
    [
      'denied',
      "the object's KMS key cannot be used",
      'KMS.DisabledException KMS.KMSInvalidStateException KMS.NotFoundException',
    ],
    ['read-only', 'this service has no conditional writes', 'NotImplemented'],
    ['too-large', 'the service does not accept an object of this size', 'EntityTooLarge'],
    ['unavailable', 'the object is archived: restore it, and exclude it from lifecycle rules', 'InvalidObjectState'],
    [
      'unavailable',
      "the client's region is not the bucket's",
      'AuthorizationHeaderMalformed IllegalLocationConstraintException PermanentRedirect Redirect TemporaryRedirect',
    ],
    ['unavailable', CREDENTIALS, 'TokenRefreshRequired'],
    ['unavailable', 'the document was damaged in transit', 'BadDigest XAmzContentChecksumMismatch'],
    ['unavailable', 'the document was cut short in transit', 'IncompleteBody'],
    ['unavailable', BUSY, 'InternalError OperationAborted SlowDown'],
  ]),
});

const BY_STATUS = vendorError.errorTable<Failure['kind']>([
  ['denied', DENIED, '401 403'],
  ['conflict', 'another version is stored', '412'],
]);

/**
 * Classifies a rejection by the SDK. Reads `name`, `code`, `$metadata`, and `$response.body` of an answer that the
 * SDK could not parse: never a message, and never the class, which differs between copies of the SDK.
 *
 * Only S3's own 404 NoSuchKey means that the object is absent; the 404 of a proxy or of a missing bucket does not.
 */
export function classify(error: unknown): Failure {
  const store = { service: 'S3', table: ERROR_TABLE, byStatus: BY_STATUS };
  const { codes, status } = vendorError.awsErrorFacts(error);
  const unparsed = codeOf(vendorError.property(vendorError.property(error, '$response'), 'body'));
  return vendorError.storeFailure(store, error, status, [...codes, unparsed]);
}

/**
 * The code of an error answer, if the SDK left its text unparsed: when bundled for browsers or Workers, the SDK parses
 * with `DOMParser`, which Workers do not have. Only a complete error document of S3 counts; the code comes first in it.
 */
function codeOf(body: unknown): string | undefined {
  if (typeof body !== 'string' || !body.trimEnd().endsWith('</Error>')) return undefined;
  return /^\s*(?:<\?xml[^>]*\?>\s*)?<Error(?:\s[^>]*)?>\s*<Code>([\w.]{1,64})<\/Code>/.exec(body)?.[1];
}
