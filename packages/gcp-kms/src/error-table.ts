import type { KeyWrapperErrorKind } from '@sealring/core';
import { type ServiceFailure, vendorError } from '@sealring/core/adapter';

/** One row of {@link ERROR_TABLE}. */
export interface ErrorRow {
  readonly kind: KeyWrapperErrorKind;
  readonly hint?: string;
}

const CREDENTIALS = 'the credentials are missing, wrong or expired';
const NO_API = 'the Cloud KMS API, the project or its billing is disabled';

/** Names of the gRPC status codes; the index is the code (gRPC, "Status codes and their use in gRPC"). */
export const STATUS_NAMES: readonly string[] = Object.freeze([
  'OK',
  'CANCELLED',
  'UNKNOWN',
  'INVALID_ARGUMENT',
  'DEADLINE_EXCEEDED',
  'NOT_FOUND',
  'ALREADY_EXISTS',
  'PERMISSION_DENIED',
  'RESOURCE_EXHAUSTED',
  'FAILED_PRECONDITION',
  'ABORTED',
  'OUT_OF_RANGE',
  'UNIMPLEMENTED',
  'INTERNAL',
  'UNAVAILABLE',
  'DATA_LOSS',
  'UNAUTHENTICATED',
]);

/**
 * The meaning of a status, and of the details that Google's services add to it.
 *
 * Sources: gRPC's status codes; `google.rpc.PreconditionFailure` as Cloud KMS fills it in (its violations name the
 * state of the key, and what an external key manager reported: Cloud KMS documentation, "Cloud EKM errors");
 * `google.api.ErrorReason`.
 */
export const ERROR_TABLE: Readonly<Record<string, ErrorRow>> = Object.freeze({
  // Violations of a FAILED_PRECONDITION.
  ...vendorError.sameRow(['KEY_DISABLED', 'KEY_DESTROY_SCHEDULED', 'KEY_DESTROYED', 'KEY_PENDING_GENERATION'], {
    kind: 'disabled',
    hint: 'the key version is not enabled',
  }),
  EXTERNAL_PERMISSION_DENIED: { kind: 'denied', hint: 'the external key manager refuses Cloud KMS' },
  EXTERNAL_NOT_FOUND: { kind: 'not-found', hint: 'the external key manager has no such key' },

  // Reasons. An expired token does not show that the permission to use the key is missing, and three denials stop a
  // fleet from sealing.
  ACCESS_TOKEN_EXPIRED: { kind: 'unavailable', hint: CREDENTIALS },
  CREDENTIALS_MISSING: { kind: 'denied', hint: CREDENTIALS },
  ACCESS_TOKEN_SCOPE_INSUFFICIENT: { kind: 'denied', hint: 'the access token lacks the cloudkms scope' },
  IAM_PERMISSION_DENIED: { kind: 'denied' },
  SECURITY_POLICY_VIOLATED: { kind: 'denied', hint: 'a VPC Service Controls perimeter blocks the caller' },
  ...vendorError.sameRow(['SERVICE_DISABLED', 'BILLING_DISABLED', 'CONSUMER_SUSPENDED'], {
    kind: 'denied',
    hint: NO_API,
  }),

  PERMISSION_DENIED: { kind: 'denied' },
  UNAUTHENTICATED: { kind: 'denied', hint: CREDENTIALS },
  NOT_FOUND: { kind: 'not-found', hint: 'no such key in this project and location' },
  RESOURCE_EXHAUSTED: { kind: 'throttled' },
  FAILED_PRECONDITION: { kind: 'disabled', hint: 'the key version is not enabled, or Cloud KMS is disabled' },
  // For an unwrap: a different context, a different key's bytes, or modified bytes.
  INVALID_ARGUMENT: { kind: 'corrupt' },

  // Some of these, such as UNKNOWN, are also the statuses of a token source that failed.
  ...vendorError.sameRow(
    [
      'CANCELLED',
      'UNKNOWN',
      'DEADLINE_EXCEEDED',
      'ALREADY_EXISTS',
      'ABORTED',
      'OUT_OF_RANGE',
      'UNIMPLEMENTED',
      'INTERNAL',
      'UNAVAILABLE',
      'DATA_LOSS',
    ],
    { kind: 'unavailable' },
  ),
} satisfies Record<string, ErrorRow>);

