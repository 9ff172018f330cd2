import { brand, sectionOn } from './errors.ts';

/**
 * The kind of a failure at the KMS, in terms that a caller can act on.
 *
 * - `throttled`, `unavailable`: may succeed later; retried within limits.
 * - `denied`: the caller may not use the key. `disabled`: at present, no caller may use it. `not-found`: no such key
 *   exists.
 * - `corrupt`: the wrapped key, its context or the service's answer failed a check.
 *
 * Any error that an adapter does not recognize is `unavailable`: an unknown error never ends the use of a key.
 */
export type KeyWrapperErrorKind = (typeof KEY_WRAPPER_ERROR_KINDS)[number];

/** Every {@link KeyWrapperErrorKind}, from the mildest to the most severe. */
export const KEY_WRAPPER_ERROR_KINDS = [
  'throttled',
  'unavailable',
  'denied',
  'disabled',
  'not-found',
  'corrupt',
] as const;

/** The methods of {@link KeyWrapper} that call the KMS. */
export const KEY_WRAPPER_OPERATIONS = ['wrap', 'unwrap', 'generate', 'sign'] as const;

/** One of {@link KEY_WRAPPER_OPERATIONS}. */
export type KeyWrapperOperation = (typeof KEY_WRAPPER_OPERATIONS)[number];

/** The redacted facts of a failed call. Everything here is chosen by the adapter; nothing is copied from a vendor's text. */
export interface KeyWrapperErrorSummary {
  /** The wrapper's `provider`. */
  readonly provider: string;
  /** The method of {@link KeyWrapper} that failed. */
  readonly operation: KeyWrapperOperation;
  /** The vendor's code or exception name, if it is one the adapter lists. */
  readonly code?: string | undefined;
  /** HTTP status of the answer. */
  readonly status?: number | undefined;
  /** The service's request id. */
  readonly requestId?: string | undefined;
  /** How many attempts the call made. */
  readonly attempts?: number | undefined;
  /** A fixed sentence from the adapter, with the remedy for an operator. */
  readonly hint?: string | undefined;
  /** The error of each key wrapper, if several were called and all failed. */
  readonly causes?: readonly KeyWrapperError[] | undefined;
}

/**
 * The KMS refused or failed. A vendor's error object is never attached, because it can hold the data key: errors of
 * the Azure SDK, for example, keep the request body.
 */
export class KeyWrapperError extends Error {
  override readonly name = 'KeyWrapperError';
  readonly code = 'ERR_KEY_WRAPPER';
  /** See {@link KeyWrapperErrorKind}. */
  readonly kind: KeyWrapperErrorKind;
  /** The redacted answer of the service. Frozen. */
  readonly summary: KeyWrapperErrorSummary;
  /** URL of the documentation for this kind of error. */
  readonly help: string;

  constructor(kind: KeyWrapperErrorKind, summary: KeyWrapperErrorSummary) {
    const facts = [
      summary.code,
      summary.status === undefined ? undefined : `HTTP ${summary.status}`,
      summary.requestId === undefined ? undefined : `request ${summary.requestId}`,
      summary.attempts === undefined || summary.attempts === 1 ? undefined : `${summary.attempts} attempts`,
      summary.hint,
    ].filter((fact) => fact !== undefined);
    const message =
      summary.causes === undefined
        ? `${summary.provider} ${summary.operation}: ${kind}${facts.length === 0 ? '' : ` (${facts.join(', ')})`}`
        : summary.causes.map((cause) => cause.message).join('; ');
    super(message);
    this.kind = kind;
    this.summary = Object.freeze({ ...summary });
    this.help = sectionOn(`KeyWrapperError: ${kind}`);
  }

  static {
    brand(this, 'ERR_KEY_WRAPPER');
  }
}

/** Ciphertext of a data key, and the exact version of the KMS key that made it. Not secret. */
export interface WrappedKey {
  /** The `provider` of the wrapper that made it. */
  readonly provider: string;
  /** The exact key version, as the provider writes it: an ARN, a `cryptoKeyVersions` name, a versioned URL. */
  readonly keyId: string;
  /** The ciphertext, in the provider's format; 1 to 2 048 bytes. */
  readonly wrapped: Uint8Array;
  /**
   * Authenticates the origin of the wrapped key if an unwrap does not: see {@link KeyWrapper.supports}. At most 2 048
   * bytes.
   */
  readonly signature?: Uint8Array;
}

