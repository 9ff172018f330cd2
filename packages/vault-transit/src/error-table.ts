import { type ServiceFailure, vendorError } from '@sealring/core/adapter';

/** The meaning of a failure, and the remedy for an operator. */
export type ErrorRow = Pick<ServiceFailure, 'kind' | 'hint'>;

// A configuration error has no separate kind. It is `denied`, as in the other key wrappers: the caller may not use
// this key this way, and a retry cannot help.
const KEY_TYPE = 'the transit key must be of type aes256-gcm96 or chacha20-poly1305, and not derived';

/**
 * Vault's refusals with status 400 differ only in their text. That text is compared with the patterns listed here, and
 * is never copied. Any other text is `unavailable`.
 *
 * Sources: `sdk/helper/keysutil/policy.go` and `builtin/logical/transit` of HashiCorp Vault 1.13 and later and of
 * OpenBao 2; tested against OpenBao 2.7.2.
 */
export const REFUSALS: readonly (ErrorRow & { readonly text: RegExp })[] = Object.freeze([
  { text: /^(?:cipher|chacha20poly1305): message authentication failed$/, kind: 'corrupt' },
  { text: /^invalid ciphertext length$/, kind: 'corrupt' },
  {
    text: /^invalid ciphertext: (?:no prefix|wrong number of fields|could not decode base64|version number could not be decoded|unable to decrypt)$/,
    kind: 'corrupt',
  },
  // This is not `corrupt`: a standby node that serves reads can be behind the node that has rotated the key.
  {
    text: /^invalid ciphertext: version is too new$/,
    kind: 'unavailable',
    hint: 'this node does not have the version of the transit key yet, or no longer has it',
  },
  {
    text: /^ciphertext or signature version is disallowed by policy \(too old\)$/,
    kind: 'disabled',
    hint: 'the version of the transit key is below its min_decryption_version',
  },
  { text: /^refusing to use soft-deleted key$/, kind: 'disabled', hint: 'the transit key is soft-deleted' },
  { text: /^encryption key not found$/, kind: 'not-found', hint: 'the transit key does not exist in this mount' },
  { text: /^'\[0\]\.associated_data' provided for non-AEAD cipher suite [a-z0-9-]+$/, kind: 'denied', hint: KEY_TYPE },
  { text: /^missing 'context' for key derivation; /, kind: 'denied', hint: KEY_TYPE },
  { text: /^message (?:de|en)cryption not supported for key type /, kind: 'denied', hint: KEY_TYPE },
]);

/** Statuses with a more specific meaning than in {@link kindOfStatus}, or with a hint. */
export const STATUSES: Readonly<Record<number, ErrorRow>> = Object.freeze({
  400: { kind: 'unavailable', hint: 'Vault refused the request for a reason that Sealring does not recognize' },
  403: {
    kind: 'denied',
    hint: 'the policy lacks the permission, or the token is unknown, expired or revoked: Vault does not say which',
  },
  404: { kind: 'not-found', hint: 'the mount or namespace does not exist' },
  405: { kind: 'denied', hint: 'the mount is not a transit engine' },
  501: { kind: 'unavailable', hint: 'Vault is not initialized' },
  503: { kind: 'unavailable', hint: 'Vault is sealed, or has no active node' },
});

const REDIRECTED: ErrorRow = Object.freeze({
  kind: 'unavailable',
  hint: 'redirects from standby nodes are not followed: enable request forwarding, or set the address of the active node',
});

/** Classifies a request without an answer. Never throws. */
export function classify(error: unknown): ServiceFailure {
  return { kind: 'unavailable', ...vendorError.connectionFailure(error) };
}

/** Classifies an answer other than 200 by its status or, if that is 400, by the texts of {@link REFUSALS}. */
export function classifyAnswer(givenStatus: unknown, body: string): ServiceFailure {
  const status = vendorError.statusOf(givenStatus);
  return { ...rowOf(status, body), status };
}

function rowOf(status: number | undefined, body: string): ErrorRow {
  if (status === undefined) return { kind: 'unavailable' };
  if (status >= 300 && status <= 399) return REDIRECTED;
  const refusal = status === 400 ? refusalIn(body) : undefined;
  return refusal ?? STATUSES[status] ?? { kind: vendorError.kindOfStatus(status) };
}

/** The row for an answer `{ "errors": ["…"] }`. */
function refusalIn(body: string): ErrorRow | undefined {
  const errors = vendorError.property(parseJson(body), 'errors');
  if (!Array.isArray(errors)) return undefined;
  const found = REFUSALS.find(({ text }) => errors.some((error) => typeof error === 'string' && text.test(error)));
  return found && { kind: found.kind, hint: found.hint };
}

/** The value of JSON text; undefined for text that is not JSON, such as a gateway's answer. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