// The service could not read the wrap request: a configuration error. It is `denied` because a retry cannot help, and
// because no stored data is suspect.
const WRAP_REFUSED: ErrorRow = Object.freeze({
  kind: 'denied',
  hint: 'Cloud KMS does not accept the request: keyId must be a key for symmetric encryption (ENCRYPT_DECRYPT)',
});

const EXTERNAL_MANAGER: ErrorRow = Object.freeze({ kind: 'unavailable', hint: 'the external key manager failed' });

/**
 * How `@grpc/grpc-js` describes the error when a connection was never established, and the code of that error, because
 * gRPC itself has only UNAVAILABLE for all of these errors. The texts are only searched for, never copied.
 */
const NO_CONNECTION: readonly (readonly [text: RegExp, code: string])[] = [
  [/\bself-signed certificate in certificate chain\b/, 'SELF_SIGNED_CERT_IN_CHAIN'],
  [/\bself-signed certificate\b/, 'DEPTH_ZERO_SELF_SIGNED_CERT'],
  [/\bunable to get local issuer certificate\b/, 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY'],
  [/\bunable to verify the first certificate\b/, 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'],
  [/\bcertificate has expired\b/, 'CERT_HAS_EXPIRED'],
  [/\bcertificate is not yet valid\b/, 'CERT_NOT_YET_VALID'],
  [/\bdoes not match certificate's altnames\b/, 'ERR_TLS_CERT_ALTNAME_INVALID'],
  [/:wrong version number:/, 'ERR_SSL_WRONG_VERSION_NUMBER'],
  [/:packet length too long:/, 'ERR_SSL_PACKET_LENGTH_TOO_LONG'],
  [/\bECONNREFUSED\b/, 'ECONNREFUSED'],
  [/\bECONNRESET\b|\bsocket disconnected before secure TLS connection\b/, 'ECONNRESET'],
  [/\bEHOSTUNREACH\b/, 'EHOSTUNREACH'],
  [/\bENETUNREACH\b/, 'ENETUNREACH'],
  [/\bETIMEDOUT\b/, 'ETIMEDOUT'],
  [/^Name resolution failed\b/, 'ENOTFOUND'],
];

/** Maximum number of entries that are read from a list in an error. */
const MAX_ENTRIES = 8;

/**
 * Classifies a rejection by the SDK. Reads `code`, `reason` and the violations in `statusDetails` and, only for
 * UNAVAILABLE, searches `details` for the texts above. A message, which can contain parts of the request, is never
 * copied. Never reads the class, which differs between copies of the SDK. Never throws. A value that is not a gRPC
 * status is `unavailable`; so is a number outside 1 to 16, which a failed token source can return.
 */
export function classify(error: unknown, operation: 'wrap' | 'unwrap'): ServiceFailure {
  const code = vendorError.property(error, 'code');
  const status = typeof code === 'number' ? STATUS_NAMES[code] : undefined;
  if (status === undefined) return { kind: 'unavailable' };
  const violations = status === 'FAILED_PRECONDITION' ? violationsOf(error) : [];
  const found = vendorError.findRow(ERROR_TABLE, [...violations, vendorError.property(error, 'reason')]);
  if (found !== undefined) return { ...found.row, code: found.code };
  if (violations.some(isExternal)) return { ...EXTERNAL_MANAGER, code: status };
  const row = operation === 'wrap' && status === 'INVALID_ARGUMENT' ? WRAP_REFUSED : ERROR_TABLE[status];
  return { kind: 'unavailable', ...row, code: status, ...(status === 'UNAVAILABLE' && noConnection(error)) };
}

function noConnection(error: unknown): Pick<ServiceFailure, 'code' | 'hint'> | undefined {
  const details = vendorError.property(error, 'details');
  const found = typeof details === 'string' ? NO_CONNECTION.find(([text]) => text.test(details)) : undefined;
  return vendorError.connectionFailure({ code: found?.[1] });
}

function violationsOf(error: unknown): readonly unknown[] {
  return entriesOf(vendorError.property(error, 'statusDetails'))
    .flatMap((detail) => entriesOf(vendorError.property(detail, 'violations')))
    .map((violation) => vendorError.property(violation, 'type'));
}

function entriesOf(list: unknown): readonly unknown[] {
  const length = vendorError.property(list, 'length');
  const most = typeof length === 'number' ? Math.min(length, MAX_ENTRIES) : 0;
  return Array.from({ length: most }, (_, index) => vendorError.property(list, String(index)));
}

function isExternal(violation: unknown): boolean {
  return typeof violation === 'string' && violation.startsWith('EXTERNAL_');
}
