import { property } from './foreign-errors.ts';

/** An adapter's rows of the error table for the errors that all AWS services share. */
export interface AwsErrorRows<Row> {
  /** The caller lacks a permission. */
  readonly denied: Row;
  /** The credentials are missing or wrong. */
  readonly credentials: Row;
  /**
   * The credentials have expired, or are temporarily unavailable: never `denied`, because the failure says nothing
   * about the permission.
   */
  readonly expired: Row;
  /** The clock of this machine differs from the service's. */
  readonly clock: Row;
  /** The service does not accept the request, and a retry cannot help. */
  readonly request: Row;
  /** The service limits the rate of calls. */
  readonly throttled: Row;
  /** The service is reachable, but cannot serve requests at the moment. */
  readonly busy: Row;
}

const NAMES: Readonly<Record<keyof AwsErrorRows<unknown>, string>> = {
  denied: 'AccessDenied AccessDeniedException NotAuthorized OptInRequired',
  credentials: `IncompleteSignature IncompleteSignatureException InvalidClientTokenId InvalidSignatureException
    MissingAuthenticationToken MissingAuthenticationTokenException UnrecognizedClientException`,
  expired: 'CredentialsProviderError ExpiredToken ExpiredTokenException TokenProviderError',
  clock: 'RequestExpired RequestTimeTooSkewed',
  request: 'ValidationError ValidationException',
  throttled: `LimitExceededException RequestLimitExceeded RequestThrottled RequestThrottledException Throttling
    ThrottledException ThrottlingException TooManyRequestsException`,
  busy: `InternalFailure InternalServerError RequestTimeout RequestTimeoutException ServiceUnavailable
    ServiceUnavailableException`,
};

/**
 * Rows of an error table for the exception names that all AWS services share.
 *
 * Sources: the "Common errors" of the AWS KMS, Amazon S3 and Amazon DynamoDB API references; the throttling codes and the
 * credential errors of the AWS SDK for JavaScript.
 */
export function awsErrorRows<const Row>(rows: AwsErrorRows<Row>): Record<string, Row> {
  const meanings = Object.keys(NAMES) as (keyof typeof NAMES)[];
  return Object.fromEntries(
    meanings.flatMap((meaning) => NAMES[meaning].split(/\s+/).map((name) => [name, rows[meaning]])),
  );
}

/** The errors of AWS SDK commands that ended before their own service answered. */
const unanswered = new WeakSet<object>();

/** Marks an error of a command that got no answer. */
export function markUnanswered(error: unknown): void {
  if (error instanceof Error) unanswered.add(error);
}

/**
 * Whether a command failed with this error before its own service answered. A refusal in such an error is that of another
 * service, which the SDK asked for credentials. Known only of the commands that `noteDateOf` changed.
 */
export function hasNoAnswer(error: unknown): boolean {
  return error instanceof Error && unanswered.has(error);
}

/** What an error of the AWS SDK reports. */
export interface AwsErrorFacts {
  /** Candidates for the code: any values that `property` returned. */
  readonly codes: readonly unknown[];
  /** The status of the answer, unchecked. */
  readonly status: unknown;
  /** The id of the request, unchecked. */
  readonly requestId: unknown;
  /** Whether the service refused the signature because of this machine's clock. */
  readonly isClockError: boolean;
}

/** The name of the SDK's error for missing credentials. */
const NO_CREDENTIALS: AwsErrorFacts = Object.freeze({
  codes: Object.freeze(['CredentialsProviderError']),
  status: undefined,
  requestId: undefined,
  isClockError: false,
});

const SIGNATURE_REFUSED = 'InvalidSignatureException';
const CLOCK_MESSAGE = /^Signature (?:expired|not yet current)\b/;

/**
 * Reads `name`, `code` and `$metadata` of an error of the AWS SDK; the message only to recognize a wrong clock. Never throws.
 *
 * If the command got no answer from its own service, an answer in the error is that of another service, such as AWS STS,
 * which the SDK asked for credentials. It counts as a `CredentialsProviderError`, because it says nothing about the
 * permissions on the key or the store.
 */
export function awsErrorFacts(error: unknown): AwsErrorFacts {
  const metadata = property(error, '$metadata');
  const status = property(metadata, 'httpStatusCode');
  if (status !== undefined && hasNoAnswer(error)) return NO_CREDENTIALS;
  const codes = [property(error, 'name'), property(error, 'code')];
  const isClockError = codes.includes(SIGNATURE_REFUSED) && hasWrongClock(error, metadata);
  return { codes, status, requestId: property(metadata, 'requestId'), isClockError };
}

/**
 * Whether a refused signature was made with a wrong clock: a wrong secret key has the same code. The SDK's mark applies to
 * this code only, because with a wrong clock the SDK marks every error, even one about a disabled key.
 */
function hasWrongClock(error: unknown, metadata: unknown): boolean {
  if (property(metadata, 'clockSkewCorrected') === true) return true;
  const message = property(error, 'message');
  return typeof message === 'string' && CLOCK_MESSAGE.test(message);
}
