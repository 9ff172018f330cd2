import { type Clock, momentOf, secondsSince } from '../clock.ts';
import { channels } from '../events.ts';
import type { HeldKey } from '../key-cache.ts';
import { authenticate } from './authentication.ts';
import { Deadlines } from './deadlines.ts';
import { encodeBody, encodeDocument, parseDocument, type RingContent, type RingDocument } from './document.ts';
import {
  RingConflictError,
  type RingStore,
  RingStoreError,
  type RingStoreErrorKind,
  type StoredRing,
} from './store.ts';

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
  readonly #closing: AbortSignal;
  readonly #deadlines: Deadlines;
  readonly #onServiceDate: (date: Date) => void;
  /** The text read or written last: it is read again and again, and seldom another. */
  #lastText: string | undefined;
  #lastDocument: RingDocument | undefined;

  constructor(options: {
    readonly store: RingStore;
    readonly ring: string;
    readonly clock: Clock;
    readonly timeoutSeconds: number;
    readonly closing: AbortSignal;
    readonly onServiceDate: (date: Date) => void;
  }) {
    this.#store = options.store;
    this.#onServiceDate = options.onServiceDate;
    this.#ring = options.ring;
    this.#clock = options.clock;
    this.#closing = options.closing;
    this.#deadlines = new Deadlines(options.clock, options.timeoutSeconds, options.closing);
  }

  /** Undefined when the document is known to be absent. */
  read(): Promise<Stored | undefined> {
    return this.#withDeadline(
      'read',
      (signal) => this.#store.read({ signal, onServiceDate: this.#onServiceDate }),
      this.#opened,
    );
  }

  readonly #opened = (stored: StoredRing | undefined): Stored | undefined => {
    if (stored === undefined) return undefined;
    if (typeof stored.document !== 'string' || typeof stored.revision !== 'string') {
      throw new RingStoreError('corrupt', 'the store returned no document');
    }
    return { document: this.#parsed(stored.document), revision: stored.revision };
  };

  /** Signs and writes. @throws {RingConflictError} when the store does not hold `expected` any more. */
  async write(content: RingContent, signers: Iterable<HeldKey>, expected: string | undefined): Promise<Stored> {
    const body = encodeBody(content);
    const text = encodeDocument(body, authenticate(body, signers));
    // What could not be read back must not be written.
    const document = this.#parsed(text);
    return this.#withDeadline(
      'write',
      (signal) => this.#store.write(text, { expected, signal, onServiceDate: this.#onServiceDate }),
      ({ revision }) => ({ document, revision }),
    );
  }

  /** The same object for the same text, so that an unchanged ring is recognised without a look inside. */
  #parsed(text: string): RingDocument {
    if (this.#lastDocument === undefined || this.#lastText !== text) {
      this.#lastDocument = parseDocument(text, this.#ring);
      this.#lastText = text;
    }
    return this.#lastDocument;
  }

  #withDeadline<A, T>(
    operation: 'read' | 'write',
    run: (signal: AbortSignal) => Promise<A>,
    opened: (answer: A) => T,
  ): Promise<T> {
    const call = this.#deadlines.run(run, noAnswer).then(opened, throwOurs);
    return channels['store-call'].isHeard ? this.#told(operation, call) : call;
  }

  /** Tells the listeners how a call went. On close every call ends: that says nothing of the store. */
  async #told<T>(operation: 'read' | 'write', call: Promise<T>): Promise<T> {
    const asked = momentOf(this.#clock);
    const tell = (outcome: { readonly ok: boolean; readonly kind?: string }): void => {
      if (this.#closing.aborted) return;
      const seconds = secondsSince(asked, momentOf(this.#clock));
      channels['store-call'].publish(() => ({ store: this.#store.kind, operation, ...outcome, seconds }));
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

function throwOurs(error: unknown): never {
  throw ours(error);
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
