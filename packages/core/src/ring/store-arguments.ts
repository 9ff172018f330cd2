import { refuseUnknownOptions, show } from '../options.ts';
import { MAX_DOCUMENT_BYTES, RingStoreError } from './store.ts';

/**
 * Checks the options of a read.
 * @throws {TypeError} for an unknown option.
 * @throws {RingStoreError} `unavailable` when the signal has aborted.
 */
export function checkRead(owner: string, options: { readonly signal?: AbortSignal } | undefined): void {
  if (options === undefined) return;
  refuseUnknownOptions(owner, options, ['signal']);
  refuseAborted(options.signal);
}

/**
 * Checks what a write was given. `expected` has to be spelled out: forgetting it must not mean "only if absent".
 * @throws {TypeError} for a document that is no text or no UTF-8, an empty one, a wrong `expected`, an unknown option.
 * @throws {RingStoreError} `too-large` for a document over 256 KiB, `unavailable` when the signal has aborted.
 */
export function checkWrite(
  owner: string,
  document: unknown,
  options: { readonly expected: string | undefined; readonly signal?: AbortSignal },
): void {
  checkDocument(owner, document);
  refuseUnknownOptions(owner, options, ['expected', 'signal']);
  if (!Object.hasOwn(options, 'expected')) {
    throw new TypeError(`${owner}: expected must be given; undefined means "only if absent"`);
  }
  const expected: unknown = options.expected;
  if (expected !== undefined && typeof expected !== 'string') {
    throw new TypeError(`${owner}: expected must be a revision or undefined, got ${show(expected)}`);
  }
  if (Buffer.byteLength(String(document)) > MAX_DOCUMENT_BYTES) throw tooLarge();
  refuseAborted(options.signal);
}

/** @throws {TypeError} unless `document` is text that has a UTF-8 form and is not empty. */
export function checkDocument(owner: string, document: unknown): void {
  if (typeof document !== 'string') throw new TypeError(`${owner}: document must be a string, got ${show(document)}`);
  if (document === '') throw new TypeError(`${owner}: document must not be empty`);
  if (!document.isWellFormed()) throw new TypeError(`${owner}: document is a string with a lone surrogate`);
}

/** @throws {TypeError} unless `changed` is a function. */
export function checkWatcher(owner: string, changed: unknown): void {
  if (typeof changed !== 'function') throw new TypeError(`${owner}: changed must be a function, got ${show(changed)}`);
}

/** @throws {RingStoreError} `unavailable` when the signal has aborted. */
export function refuseAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) throw new RingStoreError('unavailable', 'aborted by the caller');
}

/** The one error for a document over the bound. */
export function tooLarge(): RingStoreError {
  return new RingStoreError('too-large', `a ring document has at most ${MAX_DOCUMENT_BYTES} bytes`);
}
