import { RingStoreError } from '@sealring/core';
import { refuseUnknown, show } from './options.ts';

/** Bytes a ring document may have: the bound of the ring store contract. */
export const MAX_DOCUMENT_BYTES = 262_144;

/** A document over the bound, stored or given. */
export const TOO_LARGE: { readonly kind: 'too-large'; readonly detail: string } = Object.freeze({
  kind: 'too-large',
  detail: `a ring document has at most ${MAX_DOCUMENT_BYTES} bytes`,
});

/** @throws {TypeError} for an unknown option. */
export function checkRead(owner: string, options: { readonly signal?: AbortSignal } | undefined): void {
  if (options !== undefined) refuseUnknown(owner, options, ['signal']);
}

/**
 * Checks what a write was given. `expected` has to be spelled out: forgetting it must not mean "only if absent".
 * @throws {TypeError} for a document that is no text or no UTF-8, an empty one, a wrong `expected`, an unknown option.
 * @throws {RingStoreError} `too-large` for a document over 256 KiB.
 */
export function checkWrite(owner: string, document: unknown, options: { readonly expected: string | undefined }): void {
  if (typeof document !== 'string') throw new TypeError(`${owner}: document must be a string, got ${show(document)}`);
  if (document === '') throw new TypeError(`${owner}: document must not be empty`);
  if (!document.isWellFormed()) throw new TypeError(`${owner}: document is a string with a lone surrogate`);
  refuseUnknown(owner, options, ['expected', 'signal']);
  if (!Object.hasOwn(options, 'expected')) {
    throw new TypeError(`${owner}: expected must be given; undefined means "only if absent"`);
  }
  const expected: unknown = options.expected;
  if (expected !== undefined && typeof expected !== 'string') {
    throw new TypeError(`${owner}: expected must be a revision or undefined, got ${show(expected)}`);
  }
  if (Buffer.byteLength(document) > MAX_DOCUMENT_BYTES) throw new RingStoreError(TOO_LARGE.kind, TOO_LARGE.detail);
}
