import {
  CONNECTION_FAILURES,
  findRow,
  kindOfStatus,
  property,
  requestIdOf,
  type ServiceFailure,
  sameRow,
  statusOf,
} from '@sealring/core/adapter';

/** One row of {@link ERROR_TABLE}. */
export type ErrorRow = Pick<ServiceFailure, 'kind' | 'hint'>;

const CREDENTIALS = 'the credentials are missing, wrong or expired';
const CLOCK = "this machine's clock differs from the service's";
const USAGE = 'the KMS key must be a symmetric encryption key (SYMMETRIC_DEFAULT, ENCRYPT_DECRYPT)';
const REQUEST = 'KMS does not accept the request: check keyId and its region';

/**
 * Exception name, or system code of a failed connection, to kind.
 *
 * Sources: the "Errors" of GenerateDataKey, Encrypt and Decrypt and the "Common errors" of the AWS KMS API reference;
 * the throttling codes of the AWS SDKs; Node's system errors.
 */
export const ERROR_TABLE: Readonly<Record<string, ErrorRow>> = Object.freeze({
  ThrottlingException: { kind: 'throttled' },
  Throttling: { kind: 'throttled' },
  ThrottledException: { kind: 'throttled' },
  LimitExceededException: { kind: 'throttled' },
  RequestLimitExceeded: { kind: 'throttled' },
  RequestThrottled: { kind: 'throttled' },
  RequestThrottledException: { kind: 'throttled' },
  TooManyRequestsException: { kind: 'throttled' },

  DisabledException: { kind: 'disabled' },
  KMSInvalidStateException: {
    kind: 'disabled',
    hint: 'the KMS key is pending deletion, pending import or unavailable',
  },

  AccessDeniedException: { kind: 'denied' },
  AccessDenied: { kind: 'denied' },
  NotAuthorized: { kind: 'denied' },
  OptInRequired: { kind: 'denied' },
  InvalidGrantTokenException: { kind: 'denied' },
  UnrecognizedClientException: { kind: 'denied', hint: CREDENTIALS },
  InvalidClientTokenId: { kind: 'denied', hint: CREDENTIALS },
  MissingAuthenticationToken: { kind: 'denied', hint: CREDENTIALS },
  IncompleteSignature: { kind: 'denied', hint: CREDENTIALS },
  InvalidSignatureException: { kind: 'denied', hint: CREDENTIALS },

  // A configuration error has no kind of its own. It is `denied` because that is what it amounts to, the caller may
  // not use this key this way, because a retry cannot help, and because `not-found` would send an operator looking
  // for a key that is there. The hint says what to mend.
  InvalidKeyUsageException: { kind: 'denied', hint: USAGE },
  UnsupportedOperationException: { kind: 'denied', hint: USAGE },
  ValidationException: { kind: 'denied', hint: REQUEST },
  ValidationError: { kind: 'denied', hint: REQUEST },
  InvalidArnException: { kind: 'denied', hint: REQUEST },

  NotFoundException: { kind: 'not-found', hint: 'no such KMS key in this account and region' },

  InvalidCiphertextException: { kind: 'corrupt' },
  IncorrectKeyException: { kind: 'corrupt' },

  KeyUnavailableException: { kind: 'unavailable' },
  KMSInternalException: { kind: 'unavailable' },
  DependencyTimeoutException: { kind: 'unavailable' },
  CloudHsmClusterInvalidConfigurationException: { kind: 'unavailable' },
  CloudHsmClusterNotActiveException: { kind: 'unavailable' },
  CustomKeyStoreInvalidStateException: { kind: 'unavailable' },
  XksProxyIncorrectAuthenticationCredentialException: { kind: 'unavailable' },
  XksProxyInvalidConfigurationException: { kind: 'unavailable' },
  XksProxyInvalidResponseException: { kind: 'unavailable' },
  XksProxyUriUnreachableException: { kind: 'unavailable' },
  XksProxyVpcEndpointServiceInvalidConfigurationException: { kind: 'unavailable' },
  XksProxyVpcEndpointServiceNotFoundException: { kind: 'unavailable' },
  InternalFailure: { kind: 'unavailable' },
  InternalServerError: { kind: 'unavailable' },
  ServiceUnavailable: { kind: 'unavailable' },
  ServiceUnavailableException: { kind: 'unavailable' },
  RequestTimeout: { kind: 'unavailable' },
  RequestTimeoutException: { kind: 'unavailable' },

  // Not `denied`, whatever their status: credentials or a clock that lapsed say nothing about the right to use the key,
  // and three denials stop a fleet from sealing.
  ExpiredTokenException: { kind: 'unavailable', hint: CREDENTIALS },
  ExpiredToken: { kind: 'unavailable', hint: CREDENTIALS },
  CredentialsProviderError: { kind: 'unavailable', hint: CREDENTIALS },
  TokenProviderError: { kind: 'unavailable', hint: CREDENTIALS },
  RequestExpired: { kind: 'unavailable', hint: CLOCK },
  RequestTimeTooSkewed: { kind: 'unavailable', hint: CLOCK },

  ...sameRow(CONNECTION_FAILURES, { kind: 'unavailable' }),
} satisfies Record<string, ErrorRow>);

/**
 * What a rejection of the SDK means. Looks at `name`, `code`, `$metadata.httpStatusCode` and `$metadata.requestId`
 * only: never at a message, which can hold what the request held, and never at a class, which differs between copies
 * of the SDK. Never throws, whatever it is given.
 *
 * A name in the table decides. Else the status does: a 403 without a JSON body, as proxies and service control
 * policies send it, reaches us as a `SyntaxError`. Else it is `unavailable`.
 */
export function classify(error: unknown): ServiceFailure {
  const metadata = property(error, '$metadata');
  const status = statusOf(property(metadata, 'httpStatusCode'));
  const requestId = requestIdOf(property(metadata, 'requestId'));
  const found = findRow(ERROR_TABLE, [property(error, 'name'), property(error, 'code')]);
  if (found === undefined) return { kind: kindOfStatus(status), status, requestId };
  return { ...found.row, code: found.code, status, requestId };
}
