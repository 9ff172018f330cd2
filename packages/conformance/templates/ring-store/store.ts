import { RingConflictError, type RingStore, RingStoreError } from '@sealring/core';
import { find, swap } from './backend.ts';

/** Maximum length of a ring document, bytes. */
const MAX_DOCUMENT_BYTES = 262_144;

/** Stores a ring document under a name. */
export function myRing(name: string): RingStore {
  return {
    kind: 'my-store',

    async read(options) {
      checkOptions(options);
      const found = await ask(options?.signal, () => find(name, options?.signal));
      if (found === undefined) return undefined;
      const { document, revision } = found;
      if (document === '') throw new RingStoreError('corrupt', 'the document is empty', { revision });
      if (isTooLarge(document)) throw new RingStoreError('too-large', 'over 262 144 bytes', { revision });
      return { document, revision };
    },

    async write(document, options) {
      checkOptions(options);
      checkWrite(document, options);
      if (isTooLarge(document)) throw new RingStoreError('too-large', 'over 262 144 bytes');
      const { expected, signal } = options;
      const revision = await ask(signal, () => swap(name, document, expected, signal));
      if (revision === undefined) throw new RingConflictError();
      return { revision };
    },
  };
}

/** Reports a failure of the service as `unavailable`. Drops its error, which may show a credential or the document. */
async function ask<T>(signal: AbortSignal | undefined, call: () => Promise<T>): Promise<T> {
  try {
    signal?.throwIfAborted();
    return await call();
  } catch {
    throw new RingStoreError('unavailable', 'the service did not answer');
  }
}

function isTooLarge(document: string): boolean {
  return Buffer.byteLength(document) > MAX_DOCUMENT_BYTES;
}

function checkOptions(options: unknown): void {
  if (options !== undefined && (typeof options !== 'object' || options === null)) {
    throw new TypeError('options must be an object');
  }
}

function checkWrite(document: unknown, options: { readonly expected: unknown }): void {
  if (typeof document !== 'string' || document === '' || !document.isWellFormed()) {
    throw new TypeError('document must be a text that is not empty');
  }
  const isGiven = options !== undefined && Object.hasOwn(options, 'expected');
  if (!isGiven || (options.expected !== undefined && typeof options.expected !== 'string')) {
    throw new TypeError('expected must be a revision, or undefined for a ring that does not exist');
  }
}
