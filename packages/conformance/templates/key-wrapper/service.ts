import type { KeyWrapperErrorKind } from '@sealring/core';

/** A data key encrypted by the service. */
export interface Encrypted {
  readonly ciphertext: Uint8Array;
  /** The exact version of the KMS key that was used. */
  readonly version: string;
}

/**
 * Asks the service to encrypt a data key with the KMS key `name` and to authenticate `context`.
 *
 * @param signal - Pass it on. It aborts when the caller aborts, at the deadline, and on close.
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

/** The kind of an error of the service: `corrupt` if it reports a wrong ciphertext or context. */
export function kindOf(_error: unknown): KeyWrapperErrorKind {
  // Treat unknown errors as an outage, so that they never disable a key.
  return 'unavailable';
}
