import {
  constants,
  generateKeyPairSync,
  type KeyObject,
  privateDecrypt,
  publicEncrypt,
  randomUUID,
  sign,
  verify,
} from 'node:crypto';
import { type KeyWrapper, KeyWrapperError } from '../../src/contracts/key-wrapper.ts';

/**
 * A KMS that wraps with a public RSA key, as Azure Key Vault does: anyone who knows that key can make a wrap, so an
 * unwrap shows nothing, and the ring's entries are signed. Real cryptography.
 */
export class PublicKeyKms {
  readonly #wrapping = generateKeyPairSync('rsa', { modulusLength: 2_048 });
  readonly #signing = generateKeyPairSync('ed25519');
  readonly #keyId = `rsa:${randomUUID()}`;
  calls = { wrap: 0, unwrap: 0, sign: 0 };
  /** Every call that signs waits for this first, with its signal. */
  beforeSigning: ((signal: AbortSignal | undefined) => Promise<void>) | undefined;

  /** Everything that an attacker needs. */
  get publicKey(): KeyObject {
    return this.#wrapping.publicKey;
  }

  connect(): KeyWrapper & Required<Pick<KeyWrapper, 'sign' | 'verify'>> {
    const provider = 'public-key';
    return {
      provider,
      keyId: this.#keyId,
      supports: { context: false, authenticated: false },
      owns: (wrapped) => wrapped.keyId === this.#keyId,
      wrap: async (plaintext) => {
        this.calls.wrap += 1;
        return { provider, keyId: this.#keyId, wrapped: publicEncrypt(oaep(this.publicKey), plaintext) };
      },
      unwrap: async ({ wrapped }) => {
        this.calls.unwrap += 1;
        try {
          return new Uint8Array(privateDecrypt(oaep(this.#wrapping.privateKey), wrapped));
        } catch {
          throw new KeyWrapperError('corrupt', { provider, operation: 'unwrap' });
        }
      },
      sign: async (entry, options) => {
        this.calls.sign += 1;
        await this.beforeSigning?.(options?.signal);
        return sign(null, entry, this.#signing.privateKey);
      },
      verify: (entry, signature) => verify(null, entry, this.#signing.publicKey, signature),
    };
  }
}

function oaep(key: KeyObject) {
  return { key, padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: 'sha256' };
}
