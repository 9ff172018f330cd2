import { Closing } from '../base/closing.ts';
import { type RequestStateCodec } from '../contracts/codec.ts';
import { EnvelopeKeyCache } from '../keys/envelope-key-cache.ts';
import type { KeyState } from '../ring/schedule.ts';
import { type CodecHealth } from './codec-health.ts';
import { createKeeper } from './create-keeper.ts';
import { checkOptions, type KmsCodecOptions } from './kms-codec-options.ts';
import { awaited, closeAll, RingCodec } from './ring-codec.ts';

/** The parts of a token that are not secret, and the state of its key in the ring. */
export interface TokenFacts {
  /** `sealring` or `python`. */
  readonly format: string;
  /** The key id, as in the ring document; empty for a fingerprint that no key of the ring has. */
  readonly keyId: string;
  /** The state of the key now. */
  readonly state: KeyState | 'unknown';
  /** Whether the key only unseals, because a successor seals. */
  readonly stale: boolean;
}

/** A codec over a ring, with the methods that a boundary also needs. */
export interface RingTokenCodec extends RequestStateCodec {
  /**
   * How long a key unseals after it has stopped sealing, in seconds. A boundary with a longer time to live refuses the
   * codec. The codec itself does not check the age of a token, which is limited by the boundary's time to live or,
   * without a boundary, by the expiry of the token's key.
   */
  readonly tokenLifetimeSeconds: number;
  /**
   * The `clockSkewSeconds` of the ring's policy. A single-use store must remember a redeemed token for this long after
   * the token expires.
   */
  readonly clockSkewSeconds: number;
  /**
   * Prepares a synchronous `unseal`: reads the ring, for at most 2 s and at most once per missRefreshSeconds, if this
   * member's view of it is old or lacks the key of the token. A failed read does not reject the promise; `unseal`
   * then accepts or refuses the token. Returns undefined when there is nothing to wait for.
   */
  prepare(token?: string, options?: { readonly signal?: AbortSignal }): Promise<void> | undefined;
  /** The parts of a token that are not secret, and the state of its key in the ring. Nothing is authenticated. */
  inspect(token: string): TokenFacts;
  /** The state of this member, without a call to the KMS or the store. */
  health(): CodecHealth;
}

/** A codec whose data keys are wrapped by a KMS and shared through a ring. */
export interface KmsCodec extends RingTokenCodec, AsyncDisposable {
  /**
   * A codec over the same ring with its own token keys, for your other data. It does not unseal tokens of this codec or
   * of another purpose, nor do those codecs unseal its tokens. It always uses the native format.
   * @throws {TypeError | RangeError} unless `purpose` is 1 to 64 characters of `[A-Za-z0-9._-]`.
   */
  for(purpose: string): RingTokenCodec;
  /** Reads the ring now. @throws {RingStoreError | KeyWrapperError} */
  refresh(): Promise<void>;
  /**
   * Publishes a successor to the sealing key. The successor seals once every member can have it: after the propagation
   * time or, with `emergency`, after refreshEvery + backoffCap + clockSkew.
   * @throws {RingStoreError | KeyWrapperError} `too-large` if the ring has 48 keys or more, since revocations need
   * room.
   */
  rotate(options?: { readonly emergency?: boolean }): Promise<void>;
  /**
   * Revokes a key, and activates a successor in the same write if the ring has room and the KMS answers; otherwise as soon
   * as possible. Neither the KMS nor this machine's clock can prevent the revocation.
   * @throws {RangeError} when the ring has no such key.
   * @throws {RingStoreError} when the ring could not be written; then nothing is revoked.
   */
  revoke(keyId: string): Promise<void>;
  /**
   * Revokes, in the same way, every key that, by the clock of any server of the fleet, may have been created at or
   * before `time`: every key with `created` − clockSkew ≤ `time`.
   */
  revokeAllBefore(time: Date): Promise<void>;
  /**
   * Stops timers and calls, and overwrites the data keys; KeyObjects cannot be overwritten, so the garbage collector
   * frees them. Afterwards every call throws `CodecClosedError`.
   */
  close(): Promise<void>;
}

/**
 * Creates a codec over a ring of KMS-wrapped data keys. Resolves once a member can seal, or a reader can unseal: all
 * live keys are then unwrapped, and an absent ring has been created unless `create` or `role` forbids it.
 *
 * @throws {TypeError | RangeError} for wrong or contradictory options; the message names the option and the value.
 * @throws {RingStoreError | KeyWrapperError} when the store or the KMS prevents the start.
 */
export async function createKmsCodec(options: KmsCodecOptions): Promise<KmsCodec> {
  const checked = checkOptions(options);
  checked.signal?.throwIfAborted();
  const closing = new Closing();
  const cache = new EnvelopeKeyCache(checked.ringName);
  const keeper = createKeeper(checked, cache, closing);
  const abort = (): void => closing.abort(checked.signal?.reason);
  checked.signal?.addEventListener('abort', abort);
  try {
    await awaited(() => keeper.start());
    // A listener of the start's last event may have aborted it.
    checked.signal?.throwIfAborted();
  } catch (error) {
    await closeAll(keeper, checked);
    throw error;
  } finally {
    checked.signal?.removeEventListener('abort', abort);
  }
  return new RingCodec(keeper, cache, checked);
}
