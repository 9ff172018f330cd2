import { seal, unseal } from './cipher.js';

/** The error for a refused token, recognized by its name. */
export class InvalidRequestState extends Error {
  name = 'InvalidRequestState';
}

/** Seals with the first key and unseals with any of them. */
export class MyCodec {
  #keys;

  constructor(...keys) {
    this.#keys = keys;
  }

  seal(payload) {
    return Buffer.from(seal(this.#keys[0], payload)).toString('base64url');
  }

  unseal(token) {
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
