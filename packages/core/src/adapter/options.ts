import { finiteNumber, optionRangeError, optionTypeError, quote, show } from '../base/options.ts';

/** The error for an option of the wrong type; shows only the value's type if the value may be a secret. */
export function wrongType(owner: string, name: string, wanted: string, value: unknown): TypeError {
  return optionTypeError(`${owner}: ${name} must be ${wanted}, got ${show(value)}`);
}

/**
 * The error for text that is not within its limits. Quotes up to 120 characters of the text, so do not use this error
 * for a value that may be a secret.
 */
export function outOfRange(owner: string, name: string, wanted: string, value: string): RangeError {
  return optionRangeError(`${owner}: ${name} must be ${wanted}, got ${quote(value)}`);
}

/**
 * Reads a whole number.
 * @throws {TypeError} for a non-number, {@link RangeError} unless it is whole and within [min, max].
 */
export function integerWithin(owner: string, name: string, value: unknown, min: number, max: number): number {
  const number = finiteNumber(owner, name, value, min, max);
  if (!Number.isInteger(number)) throw optionRangeError(`${owner}: ${name} must be a whole number, got ${number}`);
  return number;
}

/**
 * Reads the option `callTimeoutSeconds`, 0.01 to 60, and returns milliseconds.
 * @throws {TypeError | RangeError}
 */
export function timeoutMsOf(owner: string, callTimeoutSeconds: unknown): number {
  return finiteNumber(owner, 'callTimeoutSeconds', callTimeoutSeconds, 0.01, 60) * 1000;
}

/**
 * Reads a boolean.
 * @throws {TypeError}
 */
export function flag(owner: string, name: string, value: unknown): boolean {
  if (typeof value !== 'boolean') throw wrongType(owner, name, 'a boolean', value);
  return value;
}

/**
 * Reads a string of any length and content.
 * @throws {TypeError} for a non-string.
 */
export function text(owner: string, name: string, value: unknown): string {
  if (typeof value !== 'string') throw wrongType(owner, name, 'a string', value);
  return value;
}

/**
 * Reads text of 1 to `most` characters that has a UTF-8 form; its content never appears in a message.
 * @throws {TypeError} for a non-string, {@link RangeError} for any other text.
 */
export function textWithin(owner: string, name: string, value: unknown, most: number): string {
  const given = text(owner, name, value);
  if (given.length === 0 || given.length > most || !given.isWellFormed()) {
    throw optionRangeError(`${owner}: ${name} must be 1 to ${most} characters, got ${given.length}`);
  }
  return given;
}

/**
 * Reads text that matches `form`, which must be anchored at both ends.
 * @throws {TypeError} for a non-string, {@link RangeError}, which quotes the text, unless `form` matches.
 */
export function textMatching(owner: string, name: string, value: unknown, form: RegExp): string {
  const given = text(owner, name, value);
  if (!form.test(given)) {
    throw optionRangeError(`${owner}: ${name} must match ${form.source}, got ${quote(given)}`);
  }
  return given;
}

/**
 * Reads a URL, whose text never appears in a message, because it may contain a password.
 *
 * @param protocols - The protocols that it may have, each with its colon.
 * @param wanted - The description of a valid value in the message: `a redis:// or rediss:// URL`.
 * @throws {TypeError | RangeError}
 */
export function urlWith(
  owner: string,
  name: string,
  value: unknown,
  protocols: readonly string[],
  wanted: string,
): string {
  const given = text(owner, name, value);
  if (!URL.canParse(given) || !protocols.includes(new URL(given).protocol)) {
    throw optionRangeError(`${owner}: ${name} must be ${wanted}`);
  }
  return given;
}

/**
 * Reads an array, entry by entry, into a frozen copy.
 *
 * @param wanted - The name of its entries in messages, in the plural.
 * @param read - Checks an entry, which is called `name[index]`.
 * @throws {TypeError} for anything but an array, {@link RangeError} for more than `most` entries; and any error that
 * `read` throws.
 */
export function listOf<T>(
  owner: string,
  name: string,
  value: unknown,
  wanted: string,
  most: number,
  read: (name: string, entry: unknown) => T,
): readonly T[] {
  if (!Array.isArray(value)) throw wrongType(owner, name, `an array of ${wanted}`, value);
  if (value.length > most) {
    throw optionRangeError(`${owner}: ${name} must have at most ${most} entries, got ${value.length}`);
  }
  return Object.freeze(value.map((entry: unknown, index) => read(`${name}[${index}]`, entry)));
}

/**
 * Reads a client or similar object, of which only one method can be checked.
 *
 * @param wanted - The name of the expected object in messages: `an S3Client (an object with send)`.
 * @throws {TypeError}
 */
export function objectWith<T extends object>(
  owner: string,
  name: string,
  value: unknown,
  method: keyof T & string,
  wanted: string,
): T {
  const given = value as T | null | undefined;
  if (typeof given?.[method] !== 'function') throw wrongType(owner, name, wanted, value);
  return given;
}

/**
 * Reads the optional `signal`.
 * @throws {TypeError} for anything but an `AbortSignal` or undefined.
 */
export function signalOf(owner: string, value: unknown): AbortSignal | undefined {
  if (value !== undefined && !(value instanceof AbortSignal)) {
    throw wrongType(owner, 'signal', 'an AbortSignal', value);
  }
  return value;
}

/**
 * Checks an optional function.
 * @throws {TypeError} for anything but a function or undefined.
 */
export function checkCallback(owner: string, name: string, value: unknown): void {
  if (value !== undefined && typeof value !== 'function') throw wrongType(owner, name, 'a function', value);
}

const LOOPBACK = /^(?:localhost|127(?:\.[0-9]{1,3}){3}|\[::1\])$/;

/**
 * Reads the address of a service: an `https://` URL, or an `http://` URL of this machine. Its text never
 * appears in a message, because it may contain a password.
 *
 * @param mayBeHttp - Whether `http://` is also accepted for other machines: the option `dangerouslyAllowHttp`.
 * @throws {TypeError | RangeError}
 */
export function endpointUrl(owner: string, name: string, value: unknown, mayBeHttp: boolean): URL {
  const url = new URL(urlWith(owner, name, value, ['https:', 'http:'], 'an https:// URL'));
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw optionRangeError(`${owner}: ${name} must be a URL without a user, password, query or fragment`);
  }
  if (url.protocol === 'http:' && !mayBeHttp && !LOOPBACK.test(url.hostname)) {
    throw optionRangeError(
      `${owner}: ${name} must be an https:// URL, except on this machine: http:// sends everything in plaintext ` +
        '(dangerouslyAllowHttp)',
    );
  }
  return url;
}
