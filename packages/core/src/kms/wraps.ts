import { createHash, timingSafeEqual } from 'node:crypto';
import { canonicalJson } from '../base/canonical-json.ts';
import { ageMs, type Clock, type Moment, momentOf, type RandomSource } from '../base/clock.ts';
import { isConstant } from '../base/options.ts';
import { channels } from '../contracts/events.ts';
import { DATA_KEY_BYTES, type KeyWrapper, KeyWrapperError, type WrappedKey } from '../contracts/key-wrapper.ts';
import { keyIdOf } from '../formats/derivation.ts';
import type { DataKey } from '../keys/data-key.ts';
import type { EnvelopeKeyCache } from '../keys/envelope-key-cache.ts';
import { ancestorsMacOf, wrapMacOf } from '../ring/certificates.ts';
import {
  base64url,
  type Macs,
  type RingEntry,
  type RingWrap,
  signedBytes,
  timesOf,
  wrapContext,
} from '../ring/document.ts';
import type { KeyTimes } from '../ring/schedule.ts';
import { boundPlaintext, checkedDataKey, overwrite, unboundPlaintext } from './data-key-bytes.ts';
import type { CallOptions, KmsCalls } from './kms-calls.ts';
import { allOf, firstOf } from './several-wrappers.ts';

/** How long one key wrapper is waited for, where somebody waits, before the next one is asked beside it. */
const HEDGE_MS = 500;

const FOREGROUND: CallOptions = Object.freeze({ foreground: true });

/** How long a wrap that the KMS called corrupt is not asked about again, and how many of them are remembered. */
const CORRUPT_FOR_MS = 3_600_000;
const MAX_CORRUPT = 4_096;

/** By what a key wrapper wraps. */
export type WrappedVersion = Pick<WrappedKey, 'provider' | 'keyId'>;

/** A data key and the wrap that it came from. */
export interface Unwrapped {
  readonly held: DataKey;
  readonly wrap: RingWrap | undefined;
}

