/** The codes of the errors that this package and its adapters throw. `ERR_SEALRING_OPTION` is on a `TypeError` or `RangeError`. */
export const CORE_ERROR_CODES = [
  'ERR_CODEC_CLOSED',
  'ERR_INVALID_REQUEST_STATE',
  'ERR_KEY_WRAPPER',
  'ERR_RING_CONFLICT',
  'ERR_RING_STORE',
  'ERR_SEALRING_OPTION',
  'ERR_SEAL_UNAVAILABLE',
  'ERR_SINGLE_USE_STORE',
] as const;

/** One of {@link CORE_ERROR_CODES}. */
export type CoreErrorCode = (typeof CORE_ERROR_CODES)[number];

const ERRORS_PAGE = 'https://github.com/sealring/sealring/blob/main/docs/errors.md';

/** The address of a section of the documentation on errors: the page and the anchor of the title. */
export function sectionOn(title: string): string {
  const anchor = title
    .toLowerCase()
    .replaceAll(/[^a-z0-9 -]/g, '')
    .replaceAll(' ', '-');
  return `${ERRORS_PAGE}#${anchor}`;
}

/** Why no key may seal now. */
export type SealUnavailableReason =
  | 'no active key'
  | 'KMS check too old'
  | 'ring read too old'
  | 'key refused by the kms'
  | 'reader'
  | 'token limit of the key reached';

/**
 * No key may seal now, and an older one must not be used instead: see `health()` for the cause.
 * Distinct from {@link InvalidRequestState} because it is about this instance, not about a token.
 */
export class SealUnavailableError extends Error {
  override readonly name = 'SealUnavailableError';
  readonly code = 'ERR_SEAL_UNAVAILABLE';
  /** The same words as after `cannot seal: ` in the message. */
  readonly reason: SealUnavailableReason;
  /** Address of the documentation on this reason. */
  readonly help: string;

  constructor(reason: SealUnavailableReason) {
    super(`cannot seal: ${reason}`);
    this.reason = reason;
    this.help = sectionOn(`SealUnavailableError: ${reason}`);
  }
}

/** The codec is closed: its keys are overwritten, and every later call throws this error. */
export class CodecClosedError extends Error {
  override readonly name = 'CodecClosedError';
  readonly code = 'ERR_CODEC_CLOSED';
  /** Address of the documentation on this error. */
  readonly help: string = sectionOn('CodecClosedError');

  constructor() {
    super('the codec is closed');
  }
}
