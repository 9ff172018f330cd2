import { webcrypto } from 'node:crypto';
import { type Contender, isBytes, lengthOfText } from './contender.ts';

interface Payload {
  readonly metadata: { readonly encoding: string; readonly 'encryption-key-id': string };
  /** base64 */
  readonly data: string;
}

/** The method of Temporal's samples for workflow payloads: WebCrypto keys in a map, by an id in the payload. */
export function payloadCodec(): Contender {
  const keys = new Map<string, Promise<webcrypto.CryptoKey>>();
  const keyOf = (id: string): Promise<webcrypto.CryptoKey> => {
    const known = keys.get(id);
    if (known !== undefined) return known;
    const made = webcrypto.subtle.generateKey({ name: 'AES-GCM', length: 256 }, false, ['encrypt', 'decrypt']);
    keys.set(id, made);
    return made;
  };
  return {
    note: "in the manner of Temporal's encryption sample: WebCrypto, a map of keys",
    async seal(payload) {
      const id = 'key-1';
      const iv = webcrypto.getRandomValues(new Uint8Array(12));
      const sealed = await webcrypto.subtle.encrypt({ name: 'AES-GCM', iv }, await keyOf(id), payload);
      const data = Buffer.concat([iv, Buffer.from(sealed)]).toString('base64');
      return JSON.stringify({ metadata: { encoding: 'binary/encrypted', 'encryption-key-id': id }, data });
    },
    async unseal(sealed) {
      const { metadata, data }: Payload = JSON.parse(String(sealed));
      const bytes = Buffer.from(data, 'base64');
      const algorithm = { name: 'AES-GCM', iv: bytes.subarray(0, 12) };
      const key = await keyOf(metadata['encryption-key-id']);
      return new Uint8Array(await webcrypto.subtle.decrypt(algorithm, key, bytes.subarray(12)));
    },
    lengthOf: lengthOfText,
    isPayload: isBytes,
  };
}
