import { Closing } from '../base/closing.ts';
import { type RequestStateCodec } from '../contracts/codec.ts';
import { CodecClosedError } from '../contracts/errors.ts';
import { EnvelopeKeyCache } from '../keys/envelope-key-cache.ts';
import type { KeyState } from '../ring/schedule.ts';
import { type CodecHealth } from './codec-health.ts';
import { createKeeper } from './create-keeper.ts';
import { checkOptions, type KmsCodecOptions } from './kms-codec-options.ts';
import { awaited, closeAll, RingCodec } from './ring-codec.ts';

/** What a token says of itself, and what the ring says of its key. */
export interface TokenFacts {
  /** `sealring` or `python`. */
  readonly format: string;
  /** As in the ring document; empty for a fingerprint that no key of the ring has. */
  readonly keyId: string;
  /** Of the key, now. */
  readonly state: KeyState | 'unknown';
  /** Whether the key only unseals: a successor seals. */
  readonly stale: boolean;
}

/** A codec over a ring: all that a boundary needs of it. */
export interface RingTokenCodec extends RequestStateCodec {
  /**
   * How long a key unseals after it has stopped sealing, seconds; a boundary with a longer time to live refuses the codec.
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
   * A codec over the same ring with token keys of its own, for data of yours: the codec for
   * one never unseals tokens of another. Always in the native format.
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

/**
 * Makes a codec over a ring of KMS-wrapped data keys. Resolves when it can seal (a member) or unseal (a reader): all
 * live keys are unwrapped, and an absent ring was created unless `create` or `role` forbids it.
 *
 * @throws {TypeError | RangeError} for options that are wrong or contradict each other, naming option and value.
 * @throws {RingStoreError | KeyWrapperError} what kept it from starting.
 */
export async function createKmsCodec(options: KmsCodecOptions): Promise<KmsCodec> {
  const checked = checkOptions(options);
  checked.signal?.throwIfAborted();
  const closing = new Closing();
  const cache = new EnvelopeKeyCache(checked.ringName);
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
