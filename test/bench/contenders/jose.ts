import { randomBytes } from 'node:crypto';
import { CompactEncrypt, compactDecrypt } from 'jose';
import { type Contender, isBytes, lengthOfText } from './contender.ts';

export function jose(): Contender {
  const key = randomBytes(32);
  const header = { alg: 'dir', enc: 'A256GCM' };
  return {
    note: 'compact JWE, dir and A256GCM',
    seal: (payload) => new CompactEncrypt(payload).setProtectedHeader(header).encrypt(key),
    unseal: async (sealed) => (await compactDecrypt(String(sealed), key)).plaintext,
    lengthOf: lengthOfText,
    isPayload: isBytes,
  };
}
