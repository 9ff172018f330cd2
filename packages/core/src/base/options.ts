import { types } from 'node:util';

/** The `code` of the error that refuses an option. */
const REFUSED_OPTION = 'ERR_SEALRING_OPTION';

/** The TypeError for an option. Its `code` shows callers that the text is Sealring's and contains no secret. */
export function optionTypeError(text: string): TypeError {
  return Object.defineProperty(new TypeError(text), 'code', { value: REFUSED_OPTION });
}

/** The RangeError for an option, with the same `code`. */
export function optionRangeError(text: string): RangeError {
  return Object.defineProperty(new RangeError(text), 'code', { value: REFUSED_OPTION });
}

/** Describes an invalid value for an error message: its type, or the value itself if it cannot be a secret. */
export function show(value: unknown): string {
  if (value === null) return 'null';
  if (typeof value === 'number' || typeof value === 'boolean' || typeof value === 'undefined') return String(value);
  if (Array.isArray(value)) return `an array of ${value.length}`;
  if (types.isUint8Array(value)) return `${value.length} bytes`;
  if (types.isPromise(value)) return 'a Promise: did you forget await?';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

/**
 * Formats an invalid string for an error message: in quotes, and only its first 120 characters. Never use it for a
 * value that may be a secret.
 */
export function quote(text: string): string {
  return JSON.stringify(text.slice(0, 120));
}

/**
 * Refuses a value that is not an options object, and a misspelt option, which would otherwise silently mean the
 * default.
 * @throws {TypeError} unless `options` is an object whose every key is in `known`.
 */
export function refuseUnknownOptions(owner: string, options: unknown, known: readonly string[]): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw optionTypeError(`${owner}: options must be an object, got ${show(options)}`);
  }
  for (const key of Object.keys(options)) {
    if (!known.includes(key)) {
      const meant = known.find((name) => isAlike(name, key));
      const hint = meant === undefined ? '' : ` (did you mean ${JSON.stringify(meant)}?)`;
      throw optionTypeError(
        `${owner}: unknown option ${JSON.stringify(key)}${hint}; the options are ${known.join(', ')}`,
      );
    }
  }
}

/**
 * Whether two names of at least 3 characters differ only in case, or in one character that is missing, added or
 * changed.
 */
function isAlike(known: string, name: string): boolean {
  if (Math.min(known.length, name.length) < 3) return false;
  if (known.toLowerCase() === name.toLowerCase()) return true;
  const [longer, shorter] = known.length >= name.length ? [known, name] : [name, known];
  let at = 0;
  // The loop ends, because the names differ.
  while (longer[at] === shorter[at]) at += 1;
  const rest = longer.slice(at + 1);
  return rest === shorter.slice(at) || rest === shorter.slice(at + 1);
}

/**
 * Reads a number.
 * @throws {TypeError} for a non-number, {@link RangeError} for NaN, an infinity, or a value outside [min, max].
 */
export function finiteNumber(owner: string, name: string, value: unknown, min: number, max: number): number {
  if (typeof value !== 'number') throw optionTypeError(`${owner}: ${name} must be a number, got ${show(value)}`);
  if (!(value >= min && value <= max)) {
    throw optionRangeError(`${owner}: ${name} must be from ${min} to ${max}, got ${value}`);
  }
  return value;
}

/**
 * Reads a string that must be one of `choices`.
 * @throws {TypeError} for a non-string, {@link RangeError} for a string that is not in `choices`.
 */
export function oneOf<T extends string>(owner: string, name: string, value: unknown, choices: readonly T[]): T {
  if (typeof value !== 'string') {
    throw optionTypeError(`${owner}: ${name} must be one of ${choices.join(', ')}, got ${show(value)}`);
  }
  const found = choices.find((choice) => choice === value);
  if (found === undefined) {
    throw optionRangeError(`${owner}: ${name} must be one of ${choices.join(', ')}, got ${quote(value)}`);
  }
  return found;
}

/** Ring names and purposes. */
export const LABEL: RegExp = /^[A-Za-z0-9._-]{1,64}$/;

/** A ring name or purpose. Keys are derived from it, so its alphabet is restricted. */
export function label(owner: string, name: string, value: unknown): string {
  if (typeof value !== 'string') throw optionTypeError(`${owner}: ${name} must be a string, got ${show(value)}`);
  if (!LABEL.test(value)) {
    throw optionRangeError(
      `${owner}: ${name} must be 1 to 64 characters of [A-Za-z0-9._-], got ${JSON.stringify(value.slice(0, 80))}`,
    );
  }
  return value;
}

/**
 * Copies a secret that is given as bytes or as text, which is encoded as UTF-8.
 * @throws {TypeError} for anything else, including text with a lone surrogate, which has no UTF-8 form.
 * @throws {RangeError} for fewer than `minBytes` bytes.
 */
export function secretBytes(owner: string, name: string, value: unknown, minBytes: number): Buffer {
  let bytes: Buffer;
  if (typeof value === 'string') {
    if (!value.isWellFormed()) throw optionTypeError(`${owner}: ${name} must not contain a lone surrogate`);
    bytes = unpooled(Buffer.from(value));
  } else if (types.isUint8Array(value)) {
    bytes = unpooled(value);
  } else {
    // The value is never coerced: Buffer.from(32) and Uint8Array(32) would silently create a key of zeros.
    throw optionTypeError(`${owner}: ${name} must be a Uint8Array or a string, got ${show(value)}`);
  }
  if (bytes.length < minBytes) {
    throw optionRangeError(
      `${owner}: ${name} must be at least ${minBytes} bytes of secret randomness, got ${bytes.length}: ` +
        `pass the output of "openssl rand -base64 ${minBytes}"`,
    );
  }
  return bytes;
}

/** Whether all bytes are the same, as in a buffer that was never filled. */
export function isConstant(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === bytes[0]);
}

/** A copy of a secret in its own memory: a slice of Node's shared pool could be read through any other small Buffer. */
export function unpooled(bytes: Uint8Array): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length);
  copy.set(bytes);
  return copy;
}
