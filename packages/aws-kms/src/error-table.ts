import { type ServiceFailure, vendorError } from '@sealring/core/adapter';

/** One row of {@link ERROR_TABLE}. */
export type ErrorRow = Pick<ServiceFailure, 'kind' | 'hint'>;

const CREDENTIALS = 'the credentials are missing, wrong or expired';
const USAGE = 'the KMS key must be a symmetric encryption key (SYMMETRIC_DEFAULT, ENCRYPT_DECRYPT)';
const REQUEST = 'KMS does not accept the request: check keyId and its region';

/**
 * Maps an exception name to a kind.
 *
 * Sources: the "Errors" of GenerateDataKey, Encrypt and Decrypt and the "Common errors" of the AWS KMS API reference.
 */
export const ERROR_TABLE: Readonly<Record<string, ErrorRow>> = Object.freeze({
  ...vendorError.awsErrorRows<ErrorRow>({
    denied: { kind: 'denied' },
    credentials: { kind: 'denied', hint: CREDENTIALS },
    // The next two groups are not `denied`, whatever their status: expired credentials or a wrong clock do not mean
    // that the permission to use the key is missing, and three denials stop a fleet from sealing.
    expired: { kind: 'unavailable', hint: CREDENTIALS },
    clock: { kind: 'unavailable', hint: "this machine's clock differs from the service's" },
    request: { kind: 'denied', hint: REQUEST },
    throttled: { kind: 'throttled' },
    busy: { kind: 'unavailable' },
  }),

  DisabledException: { kind: 'disabled' },
  KMSInvalidStateException: {
    kind: 'disabled',
    hint: 'the KMS key is pending deletion, pending import or unavailable',
  },

  InvalidGrantTokenException: { kind: 'denied' },

  // A configuration error has no separate kind. It is `denied` because the caller may not use this key this way,
  // because a retry cannot help, and because `not-found` would make an operator search for a key that exists. The
  // hint names the fix.
  InvalidKeyUsageException: { kind: 'denied', hint: USAGE },
  UnsupportedOperationException: { kind: 'denied', hint: USAGE },
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
} satisfies Record<string, ErrorRow>);

/**
 * Classifies an error from an SDK call. Reads `name`, `code`, `$metadata.httpStatusCode` and `$metadata.requestId`
 * only: never a message, which can contain parts of the request, and never the class, which differs between copies of
 * the SDK. Never throws.
 *
 * A name in the table determines the kind. Otherwise, the HTTP status determines it, because a 403 without a JSON body,
 * from a proxy or because of a service control policy, arrives as a `SyntaxError`. Anything else is `unavailable`.
 */
export function classify(error: unknown): ServiceFailure {
  const metadata = vendorError.property(error, '$metadata');
  const status = vendorError.statusOf(vendorError.property(metadata, 'httpStatusCode'));
  const requestId = vendorError.requestIdOf(vendorError.property(metadata, 'requestId'));
  const found = vendorError.findRow(ERROR_TABLE, [
    vendorError.property(error, 'name'),
    vendorError.property(error, 'code'),
  ]);
  if (found !== undefined) return { ...found.row, code: found.code, status, requestId };
  const unreachable = status === undefined ? vendorError.connectionFailure(error) : undefined;
  return { kind: vendorError.kindOfStatus(status), ...unreachable, status, requestId };
}
