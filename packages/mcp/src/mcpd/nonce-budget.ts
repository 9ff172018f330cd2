import { SealUnavailableError } from '@sealring/core';

/** The number of random nonces that one AES-256-GCM key may use (SP 800-38D section 8.3). */
const NONCES_PER_KEY = 2 ** 32;

/** Counts the random nonces that each key has used. */
export class NonceBudget {
  readonly #used = new WeakMap<object, number>();
  readonly #limit: number;

  constructor(limit: number = NONCES_PER_KEY) {
    this.#limit = limit;
  }

  /** @throws {SealUnavailableError} when `key` has used all its nonces. */
  spend(key: object): void {
    const used = this.#used.get(key) ?? 0;
    if (used >= this.#limit) throw new SealUnavailableError('token limit of the key reached');
    this.#used.set(key, used + 1);
  }
}
