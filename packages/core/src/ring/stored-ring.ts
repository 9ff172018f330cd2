import { type Clock, schedule } from '../clock.ts';
import type { HeldKey } from '../key-cache.ts';
import { authenticate } from './authentication.ts';
import { encodeBody, encodeDocument, parseDocument, type RingContent, type RingDocument } from './document.ts';
import { RingConflictError, type RingStore, RingStoreError, type RingStoreErrorKind } from './store.ts';

/** A parsed document with the store's revision of it. */
export interface Stored {
  readonly document: RingDocument;
  readonly revision: string;
}

/**
 * The ring in its store: reads and parses, signs and writes, each call with a deadline of our own, and every failure a
 * {@link RingStoreError} or {@link RingConflictError}.
 */
export class StoredRingDocument {
  readonly #store: RingStore;
  readonly #ring: string;
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #closing: AbortSignal;

  constructor(options: { store: RingStore; ring: string; clock: Clock; timeoutSeconds: number; closing: AbortSignal }) {
    this.#store = options.store;
    this.#ring = options.ring;
    this.#clock = options.clock;
    this.#timeoutMs = options.timeoutSeconds * 1_000;
    this.#closing = options.closing;
  }

  /** Undefined when the document is known to be absent. */
  async read(): Promise<Stored | undefined> {
    const stored = await this.#withDeadline((signal) => this.#store.read({ signal }));
    if (stored === undefined) return undefined;
    if (typeof stored.document !== 'string' || typeof stored.revision !== 'string') {
      throw new RingStoreError('corrupt', 'the store returned no document');
    }
    return { document: parseDocument(stored.document, this.#ring), revision: stored.revision };
  }

  /** Signs and writes. @throws {RingConflictError} when the store does not hold `expected` any more. */
  async write(content: RingContent, signers: Iterable<HeldKey>, expected: string | undefined): Promise<Stored> {
    const body = encodeBody(content);
    const text = encodeDocument(body, authenticate(body, signers));
    // What could not be read back must not be written.
    const document = parseDocument(text, this.#ring);
    const { revision } = await this.#withDeadline((signal) => this.#store.write(text, { expected, signal }));
    return { document, revision };
  }

  async #withDeadline<T>(run: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const deadline = new AbortController();
    const signal = AbortSignal.any([deadline.signal, this.#closing]);
    const cancel = schedule(this.#clock, () => deadline.abort(), this.#timeoutMs);
    try {
      return await new Promise<T>((resolve, reject) => {
        const abort = (): void => reject(new RingStoreError('unavailable', 'no answer in time'));
        if (signal.aborted) {
          abort();
          return;
        }
        signal.addEventListener('abort', abort, { once: true });
        Promise.resolve()
          .then(() => run(signal))
          .then(resolve, reject)
          .finally(() => signal.removeEventListener('abort', abort));
      });
    } catch (error) {
      throw ours(error);
    } finally {
      cancel();
    }
  }
}

const KINDS: readonly RingStoreErrorKind[] = ['unavailable', 'denied', 'corrupt', 'too-large', 'read-only'];

/** By name: a store may carry its own copy of the classes. A foreign error's text may hold credentials. */
function ours(error: unknown): Error {
  if (error instanceof RingConflictError || error instanceof RingStoreError) return error;
  if (error instanceof Error && error.name === 'RingConflictError') return new RingConflictError();
  const kind = KINDS.find((known) => error instanceof Error && 'kind' in error && error.kind === known);
  if (error instanceof Error && error.name === 'RingStoreError' && kind !== undefined) {
    return new RingStoreError(kind, 'reported by the store');
  }
  return new RingStoreError('unavailable', 'the store threw an error of another class');
}
