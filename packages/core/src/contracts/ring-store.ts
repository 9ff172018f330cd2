import { brand, sectionOn } from './errors.ts';

/** A ring document as read, with the revision that identifies this version. */
export interface StoredRing {
  /** The text that was written, character for character. */
  readonly document: string;
  /**
   * Opaque to all other code. It is the same for the same version, and differs between different documents of one ring,
   * even if the ring was removed in between.
   */
  readonly revision: string;
}

/** The signal that ends a call, and a callback for the date of the service. */
export interface RingStoreCallOptions {
  /**
   * Ends the call early; it then rejects with kind `unavailable`, whatever the reason of the abort. An aborted write may
   * still be stored, but only if its condition holds.
   */
  readonly signal?: AbortSignal;
  /**
   * Called, before the call ends, with the date of the service's answer, if it has one. A member whose clock differs too
   * much from that date publishes no keys.
   */
  readonly onServiceDate?: (date: Date) => void;
}

/**
 * Where the ring document is stored. The contract:
 *
 * 1. `read` resolves to `undefined` only when the document is *known to be absent*. A document that is unreachable,
 *    forbidden, damaged or over-long is an error: a store that reports a failure as "absent" makes a starting fleet
 *    create a second ring. An empty document is returned as it is, or is `corrupt`.
 * 2. `write` is one atomic compare-and-swap: of any number of writers with the same `expected`, exactly one wins, and
 *    the others get {@link RingConflictError}; `expected: undefined` means "only if absent". A text that is not the
 *    current revision loses as well, even one that no version ever had.
 * 3. Once a write has resolved, it is durable and every later read sees it.
 * 4. `read` and `write` refuse documents over {@link MAX_DOCUMENT_BYTES} without reading them in full. A `too-large` or
 *    `corrupt` error from `read` should have the revision of the stored content, so that one write can replace it.
 */
export interface RingStore {
  /** Names the kind of store in events and errors: `memory`, `file`, `static`, `redis`, … */
  readonly kind: string;
  /** The location of the ring, for messages: `s3://payments-sealring/payments.ring`. Contains no secret. */
  readonly location?: string;
  /** The document, or `undefined` if it is known to be absent. @throws {RingStoreError} */
  read(options?: RingStoreCallOptions): Promise<StoredRing | undefined>;
  /**
   * Writes the document by compare-and-swap: see rule 2 of the contract.
   * @throws {RingConflictError} when another writer was first.
   * @throws {RingStoreError} for every other failure.
   */
  write(
    document: string,
    options: RingStoreCallOptions & { readonly expected: string | undefined },
  ): Promise<{ readonly revision: string }>;
  /**
   * Calls `changed` soon after a write. This is only an optimization. Returns a function that ends the watch; calling that
   * function again does nothing.
   */
  watch?(changed: () => void): () => void;
  /** Closes the resources that the store itself has created, and ends its watches; the caller's client stays open. */
  close?(): Promise<void>;
}

/** Another member wrote first; read the ring again. */
export class RingConflictError extends Error {
  override readonly name = 'RingConflictError';
  readonly code = 'ERR_RING_CONFLICT';
  /** URL of the documentation for this error. */
  readonly help: string = sectionOn('RingConflictError');

  constructor() {
    super('another writer changed the ring first: read it again');
  }

  static {
    brand(this, 'ERR_RING_CONFLICT');
  }
}

/**
 * The kind of a failure at the ring store, in terms that a caller can act on.
 *
 * - `unavailable`: may succeed later. `denied`: this process lacks permission. `read-only`: this store is not writable.
 * - `absent`: a start found no ring. A store never reports it: its `read` resolves to `undefined`.
 * - `corrupt`: the store holds no valid ring document. `too-large`: over a limit of the ring or of the store.
 */
export type RingStoreErrorKind = (typeof RING_STORE_ERROR_KINDS)[number];

/** Every {@link RingStoreErrorKind}. */
export const RING_STORE_ERROR_KINDS = ['unavailable', 'absent', 'denied', 'corrupt', 'too-large', 'read-only'] as const;

/** The methods of {@link RingStore} that call the store. */
export const RING_STORE_OPERATIONS = ['read', 'write'] as const;

/** One of {@link RING_STORE_OPERATIONS}. */
export type RingStoreOperation = (typeof RING_STORE_OPERATIONS)[number];

/** The ring store failed. `detail` never quotes the vendor's message, which may contain credentials. */
export class RingStoreError extends Error {
  override readonly name = 'RingStoreError';
  readonly code = 'ERR_RING_STORE';
  readonly kind: RingStoreErrorKind;
  readonly detail: string;
  /**
   * The revision of a stored document that is `corrupt` or `too-large`: with it, a member that knows the ring
   * overwrites that document.
   */
  readonly revision: string | undefined;
  /** The vendor's code, if it is one that the store lists. */
  readonly serviceCode: string | undefined;
  /** The {@link RingStore.location} of the store, if a start failed with this error. */
  readonly location: string | undefined;
  /** URL of the documentation for this kind of error. */
  readonly help: string;

  constructor(
    kind: RingStoreErrorKind,
    detail: string,
    {
      revision,
      serviceCode,
      location,
    }: {
      readonly revision?: string | undefined;
      readonly serviceCode?: string | undefined;
      readonly location?: string | undefined;
    } = {},
  ) {
    super(`ring store ${location === undefined ? '' : `${location} `}${kind}: ${detail}`);
    this.kind = kind;
    this.detail = detail;
    this.revision = revision;
    this.serviceCode = serviceCode;
    this.location = location;
    this.help = sectionOn(`RingStoreError: ${kind}`);
  }

  static {
    brand(this, 'ERR_RING_STORE');
  }
}

/** The maximum size of a ring document, in bytes. */
export const MAX_DOCUMENT_BYTES: number = 256 * 1024;
