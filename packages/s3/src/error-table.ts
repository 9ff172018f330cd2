import type { RingStoreErrorKind } from '@sealring/core';
import { awsErrorRows, findRow, property, type StoreFailure, unexplained, unreachable } from '@sealring/core/adapter';

/** `absent`: the object does not exist. `conflict`: the condition of a write did not hold. */
export interface Failure extends StoreFailure<RingStoreErrorKind | 'absent' | 'conflict'> {
  /** Of stored content that is not a document. */
  readonly stored?: Identity;
}

/** What distinguishes one version of the object from every other, and the part that a condition can name. */
export interface Identity {
  readonly etag: string;
  readonly revision: string;
}

const SERVICE = 'S3';
const DENIED = 'S3 refused the call; without the permission to list the bucket, also for an object that does not exist';
const CREDENTIALS = 'the credentials are missing, wrong or expired';
const REGION = "the client's region differs from the bucket's";
const BUCKET = 'the bucket does not exist';
const REQUEST = 'S3 does not accept the request: check bucket, key and expectedBucketOwner';
const KMS = "the object's KMS key cannot be used";
const BUSY = 'S3 cannot serve requests at the moment';

/**
 * Maps an error code or exception name to its meaning.
 *
 * Sources: "Error responses" of the Amazon S3 API reference; "How to prevent object overwrites with conditional writes"
 * of the Amazon S3 user guide (409, 412 and the 404 of an object deleted meanwhile).
 */
export const ERROR_TABLE: Readonly<Record<string, Failure>> = Object.freeze({
  NoSuchKey: { kind: 'absent', detail: 'the object does not exist' },

  PreconditionFailed: { kind: 'conflict', detail: 'another version is stored' },
  ConditionalRequestConflict: { kind: 'conflict', detail: 'another write is under way' },

  // A missing bucket must not look like an absent ring; it may be about to be created.
  NoSuchBucket: { kind: 'unavailable', detail: BUCKET },

  ...awsErrorRows<Failure>({
    denied: { kind: 'denied', detail: DENIED },
    credentials: { kind: 'denied', detail: CREDENTIALS },
    expired: { kind: 'unavailable', detail: CREDENTIALS },
    clock: { kind: 'unavailable', detail: "this machine's clock differs from the service's" },
    // No kind of its own: the caller may not do this, and a retry cannot help.
    request: { kind: 'denied', detail: REQUEST },
    throttled: { kind: 'unavailable', detail: BUSY },
    busy: { kind: 'unavailable', detail: BUSY },
  }),

  AllAccessDisabled: { kind: 'denied', detail: DENIED },
  AccountProblem: { kind: 'denied', detail: DENIED },
  NotSignedUp: { kind: 'denied', detail: DENIED },
  InvalidAccessKeyId: { kind: 'denied', detail: CREDENTIALS },
  InvalidToken: { kind: 'denied', detail: CREDENTIALS },
  SignatureDoesNotMatch: { kind: 'denied', detail: CREDENTIALS },

  InvalidArgument: { kind: 'denied', detail: REQUEST },
  InvalidBucketName: { kind: 'denied', detail: REQUEST },
  InvalidRequest: { kind: 'denied', detail: REQUEST },
  KeyTooLongError: { kind: 'denied', detail: REQUEST },
  MethodNotAllowed: { kind: 'denied', detail: REQUEST },

  'KMS.DisabledException': { kind: 'denied', detail: KMS },
  'KMS.KMSInvalidStateException': { kind: 'denied', detail: KMS },
  'KMS.NotFoundException': { kind: 'denied', detail: KMS },

  NotImplemented: { kind: 'read-only', detail: 'this service has no conditional writes' },
  EntityTooLarge: { kind: 'too-large', detail: 'the service does not accept an object of this size' },
  InvalidObjectState: { kind: 'unavailable', detail: 'the object is archived: a lifecycle rule applies to it' },

  AuthorizationHeaderMalformed: { kind: 'unavailable', detail: REGION },
  IllegalLocationConstraintException: { kind: 'unavailable', detail: REGION },
  PermanentRedirect: { kind: 'unavailable', detail: REGION },
  Redirect: { kind: 'unavailable', detail: REGION },
  TemporaryRedirect: { kind: 'unavailable', detail: REGION },

  TokenRefreshRequired: { kind: 'unavailable', detail: CREDENTIALS },

  BadDigest: { kind: 'unavailable', detail: 'the document was damaged in transit' },
  XAmzContentChecksumMismatch: { kind: 'unavailable', detail: 'the document was damaged in transit' },
  IncompleteBody: { kind: 'unavailable', detail: 'the document was cut short in transit' },
  InternalError: { kind: 'unavailable', detail: BUSY },
  OperationAborted: { kind: 'unavailable', detail: BUSY },
  SlowDown: { kind: 'unavailable', detail: BUSY },
} satisfies Record<string, Failure>);

/**
 * What a rejection of the SDK means. Reads `name`, `code`, `$metadata.httpStatusCode`, and `$response.body` of an answer that
 * the SDK could not parse: never a message, and never the class, which differs between copies of the SDK. Never throws,
 * whatever it is given.
 *
 * A name in the table decides, otherwise the status. Anything else is `unavailable`: nothing but S3's own NoSuchKey with its
 * 404 is an absent object, not the 404 of a proxy and not that of a bucket that is gone.
 */
export function classify(error: unknown): Failure {
  const status = property(property(error, '$metadata'), 'httpStatusCode');
  const found = findRow(
    ERROR_TABLE,
    [property(error, 'name'), property(error, 'code'), codeOf(property(property(error, '$response'), 'body'))],
    ({ kind }) => kind !== 'absent' || status === 404,
  );
  if (found !== undefined) {
    return { kind: found.row.kind, detail: `${found.row.detail} (${found.code})`, serviceCode: found.code };
  }
  if (status === 401 || status === 403) return { kind: 'denied', detail: `${DENIED} (status ${status})` };
  if (status === 412) return { kind: 'conflict', detail: 'another version is stored (status 412)' };
  return (status === undefined ? unreachable(error, SERVICE) : undefined) ?? unexplained(status);
}

/**
 * The code of an error answer, if the SDK left its text unparsed: bundled for browsers or Workers, it parses with `DOMParser`,
 * which Workers do not have. Only a whole answer in S3's form counts, whose code comes first.
 */
function codeOf(body: unknown): string | undefined {
  if (typeof body !== 'string' || !body.trimEnd().endsWith('</Error>')) return undefined;
  return /^\s*(?:<\?xml[^>]*\?>\s*)?<Error(?:\s[^>]*)?>\s*<Code>([\w.]{1,64})<\/Code>/.exec(body)?.[1];
}
