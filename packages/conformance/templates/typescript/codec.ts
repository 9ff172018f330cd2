import { seal, unseal } from './cipher.ts';

/** The error for a refused token, recognized by its name. */
export class InvalidRequestState extends Error {
  override readonly name = 'InvalidRequestState';
}

/** Seals with the first key and unseals with any of them. */
export class MyCodec {
  readonly #keys: readonly [Uint8Array, ...Uint8Array[]];

  constructor(...keys: [Uint8Array, ...Uint8Array[]]) {
    this.#keys = keys;
  }

  seal(payload: Uint8Array): string {
    return Buffer.from(seal(this.#keys[0], payload)).toString('base64url');
  }

  unseal(token: string): Uint8Array {
    if (typeof token !== 'string') throw new InvalidRequestState('malformed');
    const sealed = Buffer.from(token, 'base64url');
    // Decoders are lenient, but a token must have exactly one valid encoding.
    if (sealed.toString('base64url') !== token) throw new InvalidRequestState('malformed');
    for (const key of this.#keys) {
      const payload = unseal(key, sealed);
      if (payload !== undefined) return payload;
    }
    throw new InvalidRequestState('authentication failed');
  }
}
