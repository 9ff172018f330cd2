import type { KeyWrapperErrorKind, KeyWrapperOperation } from '@sealring/core';
import { type ServiceFailure, vendorError } from '@sealring/core/adapter';

/** One row of {@link ERROR_TABLE}. */
export interface ErrorRow {
  readonly kind: KeyWrapperErrorKind;
  readonly hint?: string;
}

/** Facts about the last HTTP answer, observed independently of the SDK. */
export interface SeenAnswer {
  readonly status: number | undefined;
  readonly requestId: string | undefined;
}

const CREDENTIALS = 'the credential could not get a token, or the vault does not accept it';
const USAGE =
  'the key operations of the key must include wrapKey and unwrapKey, and those of signKeyId must include sign';
const REQUEST = 'the key must be RSA of 2048 bits or more for RSA-OAEP-256, oct-HSM for A256KW, EC P-256 for signKeyId';
const NETWORK = "the vault's firewall or network rules refuse this client";

/**
 * Maps a code from the vault (the inner code before the outer code), or the name or system code of an error in this
 * process, to a kind. If none of them is listed, the status determines the kind.
 *
 * Sources: "REST API error codes" and the pages on the operations in the Azure Key Vault REST API reference; "About
 * keys" for dates; the troubleshooting guide of the Azure SDKs; Node's system errors. KeyDisabled, KeyOperationForbidden
 * and ObjectIsBeingDeleted come from reports about the live service.
 */
export const ERROR_TABLE: Readonly<Record<string, ErrorRow>> = Object.freeze({
  KeyDisabled: { kind: 'disabled' },
  KeyExpired: { kind: 'disabled', hint: 'the key is past its expiry date' },
  KeyNotYetValid: { kind: 'disabled', hint: 'the activation date of the key is in the future' },
  ObjectIsBeingDeleted: { kind: 'disabled', hint: 'the key is being deleted' },
  ObjectIsDeletedButRecoverable: { kind: 'disabled', hint: 'the key is deleted and can be recovered' },

  AccessDenied: { kind: 'denied' },
  ForbiddenByPolicy: { kind: 'denied' },
  ForbiddenByRbac: { kind: 'denied' },
  ForbiddenByFirewall: { kind: 'denied', hint: NETWORK },
  ForbiddenByConnection: { kind: 'denied', hint: NETWORK },
  Unauthorized: { kind: 'denied', hint: CREDENTIALS },
  // Configuration errors have no separate kind. They are `denied` because the caller may not use this key
  // this way and a retry cannot help. The hint names the fix.
  KeyOperationForbidden: { kind: 'denied', hint: USAGE },
  BadParameter: { kind: 'denied', hint: REQUEST },

  KeyNotFound: { kind: 'not-found', hint: 'no such key, or no such version, in this vault' },

  Throttled: { kind: 'throttled' },
  TooManyRequests: { kind: 'throttled' },

  InternalServerError: { kind: 'unavailable' },
  ServiceUnavailable: { kind: 'unavailable' },

  // Errors of @azure/identity. They are not `denied`, although some have the status 401: an expired credential does not
  // mean that the permission to use the key is missing, and three denials stop a fleet from sealing.
  AuthenticationError: { kind: 'unavailable', hint: CREDENTIALS },
  AggregateAuthenticationError: { kind: 'unavailable', hint: CREDENTIALS },
  AuthenticationRequiredError: { kind: 'unavailable', hint: CREDENTIALS },
  CredentialUnavailableError: { kind: 'unavailable', hint: CREDENTIALS },
} satisfies Record<string, ErrorRow>);

/** Rows that have a different meaning for an unwrap: the vault rejects the wrapped key. */
const UNWRAP_TABLE: Readonly<Record<string, ErrorRow>> = Object.freeze({ BadParameter: { kind: 'corrupt' } });

/**
 * The beginnings of the SDK's messages for a request that it did not send. The text is only matched, never copied.
 *
 * Source: `keyVaultAuthenticationPolicy` of `@azure/keyvault-common`.
 */
const CHALLENGE_REFUSED = /^The challenge (?:resource|origin|authorization URI) '/;
const CHALLENGE: Pick<ServiceFailure, 'code' | 'hint'> = Object.freeze({
  code: 'ERR_AZURE_CHALLENGE_RESOURCE',
  hint:
    'the vault asks for a token for a domain other than its own: check the host of keyId; behind a proxy or for an ' +
    'emulator, set disableChallengeResourceVerification',
});

/**
 * Classifies a rejection by the SDK. Reads codes, names and statuses, and the beginning of a message if the SDK sent no
 * request. A message, which can contain an unwrapped key, is never copied. Never reads the class, which differs between
 * copies of the SDK. Never throws.
 *
 * The status comes from the error or, if the SDK lost it, from the observed answer: the SDK turns a refusal with an
 * empty body into a `TypeError`.
 */
export function classify(error: unknown, operation: KeyWrapperOperation, seen: SeenAnswer): ServiceFailure {
  const body = vendorError.property(vendorError.property(error, 'details'), 'error');
  const status = vendorError.statusOf(vendorError.property(error, 'statusCode')) ?? seen.status;
  const { requestId } = seen;
  const candidates = [
    vendorError.property(vendorError.property(body, 'innerError'), 'code'),
    vendorError.property(body, 'code'),
    vendorError.property(error, 'code'),
    vendorError.property(error, 'name'),
  ];
  const found =
    (operation === 'unwrap' ? vendorError.findRow(UNWRAP_TABLE, candidates) : undefined) ??
    vendorError.findRow(ERROR_TABLE, candidates);
  if (found !== undefined) return { ...found.row, code: found.code, status, requestId };
  if (vendorError.property(error, 'statusCode') === undefined) {
    const message = vendorError.property(error, 'message');
    const refused = typeof message === 'string' && CHALLENGE_REFUSED.test(message) ? CHALLENGE : undefined;
    const unanswered = vendorError.connectionFailure(error) ?? refused;
    if (unanswered !== undefined) return { kind: 'unavailable', ...unanswered };
  }
  if (status === 409) return { kind: 'disabled', status, requestId };
  // A body that is cut short is a network failure; a body that is complete but empty is not.
  if (seen.status === 200 && vendorError.property(error, 'code') !== 'PARSE_ERROR') {
    return { kind: 'corrupt', status, requestId, hint: 'the answer is empty or did not come from the vault' };
  }
  return { kind: vendorError.kindOfStatus(status), status, requestId };
}
