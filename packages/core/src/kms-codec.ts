import { LRUCache } from 'lru-cache';
import { type Moment, pause } from './clock.ts';
import { Closing } from './closing.ts';
import { InvalidRequestState, type RequestStateCodec } from './codec.ts';
import { type CodecHealth, healthOf } from './codec-health.ts';
import { CodecClosedError } from './errors.ts';
import { channels } from './events.ts';
import { keyIdText } from './formats/sealring.ts';
import { EnvelopeKeyCache } from './key-cache.ts';
import { type CheckedOptions, checkOptions, type KmsCodecOptions } from './kms-codec-options.ts';
import { createKeeper } from './member/create-keeper.ts';
import type { RingKeeper } from './member/keeper.ts';
import { label, refuseUnknownOptions, show } from './options.ts';
import type { KeyState } from './ring/schedule.ts';
import { isUsable } from './ring/snapshot.ts';
import {
  formatOf,
  type KeySource,
  PythonTokens,
  SealringTokens,
  type TokenFormat,
  type TokenFormatName,
} from './token-formats.ts';
import { createSealingState, type SealingState } from './token-sealer.ts';

/** Longest wait of {@link KmsCodec.prepare}. */
const PREPARE_MS = 2_000;
/** Codecs of {@link KmsCodec.for} that are remembered; purposes are names in a program, not data. */
const MAX_PURPOSES = 256;

/** What a token says of itself, and what the ring says of its key. */
export interface TokenFacts {
  /** `sealring` or `python`. */
  readonly format: string;
  /** As in the ring document; empty for a fingerprint that no key of the ring has. */
  readonly keyId: string;
  /** Of the key, now. */
  readonly state: KeyState | 'unknown';
  /** Whether the key opens only: a successor seals. */
  readonly stale: boolean;
}

/** A codec over a ring: all that a boundary needs of it. */
export interface RingTokenCodec extends RequestStateCodec {
  /**
   * How long a key opens after it has stopped sealing, seconds; a boundary with a longer time to live refuses the codec.
   * The codec does not look at the age of a token: the time to live of the boundary bounds it, or else the end of its key.
   */
  readonly tokenLifetimeSeconds: number;
  /** That of the ring's policy. A single-use store must remember a token for at least so much longer than it lives. */
  readonly clockSkewSeconds: number;
  /**
   * Does what may be awaited before a synchronous `unseal`: reads the ring (at most 2 s, at most once per missRefresh)
   * when this member's view is old or does not know the token's key. Never rejects for a failed read: `unseal` decides.
   * Undefined where there is nothing to wait for.
   */
  prepare(token?: string, options?: { readonly signal?: AbortSignal }): Promise<void> | undefined;
  /** What a token says of itself and what the ring says of its key. No secrets, and no authentication. */
  inspect(token: string): TokenFacts;
  /** How this member stands, without asking anybody. */
  health(): CodecHealth;
}

/** A codec whose data keys are wrapped by a KMS and shared through a ring. */
export interface KmsCodec extends RingTokenCodec, AsyncDisposable {
  /**
   * A codec over the same ring with token keys of its own, for data of yours: its tokens and those of this codec never
   * open each other. Always in the native format.
   * @throws {TypeError | RangeError} unless `purpose` is 1 to 64 of `[A-Za-z0-9._-]`.
   */
  for(purpose: string): RingTokenCodec;
  /** Reads the ring now. @throws {RingStoreError | KeyWrapperError} */
  refresh(): Promise<void>;
  /**
   * Publishes a successor of the sealing key. It seals once every member can have it: after the propagation time, or
   * with `emergency` after refreshEvery + backoffCap + clockSkew.
   * @throws {RingStoreError | KeyWrapperError} also `too-large`, from 48 keys on: there must be room for revocations.
   */
  rotate(options?: { readonly emergency?: boolean }): Promise<void>;
  /**
   * Revokes a key, and makes a successor active in the same write where there is room and the KMS answers; else as soon
   * as it can be. Neither the KMS nor this machine's clock can refuse it.
   * @throws {RangeError} when the ring has no such key.
   * @throws {RingStoreError} when it could not be written: then nothing is revoked.
   */
  revoke(keyId: string): Promise<void>;
  /**
   * Revokes every key that may have been created at `time` or before it by any clock of the fleet, likewise: those with
   * `created` − clockSkew ≤ `time`.
   */
  revokeAllBefore(time: Date): Promise<void>;
  /**
   * Stops timers and calls and overwrites the data keys; KeyObjects cannot be overwritten and go with the garbage
   * collector. Afterwards every call throws {@link CodecClosedError}.
   */
  close(): Promise<void>;
}

const keepers = new WeakMap<object, RingKeeper>();

/** The keeper behind a codec made by {@link createKmsCodec}; not on the object that users hold. */
export function keeperOf(codec: object): RingKeeper | undefined {
  return keepers.get(codec);
}

