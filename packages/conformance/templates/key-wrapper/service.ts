import type { KeyWrapperErrorKind } from '@sealring/core';

/** What the service made of a data key. */
export interface Encrypted {
  readonly ciphertext: Uint8Array;
  /** The exact version of the KMS key that was used. */
  readonly version: string;
}

/**
 * Asks the service to encrypt a data key with the KMS key `name`, and to authenticate `context` with it.
 *
 * @param signal - Pass it on: it aborts when the caller gives up, at the deadline, and on close.
 */
export async function encrypt(
  name: string,
  dataKey: Uint8Array,
  context: string,
  signal: AbortSignal,
): Promise<Encrypted> {
  throw new Error(`implement encrypt: ${name}, ${dataKey.length} bytes, ${context.length}, ${signal.aborted}`);
}

/** Asks the service to decrypt with that version of the KMS key, under the same context. */
export async function decrypt(
  name: string,
  { ciphertext, version }: Encrypted,
  context: string,
  signal: AbortSignal,
): Promise<Uint8Array> {
  throw new Error(`implement decrypt: ${name}, ${version}, ${ciphertext.length}, ${context.length}, ${signal.aborted}`);
}

/** What an error of the service means; `corrupt` where it says that the ciphertext or the context is wrong. */
export function kindOf(_error: unknown): KeyWrapperErrorKind {
  // Whatever you do not recognise is an outage: the unknown must not end the life of a key.
  return 'unavailable';
}
