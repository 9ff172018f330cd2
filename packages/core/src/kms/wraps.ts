import { timingSafeEqual } from 'node:crypto';
import { type Clock, type RandomSource } from '../base/clock.ts';
import { channels } from '../contracts/events.ts';
import { type KeyWrapper, KeyWrapperError, type WrappedKey } from '../contracts/key-wrapper.ts';
import { keyIdOf } from '../formats/derivation.ts';
import type { DataKey } from '../keys/data-key.ts';
import type { EnvelopeKeyCache } from '../keys/envelope-key-cache.ts';
import { ancestorsMacOf, wrapMacOf } from '../ring/certificates.ts';
import { type Macs, type RingEntry, type RingWrap, wrapContext } from '../ring/document.ts';
import type { KeyTimes } from '../ring/schedule.ts';
import { CorruptWraps, isCorrupt, type WrappedEntry } from './corrupt-wraps.ts';
import { randomDataKey } from './data-key-bytes.ts';
import type { CallOptions, KmsCalls } from './kms-calls.ts';
import { allOf, failuresIn, firstOf, lastFailureOf, noWrapOfOurs } from './several-wrappers.ts';
import { type Context, type Generated, WrapperCalls } from './wrapper-calls.ts';

/** How long one key wrapper may take before the next one is called in parallel, if a caller waits. */
const HEDGE_MS = 500;

const FOREGROUND: CallOptions = Object.freeze({ foreground: true });

/** The KMS key version of a wrap. */
export type WrappedVersion = Pick<WrappedKey, 'provider' | 'keyId'>;

/** A data key and the wrap that it came from. */
export interface Unwrapped {
  readonly held: DataKey;
  readonly wrap: RingWrap | undefined;
}

/**
 * Wraps new data keys with every key wrapper, and unwraps the keys of a document with any of them. The result of an
 * unwrap is trusted only after its id and its context are computed again.
 */
