import { createCipheriv, createDecipheriv, createSecretKey, randomBytes } from 'node:crypto';
import { type Contender, isBytes, lengthOfText } from './contender.ts';

const AEAD = 'aes-256-gcm';
const TAG = { authTagLength: 16 } as const;
const PREFIX = 'v1.';
const AAD = Buffer.from(PREFIX, 'ascii');

interface Sealed {
  readonly ciphertext: Buffer;
  readonly tag: Buffer;
}

/**
 * The cipher's own calls with a KeyObject and a fixed nonce: a lower bound for everything on node:crypto. Its
 * associated data are as long as in a native token, 49 bytes: with fewer bytes it would be the floor of another format.
 */
export function bareCipher(): Contender {
  const key = createSecretKey(randomBytes(32));
  const nonce = randomBytes(12);
  const aad = randomBytes(49);
  return {
    note: "node:crypto's AES-256-GCM calls alone, fixed nonce, nothing encoded",
    seal(payload): Sealed {
      const cipher = createCipheriv(AEAD, key, nonce, TAG);
      cipher.setAAD(aad);
      const ciphertext = cipher.update(payload);
      cipher.final();
      return { ciphertext, tag: cipher.getAuthTag() };
    },
    unseal(sealed) {
      const { ciphertext, tag } = sealed as Sealed;
      const decipher = createDecipheriv(AEAD, key, nonce, TAG);
      decipher.setAAD(aad);
      decipher.setAuthTag(tag);
      const plaintext = decipher.update(ciphertext);
      decipher.final();
      return plaintext;
    },
    lengthOf: (sealed) => (sealed as Sealed).ciphertext.length + 16,
    isPayload: isBytes,
  };
}

/** A hand-written codec: one KeyObject, a random nonce, base64url, 16-byte tags. No key ids. */
export function plainCodec(): Contender {
  const key = createSecretKey(randomBytes(32));
  return {
    note: 'the same by hand: random nonce, base64url, one key',
    seal(payload) {
      const nonce = randomBytes(12);
      const cipher = createCipheriv(AEAD, key, nonce, TAG);
      cipher.setAAD(AAD);
      const ciphertext = cipher.update(payload);
      cipher.final();
      return PREFIX + Buffer.concat([nonce, ciphertext, cipher.getAuthTag()]).toString('base64url');
    },
    unseal(sealed) {
      const bytes = Buffer.from(String(sealed).slice(PREFIX.length), 'base64url');
      const decipher = createDecipheriv(AEAD, key, bytes.subarray(0, 12), TAG);
      decipher.setAAD(AAD);
      decipher.setAuthTag(bytes.subarray(-16));
      return Buffer.concat([decipher.update(bytes.subarray(12, -16)), decipher.final()]);
    },
    lengthOf: lengthOfText,
    isPayload: isBytes,
  };
}
