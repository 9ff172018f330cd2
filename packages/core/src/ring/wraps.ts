import { timingSafeEqual } from 'node:crypto';
import type { RandomSource } from '../clock.ts';
import { channels } from '../events.ts';
import { keyIdOf } from '../formats/derivation.ts';
import { type EnvelopeKeyCache, HeldKey, wrapIdentity } from '../key-cache.ts';
import { DATA_KEY_BYTES, type KeyWrapper, KeyWrapperError, type WrappedKey } from '../key-wrapper.ts';
import { isConstant } from '../options.ts';
import { boundPlaintext, checkedDataKey, unboundPlaintext } from './data-key-bytes.ts';
import { type RingEntry, type RingWrap, sameWrap, signedBytes, wrapContext } from './document.ts';
import type { CallOptions, KmsCalls } from './kms-calls.ts';
import type { KeyTimes } from './schedule.ts';
import { allOf, firstOf } from './several-wrappers.ts';

/** How long one key wrapper is waited for, where somebody waits, before the next one is asked beside it. */
const HEDGE_MS = 500;

const FOREGROUND: CallOptions = Object.freeze({ foreground: true });

/** A new key, wrapped and proved, not yet published. */
export interface NewKey {
  readonly entry: RingEntry;
  readonly held: HeldKey;
}

/**
 * Data keys and the KMS: wraps new ones with every key wrapper, unwraps those of a document with any of them. What an
 * unwrap returned is believed only after its id and its context were recomputed.
 */
export class KeyWraps {
  readonly #ring: string;
  readonly #wrappers: readonly KeyWrapper[];
  readonly #quorum: number;
  readonly #trustStore: boolean;
  readonly #calls: KmsCalls;
  readonly #cache: EnvelopeKeyCache;
  readonly #random: RandomSource;
  readonly #contexts = new WeakMap<RingEntry, Readonly<Record<string, string>>>();
  readonly #identities = new WeakMap<RingEntry, readonly string[]>();

  constructor(options: {
    readonly ring: string;
    readonly wrappers: readonly KeyWrapper[];
    readonly quorum: number;
    readonly trustStore: boolean;
    readonly calls: KmsCalls;
    readonly cache: EnvelopeKeyCache;
    readonly random: RandomSource;
  }) {
    this.#ring = options.ring;
    this.#wrappers = options.wrappers;
    this.#quorum = options.quorum;
    this.#trustStore = options.trustStore;
    this.#calls = options.calls;
    this.#cache = options.cache;
    this.#random = options.random;
  }

  /** The key of an entry if it was unwrapped before: no call. */
  cached(entry: RingEntry): HeldKey | undefined {
    for (const identity of this.#identitiesOf(entry)) {
      const held = this.#cache.get(identity);
      // The same ciphertext under another key id is another entry: its id was checked against these bytes, not this.
      if (held !== undefined && held.id === entry.id) return held;
    }
    return undefined;
  }

  /**
   * Unwraps an entry with the first key wrapper that can, and remembers it.
   * @throws {KeyWrapperError} of every wrapper that was asked; `corrupt` when none of ours made any of its wraps.
   */
  async unwrap(entry: RingEntry, options: CallOptions): Promise<HeldKey> {
    const known = this.cached(entry);
    if (known !== undefined) return known;
    const { dataKey, wrap } = await this.#unwrapAny(entry, options);
    const held = new HeldKey(dataKey, this.#ring);
    dataKey.fill(0);
    this.#cache.set(wrapIdentity(wrap, this.#contextOf(entry)), held, entry.opensUntil);
    return held;
  }

  #contextOf(entry: RingEntry): Readonly<Record<string, string>> {
    let context = this.#contexts.get(entry);
    if (context === undefined) {
      context = wrapContext(this.#ring, entry);
      this.#contexts.set(entry, context);
    }
    return context;
  }

  #identitiesOf(entry: RingEntry): readonly string[] {
    let identities = this.#identities.get(entry);
    if (identities === undefined) {
      const context = this.#contextOf(entry);
      identities = entry.wraps.map((wrap) => wrapIdentity(wrap, context));
      this.#identities.set(entry, identities);
    }
    return identities;
  }

  /** Unwraps an entry again, at the KMS: only an unwrap that returned the right bytes proves the right to use the key. */
  async prove(entry: RingEntry, held: HeldKey, options: CallOptions): Promise<void> {
    const { dataKey, wrap } = await this.#unwrapAny(entry, options);
    const same = held.equals(dataKey);
    dataKey.fill(0);
    if (!same) throw new KeyWrapperError('corrupt', { provider: wrap.provider, operation: 'unwrap' });
  }

