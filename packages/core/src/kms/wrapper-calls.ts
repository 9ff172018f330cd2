import { type KeyWrapper, KeyWrapperError, type WrappedKey } from '../contracts/key-wrapper.ts';
import { type RingWrap, signedBytes, wrapContext } from '../ring/document.ts';
import type { KeyTimes } from '../ring/schedule.ts';
import { boundPlaintext, checkedDataKey, overwrite, unboundPlaintext } from './data-key-bytes.ts';
import { type CallOptions, type KmsCalls, LastAnswer } from './kms-calls.ts';

/** The context of a wrap. */
export type Context = Readonly<Record<string, string>>;

/** A new data key, with its wrap if the service made both in one call. */
export interface Generated {
  readonly dataKey: Uint8Array;
  readonly firstWrap: WrappedKey | undefined;
}

/**
 * The calls of one key wrapper. If its service binds no context, the plaintext contains a hash of the context; if an
 * unwrap does not authenticate the origin, a signature does.
 */
export class WrapperCalls {
  readonly wrapper: KeyWrapper;
  readonly lastAnswer: LastAnswer = new LastAnswer();
  readonly #ring: string;
  readonly #trustStore: boolean;
  readonly #calls: KmsCalls;

  constructor(
    wrapper: KeyWrapper,
    options: { readonly ring: string; readonly trustStore: boolean; readonly calls: KmsCalls },
  ) {
    this.wrapper = wrapper;
    this.#ring = options.ring;
    this.#trustStore = options.trustStore;
    this.#calls = options.calls;
  }

  /** Whether this key wrapper made a wrapped key. */
  owns(wrap: WrappedKey): boolean {
    return isOwn(this.wrapper, wrap);
  }

  /**
   * A data key and its first wrap in one call; undefined if the service cannot generate a data key or binds no context.
   * The caller must then generate a data key itself.
   * @throws {KeyWrapperError}
   */
  async generate(
    context: Context,
    options: CallOptions,
  ): Promise<{ readonly dataKey: Uint8Array; readonly firstWrap: WrappedKey } | undefined> {
    const { wrapper } = this;
    if (wrapper.generate === undefined || !wrapper.supports.context) return undefined;
    const { provider } = wrapper;
    const generate = wrapper.generate.bind(wrapper);
    const made = await this.#calls.call(
      { provider, operation: 'generate' },
      (signal) => generate({ context, signal, onServiceDate: this.#calls.onServiceDate }),
      options,
      (late) => overwrite(late?.dataKey),
      this.lastAnswer,
    );
    return { dataKey: checkedDataKey(made.dataKey, provider, 'generate'), firstWrap: made.wrapped };
  }

  /** @throws {KeyWrapperError} */
  async wrap(dataKey: Uint8Array, context: Context, options: CallOptions): Promise<WrappedKey> {
    const { wrapper } = this;
    const { provider, supports } = wrapper;
    const plaintext = supports.context ? dataKey : boundPlaintext(dataKey, context);
    try {
      return await this.#calls.call(
        { provider, operation: 'wrap' },
        (signal) => wrapper.wrap(plaintext, { context, signal, onServiceDate: this.#calls.onServiceDate }),
        options,
        undefined,
        this.lastAnswer,
      );
    } finally {
      if (plaintext !== dataKey) plaintext.fill(0);
    }
  }

  /**
   * Returns `wrapped`, with a signature by the KMS if an unwrap does not authenticate its origin.
   * @throws {KeyWrapperError}
   */
  async signed(
    entry: KeyTimes & { readonly id: string },
    wrapped: WrappedKey,
    options: CallOptions,
  ): Promise<WrappedKey> {
    const { wrapper } = this;
    if (wrapper.supports.authenticated || wrapper.sign === undefined) return wrapped;
    const sign = wrapper.sign.bind(wrapper);
    const signature = await this.#calls.call(
      { provider: wrapper.provider, operation: 'sign' },
      (signal) => sign(signedBytes(this.#ring, entry, wrapped), { signal }),
      options,
      undefined,
      this.lastAnswer,
    );
    return { ...wrapped, signature };
  }

  /** The data key of a wrap, which the caller overwrites. @throws {KeyWrapperError} */
  async unwrap(wrap: WrappedKey, context: Context, options: CallOptions): Promise<Uint8Array> {
    const { wrapper } = this;
    const { provider } = wrapper;
    const plaintext = await this.#calls.call(
      { provider, operation: 'unwrap' },
      (signal) => wrapper.unwrap(wrap, { context, signal, onServiceDate: this.#calls.onServiceDate }),
      options,
      overwrite,
      this.lastAnswer,
    );
    if (wrapper.supports.context) return checkedDataKey(plaintext, provider, 'unwrap');
    return unboundPlaintext(plaintext, context, provider);
  }

  /** Like {@link unwrap}, for a wrap of a document: checks its signature first, if needed. @throws {KeyWrapperError} */
  async unwrapStored(
    entry: KeyTimes & { readonly id: string },
    wrap: RingWrap,
    options: CallOptions,
  ): Promise<Uint8Array> {
    this.#checkOrigin(entry, wrap);
    return this.unwrap(wrap, wrapContext(this.#ring, entry), options);
  }

  /** Checks, before any call, that a wrap that could have been made with a public key has the signature of the KMS. */
  #checkOrigin(entry: KeyTimes & { readonly id: string }, wrap: RingWrap): void {
    const { wrapper } = this;
    if (wrapper.supports.authenticated || this.#trustStore) return;
    const isSigned =
      wrap.signature !== undefined && wrapper.verify?.(signedBytes(this.#ring, entry, wrap), wrap.signature) === true;
    if (!isSigned) {
      throw new KeyWrapperError('corrupt', {
        provider: wrapper.provider,
        operation: 'unwrap',
        hint: 'the wrap carries no valid signature',
      });
    }
  }
}

/** Whether a key wrapper made a wrapped key. */
export function isOwn(wrapper: KeyWrapper, wrap: WrappedKey): boolean {
  return wrap.provider === wrapper.provider && wrapper.owns?.(wrap) !== false;
}