/**
 * Makes a codec over a ring of KMS-wrapped data keys. Resolves when it can seal (a member) or unseal (a reader): all
 * live keys are unwrapped, and an absent ring was founded unless `create` or `role` forbids.
 *
 * @throws {TypeError | RangeError} for options that are wrong or contradict each other, naming option and value.
 * @throws {RingStoreError | KeyWrapperError} why it could not start.
 */
export async function createKmsCodec(options: KmsCodecOptions): Promise<KmsCodec> {
  const checked = checkOptions(options);
  checked.signal?.throwIfAborted();
  const closing = new Closing();
  const cache = new EnvelopeKeyCache();
  const keeper = createKeeper(checked, cache, closing);
  const abort = (): void => closing.abort(checked.signal?.reason);
  checked.signal?.addEventListener('abort', abort, { once: true });
  try {
    await awaited(() => keeper.start());
  } catch (error) {
    await closeAll(keeper, checked);
    throw error;
  } finally {
    checked.signal?.removeEventListener('abort', abort);
  }
  return new RingCodec(keeper, cache, checked);
}

class RingCodec implements KmsCodec {
  readonly #keeper: RingKeeper;
  readonly #source: KeySource;
  readonly #options: CheckedOptions;
  readonly #cache: EnvelopeKeyCache;
  readonly #sealingState: SealingState;
  readonly #formats: Readonly<Record<TokenFormatName, TokenFormat>>;
  readonly #purposes = new LRUCache<string, RingTokenCodec>({ max: MAX_PURPOSES });