  /** Makes a data key with these times, wraps it with every key wrapper, and unwraps every wrap again. */
  async create(times: KeyTimes, isTaken: (id: string) => boolean): Promise<NewKey> {
    const context = wrapContext(this.#ring, times);
    for (;;) {
      const { dataKey, firstWrap } = await this.#generate(context);
      try {
        const id = keyIdOf(dataKey).toString('base64url');
        if (isTaken(id)) continue;
        const wraps = await this.#wrapWithAll(dataKey, { id, ...times }, firstWrap);
        const held = new HeldKey(dataKey, this.#ring);
        this.#cache.set(wrapIdentity(wraps[0] as RingWrap, context), held, times.opensUntil);
        return { entry: { id, ...times, revoked: undefined, wraps, unknown: {} }, held };
      } finally {
        dataKey.fill(0);
      }
    }
  }

  /** Wraps of an entry by key wrappers that have none in it yet: the entry with what could be added. */
  async addMissing(entry: RingEntry, held: HeldKey, options: CallOptions): Promise<RingEntry> {
    const missing = this.#wrappers.filter((wrapper) => !entry.wraps.some((wrap) => isOwn(wrapper, wrap)));
    if (missing.length === 0) return entry;
    const dataKey = held.copyDataKey();
    try {
      const added = await Promise.allSettled(
        missing.map((wrapper) => this.#wrapOne(wrapper, dataKey, entry, undefined, options)),
      );
      const wraps = added.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
      return wraps.length === 0 ? entry : { ...entry, wraps: [...entry.wraps, ...wraps] };
    } finally {
      dataKey.fill(0);
    }
  }

  async #generate(context: Readonly<Record<string, string>>): Promise<{
    readonly dataKey: Uint8Array;
    readonly firstWrap: WrappedKey | undefined;
  }> {
    const [first] = this.#wrappers as readonly [KeyWrapper];
    // A service without context wraps our own bytes (data key ‖ hash), which it cannot generate.
    if (first.generate === undefined || !first.supports.context) return this.#ownDataKey();
    const { provider } = first;
    const generate = first.generate.bind(first);
    try {
      const made = await this.#calls.call(
        { provider, operation: 'generate' },
        (signal) => generate({ context, signal, onServiceDate: this.#calls.onServiceDate }),
        FOREGROUND,
      );
      return { dataKey: checkedDataKey(made.dataKey, provider, 'generate'), firstWrap: made.wrapped };
    } catch (error) {
      if (this.#quorum === this.#wrappers.length) throw error;
      // The others may be enough.
      return this.#ownDataKey();
    }
  }

  #ownDataKey(): { readonly dataKey: Uint8Array; readonly firstWrap: undefined } {
    const dataKey = new Uint8Array(DATA_KEY_BYTES);
    this.#random(dataKey);
    if (isConstant(dataKey)) throw new RangeError('the random source filled a data key with one and the same byte');
    return { dataKey, firstWrap: undefined };
  }

  async #wrapWithAll(
    dataKey: Uint8Array,
    entry: KeyTimes & { readonly id: string },
    firstWrap: WrappedKey | undefined,
  ): Promise<readonly RingWrap[]> {
    const results = await Promise.allSettled(
      this.#wrappers.map((wrapper, i) =>
        this.#wrapOne(wrapper, dataKey, entry, i === 0 ? firstWrap : undefined, FOREGROUND),
      ),
    );
    const wraps = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
    if (wraps.length < this.#quorum) {
      throw allOf(results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : [])));
    }
    return wraps;
  }

  /** Wraps, signs where an unwrap proves no origin, and proves the wrap by unwrapping it. */
  async #wrapOne(
    wrapper: KeyWrapper,
    dataKey: Uint8Array,
    entry: KeyTimes & { readonly id: string },
    ready: WrappedKey | undefined,
    options: CallOptions,
  ): Promise<RingWrap> {
    const context = wrapContext(this.#ring, entry);
    const { provider } = wrapper;
    const wrapped = ready ?? (await this.#wrap(wrapper, dataKey, context, options));
    channels.wrap.publish(() => ({ provider, keyId: entry.id }));
    const signed = await this.#signed(wrapper, entry, wrapped, options);
    const back = await this.#unwrapWith(wrapper, signed, context, options);
    const same = timingSafeEqual(back, dataKey);
    back.fill(0);
    if (!same) throw new KeyWrapperError('corrupt', { provider, operation: 'unwrap' });
    return { ...signed, unknown: {} };
  }

  async #wrap(
    wrapper: KeyWrapper,
    dataKey: Uint8Array,
    context: Readonly<Record<string, string>>,
    options: CallOptions,
  ): Promise<WrappedKey> {
    const { provider, supports } = wrapper;
    const plaintext = supports.context ? dataKey : boundPlaintext(dataKey, context);
    try {
      return await this.#calls.call(
        { provider, operation: 'wrap' },
        (signal) => wrapper.wrap(plaintext, { context, signal, onServiceDate: this.#calls.onServiceDate }),
        options,
      );
    } finally {
      if (plaintext !== dataKey) plaintext.fill(0);
    }
  }

  async #signed(
    wrapper: KeyWrapper,
    entry: KeyTimes & { readonly id: string },
    wrapped: WrappedKey,
    options: CallOptions,
  ): Promise<WrappedKey> {
    if (wrapper.supports.authenticated || wrapper.sign === undefined) return wrapped;
    const sign = wrapper.sign.bind(wrapper);
    const signature = await this.#calls.call(
      { provider: wrapper.provider, operation: 'sign' },
      (signal) => sign(signedBytes(this.#ring, entry, wrapped), { signal }),
      options,
    );
    return { ...wrapped, signature };
  }

  /**
   * Unwraps with the first key wrapper that can. Where somebody waits, the next one is asked as soon as one has failed or
   * taken its time, and all of them again before this fails: one service that hangs must not cost a start its retries.
   */
  async #unwrapAny(entry: RingEntry, options: CallOptions): Promise<{ dataKey: Uint8Array; wrap: RingWrap }> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#unwrapWithEach(entry, options);
      } catch (error) {
        if (!(await this.#calls.waitToRetry(error, attempt, options))) throw error;
      }
    }
  }

  async #unwrapWithEach(entry: RingEntry, options: CallOptions): Promise<{ dataKey: Uint8Array; wrap: RingWrap }> {
    const candidates = this.#wrappers.flatMap((wrapper) =>
      entry.wraps.filter((wrap) => isOwn(wrapper, wrap)).map((wrap) => ({ wrapper, wrap })),
    );
    if (candidates.length === 0) throw new KeyWrapperError('corrupt', noWrapOfOurs(this.#wrappers));
    const asked: Promise<{ dataKey: Uint8Array; wrap: RingWrap }>[] = [];
    const outcome = { isGood: false };
    const once = { ...options, foreground: false };
    for (const { wrapper, wrap } of candidates) {
      const answer = this.#unwrapEntry(wrapper, entry, wrap, once);
      asked.push(answer);
      const settled = answer.then(
        () => {
          outcome.isGood = true;
        },
        () => undefined,
      );
      await (options.foreground ? this.#calls.pauseOr(HEDGE_MS, settled) : settled);
      if (outcome.isGood) break;
    }
    return firstOf(asked);
  }

  async #unwrapEntry(
    wrapper: KeyWrapper,
    entry: RingEntry,
    wrap: RingWrap,
    options: CallOptions,
  ): Promise<{ dataKey: Uint8Array; wrap: RingWrap }> {
    this.#checkOrigin(wrapper, entry, wrap);
    const dataKey = await this.#unwrapWith(wrapper, wrap, this.#contextOf(entry), options);
    // The id is recomputed: a document cannot give a key another name.
    if (keyIdOf(dataKey).toString('base64url') !== entry.id) {
      dataKey.fill(0);
      throw new KeyWrapperError('corrupt', { provider: wrapper.provider, operation: 'unwrap' });
    }
    channels.unwrap.publish(() => ({ provider: wrapper.provider, keyId: entry.id }));
    return { dataKey, wrap };
  }

  /** A wrap that anybody with a public key could have made needs the signature of the KMS, checked before any call. */
  #checkOrigin(wrapper: KeyWrapper, entry: RingEntry, wrap: RingWrap): void {
    if (wrapper.supports.authenticated || this.#trustStore) return;
    const ok =
      wrap.signature !== undefined && wrapper.verify?.(signedBytes(this.#ring, entry, wrap), wrap.signature) === true;
    if (!ok) {
      throw new KeyWrapperError('corrupt', {
        provider: wrapper.provider,
        operation: 'unwrap',
        hint: 'the wrap carries no valid signature',
      });
    }
  }

  async #unwrapWith(
    wrapper: KeyWrapper,
    wrap: WrappedKey,
    context: Readonly<Record<string, string>>,
    options: CallOptions,
  ): Promise<Uint8Array> {
    const { provider } = wrapper;
    const plaintext = await this.#calls.call(
      { provider, operation: 'unwrap' },
      (signal) => wrapper.unwrap(wrap, { context, signal, onServiceDate: this.#calls.onServiceDate }),
      options,
    );
    if (wrapper.supports.context) return checkedDataKey(plaintext, provider, 'unwrap');
    return unboundPlaintext(plaintext, context, provider);
  }
}

/** Whether an entry lacks a wrap of one of the wrappers. */
export function lacksWraps(entry: RingEntry, wrappers: readonly KeyWrapper[]): boolean {
  return wrappers.some((wrapper) => !entry.wraps.some((wrap) => isOwn(wrapper, wrap)));
}

function isOwn(wrapper: KeyWrapper, wrap: WrappedKey): boolean {
  return wrap.provider === wrapper.provider && wrapper.owns?.(wrap) !== false;
}

/** Both entries' wraps, each once. */
export function unionOfWraps(a: readonly RingWrap[], b: readonly RingWrap[]): readonly RingWrap[] {
  return [...a, ...b.filter((wrap) => !a.some((other) => sameWrap(other, wrap)))];
}

function noWrapOfOurs(wrappers: readonly KeyWrapper[]): { provider: string; operation: 'unwrap'; hint: string } {
  const provider = wrappers.map((wrapper) => wrapper.provider).join(' or ');
  return { provider, operation: 'unwrap', hint: 'the ring holds no wrap by this key wrapper' };
}
