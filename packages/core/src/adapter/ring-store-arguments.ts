import { finiteNumber, refuseUnknownOptions } from '../base/options.ts';
import {
  MAX_DOCUMENT_BYTES,
  RingConflictError,
  type RingStoreCallOptions,
  RingStoreError,
} from '../contracts/ring-store.ts';
import { BOUNDS, DEFAULT_CLOCK_SKEW_SECONDS } from '../ring/policy.ts';
import { tooLarge } from './failures.ts';
import { checkCallback, signalOf, textWithin, wrongType } from './options.ts';

const MAX_CLAIM_ID_LENGTH = 256;

/**
 * Checks the options of a read.
 * @throws {TypeError} for an unknown option or one of the wrong type.
 * @throws {RingStoreError} `unavailable` when the signal has aborted.
 */
export function checkRead(owner: string, options: RingStoreCallOptions | undefined): void {
  if (options === undefined) return;
  refuseUnknownOptions(owner, options, ['signal', 'onServiceDate']);
  checkCallOptions(owner, options);
}

/**
 * Checks the arguments of a write. `expected` is required, because omitting it must not mean "only if absent".
 * @throws {TypeError} for a document that is empty or is not text with a UTF-8 form, an invalid `expected`, an unknown
 * option or one of the wrong type.
 * @throws {RingStoreError} `too-large` for a document over 262 144 bytes, `unavailable` when the signal has aborted.
 * @throws {RingConflictError} for an `expected` with a lone surrogate, because no service has such a revision.
 */
export function checkWrite(
  owner: string,
  document: unknown,
  options: RingStoreCallOptions & { readonly expected: string | undefined },
): void {
  checkDocument(owner, document);
  refuseUnknownOptions(owner, options, ['expected', 'signal', 'onServiceDate']);
  if (!Object.hasOwn(options, 'expected')) {
    throw new TypeError(`${owner}: expected must be given; undefined means "only if absent"`);
  }
  const expected: unknown = options.expected;
  if (expected !== undefined && typeof expected !== 'string') {
    throw wrongType(owner, 'expected', 'a revision or undefined', expected);
  }
  if (Buffer.byteLength(document) > MAX_DOCUMENT_BYTES) throw tooLarge();
  checkCallOptions(owner, options);
  if (expected?.isWellFormed() === false) throw new RingConflictError();
}

/** @throws {TypeError} unless `document` is text that has a UTF-8 form and is not empty. */
export function checkDocument(owner: string, document: unknown): asserts document is string {
  if (typeof document !== 'string') throw wrongType(owner, 'document', 'a string', document);
  if (document === '') throw new TypeError(`${owner}: document must not be empty`);
  if (!document.isWellFormed()) throw new TypeError(`${owner}: document must not contain a lone surrogate`);
}

/** @throws {RingStoreError} `unavailable` when the signal has aborted. */
export function refuseAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) throw new RingStoreError('unavailable', 'aborted by the caller');
}

/**
 * Checks the argument of `watch`.
 * @throws {TypeError} unless `changed` is a function.
 */
export function checkWatcher(owner: string, changed: unknown): void {
  if (typeof changed !== 'function') throw wrongType(owner, 'changed', 'a function', changed);
}

/**
 * Checks the arguments of a single-use store's `claim`.
 * @throws {TypeError} for an `id` that is not a string, or an `expiresAt` that is not a Date.
 * @throws {RangeError} for an `id` that does not have 1 to 256 characters or has no UTF-8 form, and for an invalid
 * date.
 */
export function checkClaim(owner: string, id: unknown, expiresAt: unknown): void {
  textWithin(owner, 'id', id, MAX_CLAIM_ID_LENGTH);
  if (!(expiresAt instanceof Date)) throw wrongType(owner, 'expiresAt', 'a Date', expiresAt);
  if (Number.isNaN(expiresAt.getTime())) throw new RangeError(`${owner}: expiresAt is an invalid Date`);
}

/**
 * Reads the option `clockSkewSeconds` of a single-use store: same meaning, limits and default as in the ring's policy.
 * @throws {TypeError | RangeError} that names the option and the value.
 */
export function clockSkewMsOf(owner: string, value: unknown): number {
  const given = value === undefined ? DEFAULT_CLOCK_SKEW_SECONDS : value;
  return finiteNumber(owner, 'clockSkewSeconds', given, ...BOUNDS.clockSkewSeconds) * 1_000;
}

/**
 * How long a single-use store must remember a claim from now on: until `expiresAt` plus the clock skew, because a
 * member whose clock is behind may still accept the token. In milliseconds; 0 or less if no member accepts it any
 * longer.
 */
export function claimLifeMs(expiresAt: Date, clockSkewMs: number, nowMs: number = Date.now()): number {
  return Math.ceil(expiresAt.getTime() + clockSkewMs - nowMs);
}

function checkCallOptions(owner: string, { signal, onServiceDate }: RingStoreCallOptions): void {
  checkCallback(owner, 'onServiceDate', onServiceDate);
  refuseAborted(signalOf(owner, signal));
}
