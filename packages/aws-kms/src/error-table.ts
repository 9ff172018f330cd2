import { type ServiceFailure, vendorError } from '@sealring/core/adapter';

/** One row of {@link ERROR_TABLE}. */
export type ErrorRow = Pick<ServiceFailure, 'kind' | 'hint'>;

const CREDENTIALS = 'the credentials are missing, wrong or expired';
const USAGE = 'the KMS key must be a symmetric encryption key (SYMMETRIC_DEFAULT, ENCRYPT_DECRYPT)';
const REQUEST = 'KMS does not accept the request: check keyId and its region';
const CLOCK: ErrorRow = { kind: 'unavailable', hint: "this machine's clock differs from the service's" };
/** The meaning of a KMSInvalidStateException about a state that an operator chose. */
const ENDED: ErrorRow = { kind: 'disabled', hint: 'the KMS key is pending deletion or pending import' };
const ENDED_MESSAGE = / is pending (?:(?:replica )?deletion|import)\b/;

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
    clock: CLOCK,
    request: { kind: 'denied', hint: REQUEST },
    throttled: { kind: 'throttled' },
    busy: { kind: 'unavailable' },
  }),

  DisabledException: { kind: 'disabled' },
  // KMS also answers every failure of an external key store with this name: see `ENDED_MESSAGE`.
  KMSInvalidStateException: {
    kind: 'unavailable',
    hint: 'the KMS key is not usable at the moment: check its state, and its key store if it has a custom one',
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
} satisfies Record<string, ErrorRow>);

/**
 * Classifies an error from an SDK call. Reads `name`, `code`, `$metadata.httpStatusCode` and `$metadata.requestId`. The
 * message is only compared with fixed texts, where a code has several meanings, and never copied: it can contain parts of
 * the request. The class is not read, because it differs between copies of the SDK. Never throws.
 *
 * A name in the table determines the kind. Otherwise, the HTTP status determines it, because a 403 without a JSON body,
 * from a proxy or because of a service control policy, arrives as a `SyntaxError`. Anything else is `unavailable`.
 *
 * Source: "Key states of AWS KMS keys" of the AWS KMS Developer Guide, for the messages of KMSInvalidStateException.
 */
export function classify(error: unknown): ServiceFailure {
  const facts = vendorError.awsErrorFacts(error);
  const [status, requestId] = [vendorError.statusOf(facts.status), vendorError.requestIdOf(facts.requestId)];
  const found = vendorError.findRow(ERROR_TABLE, facts.codes);
  if (found === undefined) {
    const unreachable = status === undefined ? vendorError.connectionFailure(error) : undefined;
    return { kind: vendorError.kindOfStatus(status), ...unreachable, status, requestId };
  }
  const { code } = found;
  if (facts.isClockError) return { ...CLOCK, code, status, requestId };
  const row = code === 'KMSInvalidStateException' && isEnded(error) ? ENDED : found.row;
  return { ...row, code, status, requestId };
}

function isEnded(error: unknown): boolean {
  const message = vendorError.property(error, 'message');
  return typeof message === 'string' && ENDED_MESSAGE.test(message);
}
