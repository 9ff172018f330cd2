import { checkDocument, checkRead } from '../adapter/ring-store-arguments.ts';
import { optionRangeError } from '../base/options.ts';
import { MAX_DOCUMENT_BYTES, type RingStore, RingStoreError } from '../contracts/ring-store.ts';

const OWNER = 'staticRing';

/**
 * A ring store that holds one document permanently and cannot be written to, for a ring that is part of the deployment,
 * for example in an environment variable. Its keys are rotated by deploying another document.
 *
 * @param document - The ring document, unchanged, up to 262 144 bytes.
 * @throws {TypeError} for a document that is not a string or is empty, such as an environment variable that is not set.
 * @throws {RangeError} for a document over 262 144 bytes.
 *
 * @example
 * ```ts
 * const ring = staticRing(process.env['SEALRING_RING'] ?? '');
 * ```
 */
export function staticRing(document: string): RingStore {
  checkDocument(OWNER, document);
  const bytes = Buffer.byteLength(document);
  if (bytes > MAX_DOCUMENT_BYTES) {
    throw optionRangeError(`${OWNER}: document must be at most ${MAX_DOCUMENT_BYTES} bytes, got ${bytes}`);
  }
  const stored = Object.freeze({ document, revision: 'static' });

  return Object.freeze<RingStore>({
    kind: 'static',

    async read(options) {
      checkRead(OWNER, options);
      return stored;
    },

    async write() {
      throw new RingStoreError('read-only', 'the document is part of the configuration and cannot be changed');
    },
  });
}