/** The context of a wrap, the signal that ends the call, and a callback for the date of the service. */
export interface WrapOptions {
  /**
   * Authenticated with the wrapped key; an unwrap under another context fails with kind `corrupt`. The order of the
   * entries does not matter.
   */
  readonly context: Readonly<Record<string, string>>;
  /** Ends the call early; the call then rejects with kind `unavailable`, whatever the reason of the abort. */
  readonly signal?: AbortSignal;
  /**
   * Called with the date of the service's answer, if it has one. A member whose clock differs too much from that date
   * publishes no keys.
   */
  readonly onServiceDate?: (date: Date) => void;
}

/**
 * Wraps and unwraps 32-byte data keys with one KMS key. There is one adapter per provider. The contract:
 *
 * 1. `unwrap(await wrap(k, o), o)` returns the bytes of `k` in a fresh `Uint8Array` that the caller may overwrite.
 * 2. A wrapped key that is passed with another context, or in which one bit was changed, is refused with kind `corrupt`.
 * 3. A wrapped key that names another provider or a KMS key outside the wrapper's allow-list is refused with kind
 *    `corrupt` *before* any call.
 * 4. Every failure is a {@link KeyWrapperError}; a wrong argument causes a `TypeError` or `RangeError`.
 * 5. Every call ends by itself within the wrapper's own deadline, and at once when `signal` aborts.
 * 6. A data key has exactly 32 bytes, not all equal. If `supports.context` is false, the ring passes
 *    64 bytes, data key ‖ SHA-256(context), which must be wrapped and returned unchanged.
 */
export interface KeyWrapper {
  /** `aws-kms`, `gcp-kms`, `azure-key-vault`, `local`, or your own name: 1 to 64 characters of `[a-z0-9-]`. */
  readonly provider: string;
  /** The KMS key as it was configured; the exact version is in each {@link WrappedKey}. */
  readonly keyId: string;
  /** The capabilities of the KMS. */
  readonly supports: {
    /** Whether the service itself binds the context. If false, the ring binds it inside the wrapped plaintext. */
    readonly context: boolean;
    /**
     * Whether a successful unwrap shows that the wrap was made with permission to wrap. False if wraps are made with a
     * public RSA key.
     */
    readonly authenticated: boolean;
    /**
     * Whether the KMS key has versions and the `keyId` of a wrapped key names the version that made it. If so, members
     * detect a new version of the KMS key. Default false.
     */
    readonly keyVersions?: boolean;
  };
  /**
   * Whether a wrapped key belongs to this wrapper: to its provider, and to a KMS key that it may call. Makes no call.
   * Distinguishes between two wrappers of the same provider, so that the missing wrap of one of them can be added.
   * Default: whether the provider is the same.
   */
  owns?(wrapped: WrappedKey): boolean;
  /** Wraps 32 bytes, or 64 under rule 6 of the contract. @throws {KeyWrapperError} */
  wrap(dataKey: Uint8Array, options: WrapOptions): Promise<WrappedKey>;
  /** Returns the data key, in a new array. @throws {KeyWrapperError} */
  unwrap(wrapped: WrappedKey, options: WrapOptions): Promise<Uint8Array>;
  /** Creates a data key and wraps it in one call, if the service has such a call. */
  generate?(options: WrapOptions): Promise<{ readonly dataKey: Uint8Array; readonly wrapped: WrappedKey }>;
  /** Has the KMS sign a ring entry; needed if `supports.authenticated` is false. */
  sign?(entry: Uint8Array, options?: { readonly signal?: AbortSignal }): Promise<Uint8Array>;
  /** Checks a signature of {@link sign} locally, with the pinned public key. */
  verify?(entry: Uint8Array, signature: Uint8Array): boolean;
  /** Closes the resources that the wrapper itself has created; the caller's client stays open. */
  close?(): Promise<void>;
}

/** Bytes in a data key. */
export const DATA_KEY_BYTES = 32;
