import { types } from 'node:util';
import { LRUCache } from 'lru-cache';
import { signalOf } from '../adapter/options.ts';
import { type Moment, pause, systemClock } from '../base/clock.ts';
import { label, refuseUnknownOptions, show } from '../base/options.ts';
import { InvalidRequestState } from '../contracts/codec.ts';
import { CodecClosedError } from '../contracts/errors.ts';
import { channels } from '../contracts/events.ts';
import { keyIdText } from '../formats/sealring-token.ts';
import type { EnvelopeKeyCache } from '../keys/envelope-key-cache.ts';
import type { RingKeeper } from '../member/keeper.ts';
import { isUsable } from '../ring/snapshot.ts';
import {
  formatOf,
  type KeySource,
  PythonTokens,
  SealringTokens,
  type TokenFormat,
  type TokenFormatName,
} from '../tokens/token-formats.ts';
import { createSealingState, type SealingState } from '../tokens/token-sealer.ts';
import { type CodecHealth, healthOf } from './codec-health.ts';
import type { KmsCodec, RingTokenCodec, TokenFacts } from './kms-codec.ts';
import type { CheckedOptions } from './kms-codec-options.ts';

/** Longest wait of {@link KmsCodec.prepare}. */
const PREPARE_MS = 2_000;
/** Longest wait for a key wrapper to close. */
const CLOSE_MS = 2_000;

/** How many codecs of {@link KmsCodec.for} are remembered. Purposes are names in a program, not data. */
const MAX_PURPOSES = 256;

const keepers = new WeakMap<object, RingKeeper>();

/** The keeper behind a codec made by {@link createKmsCodec}; the object that users hold does not expose it. */
export function keeperOf(codec: object): RingKeeper | undefined {
  return keepers.get(codec);
}

export class RingCodec implements KmsCodec {
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
      unsealingKey: (id, now) => view.unsealingKey(id, now),
      unsealingKeys: (now) => view.unsealingKeys(now),
      noteUnknownKey: (id, now) => keeper.causedReads.noteUnknownKey(id, now),
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
      // The prefix determines the one format that is tried, and only the formats in `accept` are allowed.
      if (name === undefined || !this.#options.accept.includes(name)) throw new InvalidRequestState('malformed');
      return this.#open(this.#formats[name], token);
    } catch (error) {
      throw this.#rejected(error);
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
            throw this.#rejected(error);
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
    const signal = signalOf('prepare', options.signal);
    const now = this.#keeper.view.now();
    const id = typeof token === 'string' && formatOf(token) === 'sealring' ? keyIdText(token) : undefined;
    return this.#keeper.causedReads.isWorthWaitingFor(id, now) ? this.#prepared(now, signal) : undefined;
  }

  async #prepared(now: Moment, given: AbortSignal | undefined): Promise<void> {
    const waited = new AbortController();
    const signal = given === undefined ? waited.signal : AbortSignal.any([waited.signal, given]);
    await Promise.race([
      this.#keeper.causedReads.forToken(now, { foreground: true }),
      // A wait that ended early is not a failure: the signal is checked below.
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
    const now = this.#keeper.view.nowToUnseal();
    const { payload, key } = format.open(token, now);
    if (channels.stale.isHeard) {
      const state = this.#keeper.view.states(now).find((other) => other.key.id === key.id)?.state;
      if (state === 'verify-only') channels.stale.publish(() => ({ ringName: this.#options.ringName, keyId: key.id }));
    }
    return payload;
  }

  /** Emits an event if a token was refused, and returns the error. */
  #rejected(error: unknown): unknown {
    if (error instanceof InvalidRequestState) {
      channels.rejected.publish(() => ({ ringName: this.#options.ringName, reason: error.reason }));
    }
    return error;
  }
}

/**
 * The ring store belongs to the caller and stays open. Key wrappers are closed only if `closeKeyWrappers` is set. A
 * wrapper that does not close in time is left alone: it would hide the error of a failed start.
 */
export async function closeAll(keeper: RingKeeper, options: CheckedOptions): Promise<void> {
  await keeper.close();
  if (!options.closeKeyWrappers) return;
  for (const wrapper of options.keyWrappers) await withinCloseTime(wrapper.close?.());
}

async function withinCloseTime(closing: Promise<void> | undefined): Promise<void> {
  const waited = new AbortController();
  const late = pause(systemClock, CLOSE_MS, waited.signal).catch(() => undefined);
  try {
    await awaited(() => Promise.race([closing, late]));
  } finally {
    waited.abort();
  }
}

function checkPayload(payload: unknown): void {
  if (!types.isUint8Array(payload)) throw new TypeError(`payload must be a Uint8Array, got ${show(payload)}`);
  // The cipher uses the true length, but the limits are checked with the length that the object reports.
  if (payload.length !== Reflect.get(typedArray, 'length', payload))
    throw new TypeError('payload must not define its own length');
}

/** Checks the length first, because an attacker may have chosen the token. */
function checkToken(token: unknown, maxTokenLength: number): void {
  if (typeof token !== 'string' || token.length > maxTokenLength) throw new InvalidRequestState('malformed');
}

const typedArray: object = Object.getPrototypeOf(Uint8Array.prototype) as object;

/** A time longer than any wait, and within the limit of setTimeout. */
const IDLE_MS = 2 ** 30;

/**
 * Keeps the process alive while the codec is awaited: the ring's timers do not, so a plain script would exit for lack
 * of other work.
 */
export async function awaited<T>(run: () => Promise<T>): Promise<T> {
  const alive = setInterval(() => undefined, IDLE_MS);
  try {
    return await run();
  } finally {
    clearInterval(alive);
  }
}
