import { type Clock, momentOf, secondsSince } from '../base/clock.ts';
import type { Closing } from '../base/closing.ts';
import { Deadlines } from '../base/deadlines.ts';
import { kindOfNamed } from '../contracts/errors.ts';
import { type CallOutcome, channels } from '../contracts/events.ts';
import {
  RING_STORE_ERROR_KINDS,
  RingConflictError,
  type RingStore,
  RingStoreError,
  type RingStoreErrorKind,
  type RingStoreOperation,
  type StoredRing,
} from '../contracts/ring-store.ts';
import { encodeDocument, parseDocument, type RingDocument } from '../ring/document.ts';

const UNREADABLE = { kind: 'corrupt', detail: 'the document cannot be parsed' } as const;

/** The content of a store, with its revision. */
export type Stored =
  | { readonly document: RingDocument; readonly revision: string }
  /** Content that is not a document of this ring: nothing is learned from it, and it can be overwritten. */
  | { readonly document: undefined; readonly revision: string; readonly error: RingStoreError };

/**
 * The ring in its store: reads and parses the document, encodes and writes it. Each call has a deadline, and each
 * failure is a {@link RingStoreError} or {@link RingConflictError}.
 */
export class StoredRingDocument {
  readonly #store: RingStore;
  readonly #ring: string;
  readonly #clock: Clock;
  readonly #closing: Closing;
  readonly #deadlines: Deadlines;
  readonly #onServiceDate: (date: Date) => void;
  /** The text read or written last; most reads return the same text again. */
  #lastText: string | undefined;
  #lastDocument: RingDocument | undefined;
  #latest: Stored | undefined;

  constructor(options: {
    readonly store: RingStore;
    readonly ring: string;
    readonly clock: Clock;
    readonly timeoutSeconds: number;
    readonly closing: Closing;
    readonly onServiceDate: (date: Date) => void;
  }) {
    this.#store = options.store;
    this.#onServiceDate = options.onServiceDate;
    this.#ring = options.ring;
    this.#clock = options.clock;
    this.#closing = options.closing;
    this.#deadlines = new Deadlines(options.clock, options.timeoutSeconds * 1_000, options.closing);
  }

  /** The version that was last read or written, which a write replaces. Undefined for an empty store. */
  get latest(): Stored | undefined {
    return this.#latest;
  }

  /** Reads the store. Returns undefined when the document is known to be absent. */
  async read(): Promise<Stored | undefined> {
    this.#latest = await this.#withDeadline(
      'read',
      (signal) => this.#store.read({ signal, onServiceDate: this.#onServiceDate }),
      this.#opened,
    ).catch(foreignOf);
    return this.#latest;
  }

  readonly #opened = (stored: StoredRing | undefined): Stored | undefined => {
    if (stored === undefined) return undefined;
    const { document, revision } = stored;
    if (typeof document !== 'string' || typeof revision !== 'string') {
      throw new RingStoreError('corrupt', 'the store returned no document with a revision');
    }
    try {
      return { document: this.#parsed(document), revision };
    } catch (error) {
      // Whatever a document does to the parser, it is invalid content.
      const { kind, detail } = error instanceof RingStoreError ? error : UNREADABLE;
      throw new RingStoreError(kind, detail, { revision });
    }
  };

  /**
   * Writes `document` in place of the version that was last read or written.
   * @throws {RingConflictError} when the store no longer holds that version.
   */
  async write(document: RingDocument): Promise<void> {
    const text = encodeDocument(document);
    // A document that could not be read back must not be written.
    const parsed = this.#parsed(text);
    this.#latest = await this.#withDeadline(
      'write',
      (signal) =>
        this.#store.write(text, { expected: this.#latest?.revision, signal, onServiceDate: this.#onServiceDate }),
      ({ revision }) => ({ document: parsed, revision }),
    );
  }

  /**
   * Parses a document. Returns the same object for the same text, so that an unchanged ring is recognized without being
   * parsed again.
   */
  #parsed(text: string): RingDocument {
    if (this.#lastDocument === undefined || this.#lastText !== text) {
      this.#lastDocument = parseDocument(text, this.#ring);
      this.#lastText = text;
    }
    return this.#lastDocument;
  }

  #withDeadline<A, T>(
    operation: RingStoreOperation,
    run: (signal: AbortSignal) => Promise<A>,
    opened: (answer: A) => T,
  ): Promise<T> {
    const call = this.#deadlines.run(run, noAnswer).then(opened, throwOurs);
    return channels['store-call'].isHeard ? this.#told(operation, call) : call;
  }

  /**
   * Emits the outcome of a call, unless closing the codec ended it: such an outcome says nothing about the store.
   */
  async #told<T>(operation: RingStoreOperation, call: Promise<T>): Promise<T> {
    const asked = momentOf(this.#clock);
    const tell = (outcome: CallOutcome<RingStoreErrorKind | 'conflict'>): void => {
      if (this.#closing.aborted) return;
      const seconds = secondsSince(asked, momentOf(this.#clock));
      channels['store-call'].publish(() => ({
        ringName: this.#ring,
        store: this.#store.kind,
        operation,
        ...outcome,
        seconds,
      }));
    };
    try {
      const answer = await call;
      tell({ ok: true });
      return answer;
    } catch (error) {
      tell({ ok: false, kind: error instanceof RingStoreError ? error.kind : 'conflict' });
      throw error;
    }
  }
}

function noAnswer(): RingStoreError {
  return new RingStoreError('unavailable', 'no answer in time');
}

/**
 * Content that a store cannot return as a document, but whose revision it knows, can be overwritten like any other
 * invalid content.
 */
function foreignOf(error: unknown): Stored {
  const isJunk = error instanceof RingStoreError && (error.kind === 'corrupt' || error.kind === 'too-large');
  if (isJunk && error.revision !== undefined) return { document: undefined, revision: error.revision, error };
  throw error;
}

function throwOurs(error: unknown): never {
  throw ours(error);
}

/**
 * Converts an error thrown by a store to one of this package's classes, because a store may have its own copy of them.
 * The text of a foreign error is dropped, because it may contain credentials.
 */
function ours(error: unknown): Error {
  if (error instanceof RingConflictError || error instanceof RingStoreError) return error;
  if (error instanceof Error && error.name === 'RingConflictError') return new RingConflictError();
  const kind = kindOfNamed(error, 'RingStoreError', RING_STORE_ERROR_KINDS);
  if (kind !== undefined && kind !== 'absent')
    return new RingStoreError(kind, 'reported by the store', revisionOf(error));
  return new RingStoreError('unavailable', 'the store threw an error that is not a RingStoreError');
}

function revisionOf(error: unknown): { readonly revision?: string } {
  const revision: unknown = Reflect.get(Object(error), 'revision');
  return typeof revision === 'string' ? { revision } : {};
}