/** What a KMS may be asked about: a stored entry, or a known key. */
type WrappedEntry = KeyTimes & { readonly id: string; readonly wraps: readonly RingWrap[] };

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
  readonly #clock: Clock;
  /** By {@link #identityOf}: a wrap is corrupt for one entry, not for a key id. Oldest first. */
  readonly #corrupt = new Map<string, Moment>();

  constructor(options: {
    readonly ring: string;
    readonly wrappers: readonly KeyWrapper[];
    readonly quorum: number;
    readonly trustStore: boolean;
    readonly calls: KmsCalls;
    readonly cache: EnvelopeKeyCache;
    readonly random: RandomSource;
    readonly clock: Clock;
  }) {
    this.#ring = options.ring;
    this.#wrappers = options.wrappers;
    this.#quorum = options.quorum;
    this.#trustStore = options.trustStore;
    this.#calls = options.calls;
    this.#cache = options.cache;
    this.#random = options.random;
    this.#clock = options.clock;
  }

  /**
   * Unwraps an entry with the first key wrapper that can.
   * @throws {KeyWrapperError} of every wrapper that was asked; `corrupt`, without a call, when none of ours made any of its
   * wraps, or all of those were found to be corrupt before.
   */
  async unwrap(entry: WrappedEntry, options: CallOptions): Promise<Unwrapped> {
    const { dataKey, wrap } = await this.#unwrapAny(entry, options);
    return { held: this.#cache.take(dataKey), wrap };
  }

  /** An entry that the KMS refused though it may be used: its wraps are no better than corrupt ones. */
  noteCorrupt(entry: WrappedEntry): void {
    for (const wrap of entry.wraps) this.#noteCorrupt(entry, wrap);
  }

  /** Unwraps a key again, at the KMS: only an unwrap that returned the right bytes proves the right to use the key. */
  async prove(key: WrappedEntry, held: DataKey, options: CallOptions): Promise<void> {
    const { dataKey, wrap } = await this.#unwrapAny(key, options);
    const same = held.equals(dataKey);
    dataKey.fill(0);
    if (!same) throw new KeyWrapperError('corrupt', { provider: wrap.provider, operation: 'unwrap' });
  }

  /**
   * Makes a data key with these times, wraps it with every key wrapper, and unwraps every wrap again. `vouch` makes the
   * vouchers of the entry.
   */
  async create(
    times: KeyTimes,
    isTaken: (id: string) => boolean,
    vouch: (entry: KeyTimes & { readonly id: string }) => Macs,
    options: CallOptions = FOREGROUND,
  ): Promise<{ readonly entry: RingEntry; readonly held: DataKey }> {
    const context = wrapContext(this.#ring, times);
    for (;;) {
      const made = await this.#generate(context, options);
      if (isTaken(keyIdOf(made.dataKey).toString('base64url'))) {
        made.dataKey.fill(0);
        continue;
      }
      const held = this.#cache.take(made.dataKey);
      const dataKey = held.copyBytes();
      try {
        const named = { id: held.id, ...times };
        const wraps = await this.#wrapWithAll(dataKey, named, made.firstWrap, options);
        const certified = wraps.map((wrap) => ({ ...wrap, mac: wrapMacOf(this.#ring, wrap, held.authenticator) }));
        const vouchers = vouch(named);
        const ids = [...vouchers.keys()];
        const ancestors = { ids, mac: ancestorsMacOf(this.#ring, ids, held.authenticator) };
        return { entry: { ...named, vouchers, ancestors, revoked: undefined, wraps: certified }, held };
      } catch (error) {
        this.#cache.drop(held.id);
        throw error;
      } finally {
        dataKey.fill(0);
      }
    }
  }

  /** Wraps by key wrappers that have none among those of `key` yet, as far as they could be made. */
  async missingWraps(key: WrappedEntry, held: DataKey, options: CallOptions): Promise<readonly RingWrap[]> {
    const missing = this.#wrappers.filter((wrapper) => !key.wraps.some((wrap) => isOwn(wrapper, wrap)));
    if (missing.length === 0) return [];
    const dataKey = held.copyBytes();
    try {
      const added = await Promise.allSettled(
        missing.map((wrapper) => this.#wrapOne(wrapper, dataKey, key, undefined, options)),
      );
      return added.flatMap((result) =>
        result.status === 'fulfilled'
          ? [{ ...result.value, mac: wrapMacOf(this.#ring, result.value, held.authenticator) }]
          : [],
      );
    } finally {
      dataKey.fill(0);
    }
  }

  /**
   * The version of the KMS key by which a key wrapper wraps today, where none of `known` was made by that one: bytes that
   * are nobody's data key are wrapped, and thrown away.
   * @throws {KeyWrapperError} where none was found, and a key wrapper failed.
   */
  async newVersion(known: readonly WrappedKey[]): Promise<WrappedVersion | undefined> {
    const context = Object.freeze({ 'sealring:ring': this.#ring, 'sealring:purpose': 'key-version' });
    const looks = this.#wrappers.map(async (wrapper) => {
      const own = known.filter((wrap) => isOwn(wrapper, wrap));
      if (wrapper.supports.keyVersions !== true || own.length === 0) return [];
      const { dataKey } = this.#ownDataKey();
      const { provider, keyId } = await this.#wrap(wrapper, dataKey, context, { foreground: false });
      dataKey.fill(0);
      return own.some((wrap) => wrap.keyId === keyId) ? [] : [{ provider, keyId }];
    });
    const seen = await Promise.allSettled(looks);
    const [found] = seen.flatMap((look) => (look.status === 'fulfilled' ? look.value : []));
    const failed = seen.find((look) => look.status === 'rejected');
    if (found === undefined && failed !== undefined) throw failed.reason;
    return found;
  }

  async #generate(
    context: Readonly<Record<string, string>>,
    options: CallOptions,
  ): Promise<{
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
        options,
        (late) => overwrite(late?.dataKey),
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
    options: CallOptions,
  ): Promise<readonly WrappedKey[]> {
    const results = await Promise.allSettled(
      this.#wrappers.map((wrapper, i) =>
        this.#wrapOne(wrapper, dataKey, entry, i === 0 ? firstWrap : undefined, options),
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
  ): Promise<WrappedKey> {
    const context = wrapContext(this.#ring, entry);
    const { provider } = wrapper;
    const wrapped = ready ?? (await this.#wrap(wrapper, dataKey, context, options));
    channels.wrap.publish(() => ({ provider, keyId: entry.id }));
    const signed = await this.#signed(wrapper, entry, wrapped, options);
    const back = await this.#unwrapWith(wrapper, signed, context, options);
    const same = timingSafeEqual(back, dataKey);
    back.fill(0);
    if (!same) throw new KeyWrapperError('corrupt', { provider, operation: 'unwrap' });
    return signed;
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
  #unwrapAny(entry: WrappedEntry, options: CallOptions): Promise<{ dataKey: Uint8Array; wrap: RingWrap }> {
    return this.#calls.retried(() => this.#unwrapWithEach(entry, options), options);
  }

  async #unwrapWithEach(entry: WrappedEntry, options: CallOptions): Promise<{ dataKey: Uint8Array; wrap: RingWrap }> {
    const candidates = this.#wrappers.flatMap((wrapper) =>
      entry.wraps
        .filter((wrap) => isOwn(wrapper, wrap) && !this.#isCorrupt(entry, wrap))
        .map((wrap) => ({ wrapper, wrap })),
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
    entry: WrappedEntry,
    wrap: RingWrap,
    options: CallOptions,
  ): Promise<{ dataKey: Uint8Array; wrap: RingWrap }> {
    try {
      this.#checkOrigin(wrapper, entry, wrap);
      const dataKey = await this.#unwrapWith(wrapper, wrap, wrapContext(this.#ring, entry), options);
      // The id is recomputed: a document cannot give a key another name.
      if (keyIdOf(dataKey).toString('base64url') !== entry.id) {
        dataKey.fill(0);
        throw new KeyWrapperError('corrupt', { provider: wrapper.provider, operation: 'unwrap' });
      }
      channels.unwrap.publish(() => ({ provider: wrapper.provider, keyId: entry.id }));
      return { dataKey, wrap };
    } catch (error) {
      if (error instanceof KeyWrapperError && error.kind === 'corrupt') this.#noteCorrupt(entry, wrap);
      throw error;
    }
  }

  /** A wrap for which this member holds the key was opened before: what the KMS says of it later is another matter. */
  #isCorrupt(entry: WrappedEntry, wrap: RingWrap): boolean {
    if (this.#cache.get(entry.id) !== undefined) return false;
    const since = this.#corrupt.get(this.#identityOf(entry, wrap));
    return since !== undefined && ageMs(since, momentOf(this.#clock)) < CORRUPT_FOR_MS;
  }

  #noteCorrupt(entry: WrappedEntry, wrap: RingWrap): void {
    this.#corrupt.set(this.#identityOf(entry, wrap), momentOf(this.#clock));
    for (const oldest of this.#corrupt.keys()) {
      if (this.#corrupt.size <= MAX_CORRUPT) return;
      this.#corrupt.delete(oldest);
    }
  }

  #identityOf(entry: WrappedEntry, { provider, keyId, wrapped, signature }: RingWrap): string {
    const signed = signature === undefined ? null : base64url(signature);
    const facts = [entry.id, ...timesOf(entry), provider, keyId, base64url(wrapped), signed];
    return createHash('sha256').update(canonicalJson(facts)).digest('base64url');
  }

  /** A wrap that anybody with a public key could have made needs the signature of the KMS, checked before any call. */
  #checkOrigin(wrapper: KeyWrapper, entry: WrappedEntry, wrap: RingWrap): void {
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
      overwrite,
    );
    if (wrapper.supports.context) return checkedDataKey(plaintext, provider, 'unwrap');
    return unboundPlaintext(plaintext, context, provider);
  }
}

/** Whether an entry lacks a wrap of one of the wrappers. */
export function lacksWraps(entry: { readonly wraps: readonly RingWrap[] }, wrappers: readonly KeyWrapper[]): boolean {
  return wrappers.some((wrapper) => !entry.wraps.some((wrap) => isOwn(wrapper, wrap)));
}

function isOwn(wrapper: KeyWrapper, wrap: WrappedKey): boolean {
  return wrap.provider === wrapper.provider && wrapper.owns?.(wrap) !== false;
}

function noWrapOfOurs(wrappers: readonly KeyWrapper[]): { provider: string; operation: 'unwrap'; hint: string } {
  const provider = wrappers.map((wrapper) => wrapper.provider).join(' or ');
  return { provider, operation: 'unwrap', hint: 'the ring holds no wrap by this key wrapper' };
}
