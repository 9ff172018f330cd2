/**
 * The codes of the errors that this package and its adapters throw. An error with the code `ERR_SEALRING_OPTION` is a
 * `TypeError` or `RangeError`.
 */
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

// Registered globally, so that every copy of this package in a process has the same symbol.
const BRAND = Symbol.for('@sealring/core/error');

/**
 * Makes `instanceof` also accept the errors of other copies of this package in the process. A class that extends
 * `errorClass` keeps the ordinary `instanceof`.
 */
export function brand(errorClass: { readonly prototype: Error }, code: CoreErrorCode): void {
  Object.defineProperty(errorClass.prototype, BRAND, { value: code });
  Object.defineProperty(errorClass, Symbol.hasInstance, {
    value(this: unknown, value: unknown): boolean {
      if (this !== errorClass) return Function.prototype[Symbol.hasInstance].call(this, value);
      return value instanceof Error && Reflect.get(value, BRAND) === code;
    },
  });
}

/** The kind of an error called `name`, even from another copy of this package; undefined for any other error. */
export function kindOfNamed<Kind extends string>(
  error: unknown,
  name: string,
  kinds: readonly Kind[],
): Kind | undefined {
  if (!(error instanceof Error) || error.name !== name || !('kind' in error)) return undefined;
  return kinds.find((kind) => kind === error.kind);
}

const ERRORS_PAGE = 'https://github.com/sealring/sealring/blob/main/docs/errors.md';

/** The URL of the section with this title in the documentation of errors: the page, with the anchor of the title. */
export function sectionOn(title: string): string {
  const anchor = title
    .toLowerCase()
    .replaceAll(/[^a-z0-9 -]/g, '')
    .replaceAll(' ', '-');
  return `${ERRORS_PAGE}#${anchor}`;
}

/** Every reason why no key may seal now. */
export const SEAL_UNAVAILABLE_REASONS = [
  'no active key',
  'KMS check too old',
  'ring read too old',
  'key refused by the kms',
  'reader',
  'token limit of the key reached',
] as const;

/** One of {@link SEAL_UNAVAILABLE_REASONS}. */
export type SealUnavailableReason = (typeof SEAL_UNAVAILABLE_REASONS)[number];

/**
 * No key may seal now, and no older key may be used instead. `health()` shows the cause.
 * Distinct from {@link InvalidRequestState} because it is about this instance, not about a token.
 */
export class SealUnavailableError extends Error {
  override readonly name = 'SealUnavailableError';
  readonly code = 'ERR_SEAL_UNAVAILABLE';
  /** The reason, as it follows `cannot seal: ` in the message. */
  readonly reason: SealUnavailableReason;
  /** URL of the documentation for this reason. */
  readonly help: string;

  constructor(reason: SealUnavailableReason) {
    super(`cannot seal: ${reason}`);
    this.reason = reason;
    this.help = sectionOn(`SealUnavailableError: ${reason}`);
  }

  static {
    brand(this, 'ERR_SEAL_UNAVAILABLE');
  }
}

/** The codec is closed: its keys are overwritten, and every later call throws this error. */
export class CodecClosedError extends Error {
  override readonly name = 'CodecClosedError';
  readonly code = 'ERR_CODEC_CLOSED';
  /** URL of the documentation for this error. */
  readonly help: string = sectionOn('CodecClosedError');

  constructor() {
    super('the codec is closed');
  }

  static {
    brand(this, 'ERR_CODEC_CLOSED');
  }
}
