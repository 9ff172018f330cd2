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
