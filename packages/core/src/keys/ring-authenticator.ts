import { hmac } from '../base/hmac.ts';
import { unpooled } from '../base/options.ts';
import { subKey } from '../formats/derivation.ts';

/**
 * Authenticates facts about the ring with the `ring-mac` sub-key of one data key; it can neither seal nor unseal.
 * It outlives its data key, because a revoked or expired key may be the only one that links the next key to the ring.
 */
export class RingAuthenticator {
  /** The id of the data key. */
  readonly id: string;
  readonly #secret: Buffer;
  #isOverwritten = false;

  constructor(id: string, dataKey: Uint8Array, ring: string) {
    this.id = id;
    const block = subKey(dataKey, 'ring-mac', ring);
    this.#secret = unpooled(block.subarray(0, 32));
    block.fill(0);
  }

  /** HMAC-SHA-256 of an ASCII text, 32 bytes. */
  mac(text: string): Buffer {
    if (this.#isOverwritten) throw new Error(`the ring authenticator of data key ${this.id} was overwritten`);
    return hmac('sha256', this.#secret).update(text).digest();
  }

  /** Overwrites the sub-key. Every later use throws. */
  destroy(): void {
    this.#isOverwritten = true;
    this.#secret.fill(0);
  }

  toJSON(): object {
    return { id: this.id };
  }
}
