import { createHash, timingSafeEqual } from 'node:crypto';
import { types } from 'node:util';
import { canonicalJson } from '../base/canonical-json.ts';
import type { RandomSource } from '../base/clock.ts';
import { isConstant } from '../base/options.ts';
import { DATA_KEY_BYTES, KeyWrapperError } from '../contracts/key-wrapper.ts';

/** Checks the data key that a key wrapper returned. @throws {KeyWrapperError} `corrupt` */
export function checkedDataKey(bytes: unknown, provider: string, operation: 'generate' | 'unwrap'): Uint8Array {
  if (!types.isUint8Array(bytes) || bytes.length !== DATA_KEY_BYTES || isConstant(bytes)) {
    throw new KeyWrapperError('corrupt', { provider, operation, hint: 'the answer is not a 32-byte data key' });
  }
  return bytes;
}

/** Overwrites a value that a key wrapper returned, if it is a byte array. Never throws. */
export function overwrite(bytes: unknown): void {
  if (types.isUint8Array(bytes)) bytes.fill(0);
}

/** D ‖ SHA-256(context): the plaintext for a service that binds no context. The caller overwrites it. */
export function boundPlaintext(dataKey: Uint8Array, context: Readonly<Record<string, string>>): Uint8Array {
  const hash = contextHash(context);
  const plaintext = Buffer.allocUnsafeSlow(DATA_KEY_BYTES + hash.length);
  plaintext.set(dataKey);
  plaintext.set(hash, DATA_KEY_BYTES);
  return plaintext;
}

/** The data key in a plaintext of {@link boundPlaintext}. Overwrites the plaintext. @throws {KeyWrapperError} */
export function unboundPlaintext(
  plaintext: unknown,
  context: Readonly<Record<string, string>>,
  provider: string,
): Uint8Array {
  const hash = contextHash(context);
  const bytes = types.isUint8Array(plaintext) ? plaintext : new Uint8Array(0);
  try {
    const isBound =
      bytes.length === DATA_KEY_BYTES + hash.length && timingSafeEqual(bytes.subarray(DATA_KEY_BYTES), hash);
    if (isBound) return checkedDataKey(Uint8Array.from(bytes.subarray(0, DATA_KEY_BYTES)), provider, 'unwrap');
    throw new KeyWrapperError('corrupt', { provider, operation: 'unwrap', hint: 'the context does not match' });
  } finally {
    bytes.fill(0);
  }
}

function contextHash(context: Readonly<Record<string, string>>): Buffer {
  return createHash('sha256')
    .update(canonicalJson(context, { sortKeys: true }))
    .digest();
}

/** A data key of 32 bytes from `random`, which the caller overwrites. @throws {RangeError} if all its bytes are equal. */
export function randomDataKey(random: RandomSource): Uint8Array {
  const dataKey = new Uint8Array(DATA_KEY_BYTES);
  random(dataKey);
  if (isConstant(dataKey)) throw new RangeError('the random source filled a data key with one repeated byte');
  return dataKey;
}