export class KeyWraps {
  readonly #ring: string;
  readonly #wrappers: readonly WrapperCalls[];
  readonly #quorum: number;
  readonly #calls: KmsCalls;
  readonly #cache: EnvelopeKeyCache;
  readonly #random: RandomSource;
  readonly #corrupt: CorruptWraps;

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
    this.#wrappers = options.wrappers.map((wrapper) => new WrapperCalls(wrapper, options));
    this.#quorum = options.quorum;
    this.#calls = options.calls;
    this.#cache = options.cache;
    this.#random = options.random;
    this.#corrupt = new CorruptWraps(options.clock);
  }

  /**
   * Unwraps an entry with the first key wrapper that can.
   * @throws {KeyWrapperError} with the failures of all wrappers that were called; `corrupt`, without a call, if no key
   * wrapper of this member made any of the entry's wraps, or if all of those wraps are known to be corrupt.
   */
  async unwrap(entry: WrappedEntry, options: CallOptions): Promise<Unwrapped> {
    const { dataKey, wrap } = await this.#unwrapAny(entry, options);
    return { held: this.#cache.take(dataKey), wrap };
  }

  /** The last failures of the key wrappers, as one error with their attempts; `otherwise` if none is known. */
  lastFailure(otherwise: unknown): unknown {
    return lastFailureOf(this.#wrappers, otherwise);
  }

  /**
   * Treats the wraps of an entry that the KMS refused as corrupt, because the same key wrapper unwrapped `other`. Returns
   * whether the entry has no wrap left that may be unwrapped.
   */
  noteRefused(entry: WrappedEntry, other: RingWrap): boolean {
    const ownerOf = (wrap: RingWrap): WrapperCalls | undefined => this.#wrappers.find((wrapper) => wrapper.owns(wrap));
    const own = entry.wraps.filter((wrap) => ownerOf(wrap) !== undefined);
    for (const wrap of own) if (ownerOf(wrap)?.owns(other) === true) this.#corrupt.note(entry, wrap);
    return own.every((wrap) => this.#corrupt.has(entry, wrap));
  }

  /** Has the KMS unwrap a key again: only an unwrap to the same bytes shows that the key may be used. Returns the wrap. */
  async check(key: WrappedEntry, held: DataKey, options: CallOptions): Promise<RingWrap> {
    const { dataKey, wrap } = await this.#unwrapAny(key, options);
    const same = held.equals(dataKey);
    dataKey.fill(0);
    if (!same) throw new KeyWrapperError('corrupt', { provider: wrap.provider, operation: 'unwrap' });
    return wrap;
  }

  /**
   * Creates a data key with these times, wraps it with every key wrapper, and unwraps every wrap again. `vouch` creates
   * the vouchers of the entry.
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

  /** New wraps, by the key wrappers that have not wrapped `key` yet. Wraps that could not be made are left out. */
  async missingWraps(key: WrappedEntry, held: DataKey, options: CallOptions): Promise<readonly RingWrap[]> {
    const missing = this.#wrappers.filter((wrapper) => !key.wraps.some((wrap) => wrapper.owns(wrap)));
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
   * The version of the KMS key with which a key wrapper wraps now, unless one of `known` was made with it: random bytes
   * that are not a data key are wrapped, and the result is discarded.
   * @throws {KeyWrapperError} if no new version was found and a key wrapper failed.
   */
  async newVersion(known: readonly WrappedKey[]): Promise<WrappedVersion | undefined> {
    const context: Context = Object.freeze({ 'sealring:ring': this.#ring, 'sealring:purpose': 'key-version' });
    const looks = this.#wrappers.map(async (wrapper) => {
      const own = known.filter((wrap) => wrapper.owns(wrap));
      if (wrapper.wrapper.supports.keyVersions !== true || own.length === 0) return [];
      const dataKey = randomDataKey(this.#random);
      const { provider, keyId } = await wrapper.wrap(dataKey, context, {});
      dataKey.fill(0);
      return own.some((wrap) => wrap.keyId === keyId) ? [] : [{ provider, keyId }];
    });
    const seen = await Promise.allSettled(looks);
    const [found] = seen.flatMap((look) => (look.status === 'fulfilled' ? look.value : []));
    const failed = seen.find((look) => look.status === 'rejected');
    if (found === undefined && failed !== undefined) throw failed.reason;
    return found;
  }

  async #generate(context: Context, options: CallOptions): Promise<Generated> {
    const [first, ...others] = this.#wrappers as readonly [WrapperCalls, ...WrapperCalls[]];
    const made = first.generate(context, options);
    const own = (): Generated => ({ dataKey: randomDataKey(this.#random), firstWrap: undefined });
    // If this call fails, the other key wrappers are enough for the quorum, and are called next.
    if (this.#quorum < this.#wrappers.length) return (await made.catch(() => undefined)) ?? own();
    const asked = this.#askWhile(made, others, context, options);
    try {
      return (await made) ?? own();
    } catch (error) {
      throw allOf([error, ...(await asked)]);
    }
  }

  /** Calls the other key wrappers if the first is slow, and returns their failures: the error must name all of them. */
  async #askWhile(
    one: Promise<unknown>,
    others: readonly WrapperCalls[],
    context: Context,
    options: CallOptions,
  ): Promise<readonly unknown[]> {
    if (others.length === 0 || options.foreground !== true || !(await this.#calls.outlasts(one, HEDGE_MS))) return [];
    // These bytes never become a key of a ring: the results of the other wrappers are discarded.
    const dataKey = randomDataKey(this.#random);
    const asked = others.map((other) => other.wrap(dataKey, context, { ...options, foreground: false }));
    return failuresIn(await Promise.allSettled(asked));
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
    if (wraps.length < this.#quorum) throw allOf(failuresIn(results));
    return wraps;
  }

  /** Wraps a data key, signs the wrap if an unwrap does not authenticate its origin, and checks it by unwrapping it. */
  async #wrapOne(
    wrapper: WrapperCalls,
    dataKey: Uint8Array,
    entry: KeyTimes & { readonly id: string },
    ready: WrappedKey | undefined,
    options: CallOptions,
  ): Promise<WrappedKey> {
    const context = wrapContext(this.#ring, entry);
    const { provider } = wrapper.wrapper;
    const wrapped = ready ?? (await wrapper.wrap(dataKey, context, options));
    channels.wrap.publish(() => ({ ringName: this.#ring, provider, keyId: entry.id }));
    const signed = await wrapper.signed(entry, wrapped, options);
    const back = await wrapper.unwrap(signed, context, options);
    const same = timingSafeEqual(back, dataKey);
    back.fill(0);
    if (!same) throw new KeyWrapperError('corrupt', { provider, operation: 'unwrap' });
    return signed;
  }

  /**
   * Unwraps with the first key wrapper that can. If a caller waits, the next one is called as soon as one has failed or
   * taken too long, and this method fails only after all of them were retried: a service that hangs must not use up the
   * retries of a start.
   */
  #unwrapAny(entry: WrappedEntry, options: CallOptions): Promise<{ dataKey: Uint8Array; wrap: RingWrap }> {
    return this.#calls.retried(() => this.#unwrapWithEach(entry, options), options);
  }

  async #unwrapWithEach(entry: WrappedEntry, options: CallOptions): Promise<{ dataKey: Uint8Array; wrap: RingWrap }> {
    const candidates = this.#wrappers.flatMap((wrapper) =>
      entry.wraps
        .filter((wrap) => wrapper.owns(wrap) && !this.#isCorrupt(entry, wrap))
        .map((wrap) => ({ wrapper, wrap })),
    );
    if (candidates.length === 0) throw new KeyWrapperError('corrupt', noWrapOfOurs(this.#wrappers));
    const asked: Promise<{ dataKey: Uint8Array; wrap: RingWrap }>[] = [];
    const outcome = { isGood: false };
    const once = { ...options, foreground: false, hedged: false };
    for (const { wrapper, wrap } of candidates) {
      const answer = this.#unwrapEntry(wrapper, entry, wrap, once);
      asked.push(answer);
      const settled = answer.then(
        () => {
          outcome.isGood = true;
        },
        () => undefined,
      );
      await ((options.hedged ?? options.foreground) === true ? this.#calls.pauseOr(HEDGE_MS, settled) : settled);
      if (outcome.isGood) break;
    }
    return firstOf(asked);
  }

  async #unwrapEntry(
    wrapper: WrapperCalls,
    entry: WrappedEntry,
    wrap: RingWrap,
    options: CallOptions,
  ): Promise<{ dataKey: Uint8Array; wrap: RingWrap }> {
    try {
      const dataKey = await wrapper.unwrapStored(entry, wrap, options);
      // The id is computed again: a document cannot give a key a different id.
      if (keyIdOf(dataKey).toString('base64url') !== entry.id) {
        dataKey.fill(0);
        throw new KeyWrapperError('corrupt', { provider: wrap.provider, operation: 'unwrap' });
      }
      channels.unwrap.publish(() => ({ ringName: this.#ring, provider: wrap.provider, keyId: entry.id }));
      return { dataKey, wrap };
    } catch (error) {
      if (isCorrupt(error)) this.#corrupt.note(entry, wrap);
      throw error;
    }
  }

  /** A wrap whose key this member holds was unwrapped before: a later failure at the KMS does not make it corrupt. */
  #isCorrupt(entry: WrappedEntry, wrap: RingWrap): boolean {
    return this.#cache.get(entry.id) === undefined && this.#corrupt.has(entry, wrap);
  }
}
