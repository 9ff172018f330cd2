/** The path of a section of the documentation: `docs/errors.md#` and the anchor of its title. */
export function sectionOn(title: string): string {
  const anchor = title
    .toLowerCase()
    .replaceAll(/[^a-z0-9 -]/g, '')
    .replaceAll(' ', '-');
  return `docs/errors.md#${anchor}`;
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

  constructor(reason: SealUnavailableReason) {
    super(`cannot seal: ${reason}`);
    this.reason = reason;
  }

  /** The section of the documentation on this reason, a path in Sealring's repository. */
  get help(): string {
    return sectionOn(`SealUnavailableError: ${this.reason}`);
  }
}

/** The codec is closed: its keys are overwritten, and every later call throws this error. */
export class CodecClosedError extends Error {
  override readonly name = 'CodecClosedError';
  readonly code = 'ERR_CODEC_CLOSED';

  constructor() {
    super('the codec is closed');
  }

  /** The section of the documentation on it, a path in Sealring's repository. */
  get help(): string {
    return sectionOn('CodecClosedError');
  }
}
