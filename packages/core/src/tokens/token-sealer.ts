import { createHash } from 'node:crypto';
import { startupSnapshot } from 'node:v8';
import { threadId } from 'node:worker_threads';
import type { Moment, RandomSource } from '../base/clock.ts';
import { hmac } from '../base/hmac.ts';
import { type SealingTokenKey, sealSealring } from '../formats/sealring.ts';
import { NONCE_BYTES, SALT_BYTES } from '../formats/sealring-token.ts';

/** Number of tokens under one salt, limited by the width of the message counter in the nonce. */
export const TOKENS_PER_SALT: number = 2 ** 20;
const SALT_LIFETIME_MS = 60_000;
/** After a longer pause between two calls of `seal`, the machine may have been suspended or cloned. */
const LONGEST_PAUSE_MS = 1_000;
const TAG_BYTES = 16;
const POOL_BYTES = NONCE_BYTES * 256;

/** Random bytes drawn in bulk, each used once. Drawing 12 at a time would cost half as much as a whole seal call. */
class RandomPool {
  readonly #random: RandomSource;
  readonly #pool = Buffer.alloc(POOL_BYTES);
  #next = POOL_BYTES;

  constructor(random: RandomSource) {
    this.#random = random;
  }

  /** Fills `nonce` with the next 12 bytes XOR the bytes of `mask`. */
  fill(nonce: Uint8Array, mask: Uint8Array): void {
    if (this.#next === POOL_BYTES) {
      this.#random(this.#pool);
      this.#next = 0;
    }
    const pool = this.#pool;
    const start = this.#next;
    for (let i = 0; i < NONCE_BYTES; i++) nonce[i] = (pool[start + i] as number) ^ (mask[i] as number);
    this.#next = start + NONCE_BYTES;
  }

  discard(): void {
    this.#next = POOL_BYTES;
  }
}

/** State that all sealers of one codec instance share. */
export interface SealingState {
  readonly random: RandomSource;
  /** Bytes that the last refresh read from the kernel's random device, not from the generator above. May be empty. */
  readonly kernelEntropy: () => Uint8Array;
  /** Whether a keyed hash of the payload is mixed into each nonce: for platforms that clone running machines. */
  readonly hedge: boolean;
  /** The tag of the last token this instance sealed. */
  readonly lastTag: Uint8Array;
  readonly pool: RandomPool;
}

export function createSealingState(options: Pick<SealingState, 'random' | 'kernelEntropy' | 'hedge'>): SealingState {
  return { ...options, lastTag: new Uint8Array(TAG_BYTES), pool: new RandomPool(options.random) };
}

/**
 * Seals tokens with one data key for one codec instance, and changes the salt so often that no token key is used for
 * long.
 *
 * nonce = R ⊕ T ⊕ L (⊕ H): R is random; T = monotonic ns mod 2^44 ‖ wall ms mod 2^32 ‖ message counter, 20 bits;
 * L is the start of the last tag; H, with hedging, is a keyed hash of the payload. With a healthy generator, R alone
 * makes the nonce uniform (SP 800-38D 8.2.2). With a cloned or stuck generator, T keeps one instance from repeating a
 * nonce, and L makes the nonces of clones with equal clocks differ as soon as the clones have sealed different tokens.
 */
export class TokenSealer {
  readonly #state: SealingState;
  readonly #derive: (salt: Uint8Array) => SealingTokenKey;
  readonly #nonce = new Uint8Array(NONCE_BYTES);
  #tokenKey: SealingTokenKey | undefined;
  #count = 0;
  #saltedAt = 0;
  #sealedAt = 0;
  #sealedAtWallMs = 0;

  constructor(state: SealingState, derive: (salt: Uint8Array) => SealingTokenKey) {
    this.#state = state;
    this.#derive = derive;
    // A start-up snapshot is deserialized many times: every copy must begin with its own salt and pool.
    if (startupSnapshot.isBuildingSnapshot()) {
      startupSnapshot.addDeserializeCallback(() => {
        this.#tokenKey = undefined;
        state.pool.discard();
      });
    }
  }

  seal(payload: Uint8Array, now: Moment): string {
    const { lastTag } = this.#state;
    const tokenKey = this.#currentTokenKey(now);
    const nonce = this.#nonce;
    this.#state.pool.fill(nonce, lastTag);
    mixTime(nonce, now, this.#count);
    const { hedgeKey } = tokenKey;
    if (hedgeKey !== undefined) mix(nonce, hmac('sha256', hedgeKey).update(payload).digest());
    this.#count += 1;
    this.#sealedAt = now.steadyMs;
    this.#sealedAtWallMs = now.wallMs;
    return sealSealring(tokenKey, nonce, payload, lastTag);
  }

  #currentTokenKey(now: Moment): SealingTokenKey {
    const { steadyMs, wallMs } = now;
    if (
      this.#tokenKey !== undefined &&
      this.#count < TOKENS_PER_SALT &&
      steadyMs - this.#saltedAt < SALT_LIFETIME_MS &&
      steadyMs - this.#sealedAt <= LONGEST_PAUSE_MS &&
      Math.abs(wallMs - this.#sealedAtWallMs) <= LONGEST_PAUSE_MS
    ) {
      return this.#tokenKey;
    }
    this.#tokenKey = this.#derive(this.#drawSalt(now));
    this.#count = 0;
    this.#saltedAt = steadyMs;
    return this.#tokenKey;
  }

  #drawSalt({ steadyMs, wallMs }: Moment): Uint8Array {
    const salt = new Uint8Array(SALT_BYTES);
    this.#state.random(salt);
    const circumstances = createHash('sha256')
      .update(`${steadyMs}/${wallMs}/${process.pid}/${threadId}/${this.#count}/`)
      .update(this.#state.lastTag)
      .update(this.#state.kernelEntropy())
      .digest();
    mix(salt, circumstances);
    return salt;
  }
}

/** XORs `bytes` into `target`, up to the length of `target`. */
export function mix(target: Uint8Array, bytes: Uint8Array): void {
  for (let i = 0; i < target.length; i++) target[i] = (target[i] as number) ^ (bytes[i] as number);
}

/** XORs 44 bits of monotonic time, 32 bits of wall time and 20 bits of message counter into the 12 bytes. */
function mixTime(nonce: Uint8Array, { steadyMs, wallMs }: Moment, count: number): void {
  const time = Math.round(steadyMs * 1e6) % 2 ** 44;
  const high = Math.floor(time / 2 ** 12);
  const low = time % 2 ** 12;
  const wall = Math.trunc(wallMs) % 2 ** 32;
  const middle = low * 2 ** 20 + Math.floor(wall / 2 ** 12);
  const end = (wall % 2 ** 12) * 2 ** 20 + count;
  mixWord(nonce, 0, high);
  mixWord(nonce, 4, middle);
  mixWord(nonce, 8, end);
}

function mixWord(nonce: Uint8Array, at: number, word: number): void {
  nonce[at] = (nonce[at] as number) ^ (word >>> 24);
  nonce[at + 1] = (nonce[at + 1] as number) ^ ((word >>> 16) & 0xff);
  nonce[at + 2] = (nonce[at + 2] as number) ^ ((word >>> 8) & 0xff);
  nonce[at + 3] = (nonce[at + 3] as number) ^ (word & 0xff);
}