  constructor(keeper: RingKeeper, cache: EnvelopeKeyCache, options: CheckedOptions) {
    const { view } = keeper;
    this.#keeper = keeper;
    this.#cache = cache;
    this.#options = options;
    this.#sealingState = createSealingState({
      random: options.random,
      hedge: options.hedge,
      kernelEntropy: () => keeper.kernelEntropy,
    });
    this.#source = {
      sealingKey: (now) => view.sealingKey(now),
      openingKey: (id, now) => view.openingKey(id, now),
      openingKeys: (now) => view.openingKeys(now),
      noteUnknownKey: (id, now) => keeper.noteUnknownKey(id, now),
    };
    this.#formats = {
      sealring: this.#sealringTokens(undefined),
      python: new PythonTokens(this.#source, options, options.maxTokenLength),
    };
    keepers.set(this, keeper);
  }

  get tokenLifetimeSeconds(): number {
    return this.#options.policy.tokenLifetimeSeconds;
  }

  get clockSkewSeconds(): number {
    return this.#options.policy.clockSkewSeconds;
  }

  seal(payload: Uint8Array): string {
    checkPayload(payload);
    return this.#formats[this.#options.format].seal(payload, this.#keeper.view.now());
  }

  unseal(token: string): Uint8Array {
    this.#assertOpen();
    try {
      checkToken(token, this.#options.maxTokenLength);
      const name = formatOf(token);
      // Dispatched once and tried under that format only; `accept` is an allow-list.
      if (name === undefined || !this.#options.accept.includes(name)) throw new InvalidRequestState('malformed');
      return this.#open(this.#formats[name], token);
    } catch (error) {
      throw rejected(error);
    }
  }

  for(purpose: string): RingTokenCodec {
    this.#assertOpen();
    label('for', 'purpose', purpose);
    let codec = this.#purposes.get(purpose);
    if (codec === undefined) {
      const tokens = this.#sealringTokens(purpose);
      codec = Object.freeze<RingTokenCodec>({
        tokenLifetimeSeconds: this.tokenLifetimeSeconds,
        clockSkewSeconds: this.clockSkewSeconds,
        seal: (payload) => {
          checkPayload(payload);
          return tokens.seal(payload, this.#keeper.view.now());
        },
        unseal: (token) => {
          this.#assertOpen();
          try {
            this.#checkNative(token);
            return this.#open(tokens, token);
          } catch (error) {
            throw rejected(error);
          }
        },
        prepare: (token, options) => this.prepare(token, options),
        inspect: (token) => {
          this.#assertOpen();
          this.#checkNative(token);
          return this.inspect(token);
        },
        health: () => this.health(),
      });
      this.#purposes.set(purpose, codec);
    }
    return codec;
  }

  prepare(token?: string, options: { readonly signal?: AbortSignal } = {}): Promise<void> | undefined {
    this.#assertOpen();
    refuseUnknownOptions('prepare', options, ['signal']);
    if (options.signal !== undefined && !(options.signal instanceof AbortSignal)) {
      throw new TypeError(`prepare: signal must be an AbortSignal, got ${show(options.signal)}`);
    }
    const now = this.#keeper.view.now();
    const id = typeof token === 'string' && formatOf(token) === 'sealring' ? keyIdText(token) : undefined;
    return this.#keeper.needsRefreshFor(id, now) ? this.#prepared(now, options.signal) : undefined;
  }

  async #prepared(now: Moment, given: AbortSignal | undefined): Promise<void> {
    const waited = new AbortController();
    const signal = given === undefined ? waited.signal : AbortSignal.any([waited.signal, given]);
    await Promise.race([
      this.#keeper.refreshForToken(now, { foreground: true }),
      // A wait that ended early is no failure: the signal is looked at below.
      pause(this.#options.clock, PREPARE_MS, signal).catch(() => undefined),
    ]);
    waited.abort();
    given?.throwIfAborted();
  }

  inspect(token: string): TokenFacts {
    this.#assertOpen();
    checkToken(token, this.#options.maxTokenLength);
    const format = formatOf(token);
    if (format === undefined) throw new InvalidRequestState('malformed');
    const { view } = this.#keeper;
    const keyId = this.#formats[format].keyIdOf(token, view.snapshot.keys.filter(isUsable));
    const state = view.states(view.now()).find(({ key }) => key.id === keyId)?.state ?? 'unknown';
    return { format, keyId, state, stale: state === 'verify-only' };
  }

  health(): CodecHealth {
    return healthOf(this.#keeper);
  }

  async refresh(): Promise<void> {
    await awaited(() => this.#keeper.refresh());
  }

  async rotate(options: { readonly emergency?: boolean } = {}): Promise<void> {
    refuseUnknownOptions('rotate', options, ['emergency']);
    const { emergency = false } = options;
    if (typeof emergency !== 'boolean')
      throw new TypeError(`rotate: emergency must be a boolean, got ${show(emergency)}`);
    await awaited(() => this.#keeper.rotate(emergency ? 'emergency' : 'requested'));
  }

  async revoke(keyId: string): Promise<void> {
    if (typeof keyId !== 'string') throw new TypeError(`revoke: keyId must be a string, got ${show(keyId)}`);
    await awaited(() => this.#keeper.revoke((key) => key.id === keyId, keyId));
  }

  async revokeAllBefore(time: Date): Promise<void> {
    if (!(time instanceof Date)) throw new TypeError(`revokeAllBefore: time must be a Date, got ${show(time)}`);
    const ms = time.getTime();
    if (Number.isNaN(ms)) throw new RangeError('revokeAllBefore: time is an invalid Date');
    const latest = ms + this.#options.policy.clockSkewSeconds * 1_000;
    await awaited(() => this.#keeper.revoke((key) => key.created <= latest));
  }

  async close(): Promise<void> {
    await closeAll(this.#keeper, this.#options);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #assertOpen(): void {
    if (this.#keeper.view.isClosed) throw new CodecClosedError();
  }

  #checkNative(token: string): void {
    checkToken(token, this.#options.maxTokenLength);
    if (formatOf(token) !== 'sealring') throw new InvalidRequestState('malformed');
  }

  #sealringTokens(purpose: string | undefined): SealringTokens {
    const { maxTokenLength } = this.#options;
    return new SealringTokens(this.#source, this.#sealingState, this.#cache, { purpose, maxTokenLength });
  }

  #open(format: TokenFormat, token: string): Uint8Array {
    const now = this.#keeper.view.nowToOpen();
    const { payload, key } = format.open(token, now);
    if (channels.stale.isHeard) {
      const state = this.#keeper.view.states(now).find((other) => other.key.id === key.id)?.state;
      if (state === 'verify-only') channels.stale.publish(() => ({ keyId: key.id }));
    }
    return payload;
  }
}

/** The ring store and, unless told otherwise, the key wrappers were given, and may serve others: they stay open. */
async function closeAll(keeper: RingKeeper, options: CheckedOptions): Promise<void> {
  await keeper.close();
  if (!options.closeKeyWrappers) return;
  for (const wrapper of options.keyWrappers) await wrapper.close?.();
}

function checkPayload(payload: unknown): void {
  if (!(payload instanceof Uint8Array)) throw new TypeError(`payload must be a Uint8Array, got ${show(payload)}`);
  // The cipher goes by the true length, our bounds by what the object says.
  if (payload.length !== Reflect.get(typedArray, 'length', payload))
    throw new TypeError('payload must not have a length of its own');
}

/** Length before anything else: a token is attacker-chosen. */
function checkToken(token: unknown, maxTokenLength: number): void {
  if (typeof token !== 'string' || token.length > maxTokenLength) throw new InvalidRequestState('malformed');
}

const typedArray: object = Object.getPrototypeOf(Uint8Array.prototype) as object;

/** Longer than any wait; setTimeout knows no longer ones. */
const IDLE_MS = 2 ** 30;

/**
 * The ring's timers do not keep a process alive. While somebody awaits it, the process must not end for want of other
 * work, as a plain script would.
 */
async function awaited<T>(run: () => Promise<T>): Promise<T> {
  const alive = setInterval(() => undefined, IDLE_MS);
  try {
    return await run();
  } finally {
    clearInterval(alive);
  }
}

/** Tells the listeners of a refusal, and hands the error on. */
function rejected(error: unknown): unknown {
  if (error instanceof InvalidRequestState) channels.rejected.publish(() => ({ reason: error.reason }));
  return error;
}
