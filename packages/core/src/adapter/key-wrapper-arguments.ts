import { types } from 'node:util';
import { isConstant, show } from '../base/options.ts';
import { DATA_KEY_BYTES, type KeyWrapperOperation, type WrappedKey } from '../contracts/key-wrapper.ts';
import { corrupt } from './failures.ts';
import { checkCallback, signalOf, wrongType } from './options.ts';

/** If the service binds no context, the ring passes data key ‖ SHA-256(context). */
const DATA_KEY_AND_HASH_BYTES = 64;

/** The part of a key wrapper's `supports` that determines how long a data key may be. */
export interface ContextSupport {
  readonly context: boolean;
}

/** The checked options of a call, with a copy of the context. */
export interface CheckedWrapOptions {
  readonly context: Record<string, string>;
  readonly signal: AbortSignal | undefined;
  /** Receives the service's own time, if the answer contains it. */
  readonly onServiceDate: ((date: Date) => void) | undefined;
}

/** The rules that a wrapped key must satisfy before a key wrapper sends it to its service. */
export interface WrappedKeyRules {
  /** Longest `wrapped` that the service accepts, in bytes. */
  readonly maxBytes: number;
  /** The allow-list: whether a recorded KMS key may be called. */
  readonly owns: (keyId: string) => boolean;
}

/**
 * Reads the options of a call to `wrap`, `unwrap` or `generate`.
 * @throws {TypeError} for options of the wrong type.
 */
export function readWrapOptions(provider: string, options: unknown): CheckedWrapOptions {
  if (typeof options !== 'object' || options === null) {
    throw wrongType(provider, 'options', 'an object with a context', options);
  }
  // Unknown names are accepted: the calling core may be newer than the adapter.
  const { context, signal, onServiceDate } = options as Readonly<Record<keyof CheckedWrapOptions, unknown>>;
  const isObject = typeof context === 'object' && context !== null && !Array.isArray(context);
  if (!isObject || !Object.values(context).every((value) => typeof value === 'string')) {
    throw wrongType(provider, 'context', 'an object of strings', context);
  }
  checkCallback(provider, 'onServiceDate', onServiceDate);
  return {
    context: { ...context },
    signal: signalOf(provider, signal),
    onServiceDate: onServiceDate as CheckedWrapOptions['onServiceDate'],
  };
}

/**
 * Copies a data key to be wrapped: 32 bytes, or 32 or 64 if the service binds no context. The copy keeps
 * a second attempt from wrapping zeros if the caller has overwritten the original. Overwrite the copy after the call.
 *
 * @throws {TypeError} for anything but a `Uint8Array`, {@link RangeError} for any other length or if all bytes
 * are equal.
 */
export function copyDataKey(provider: string, dataKey: unknown, supports: ContextSupport): Uint8Array {
  if (!types.isUint8Array(dataKey)) {
    throw new TypeError(`${provider}: a data key must be ${lengths(supports)}, got ${show(dataKey)}`);
  }
  if (!isDataKey(dataKey, supports)) {
    throw new RangeError(
      `${provider}: a data key must be ${lengths(supports)} that are not all equal, got ${show(dataKey)}`,
    );
  }
  return new Uint8Array(dataKey);
}

/**
 * Moves the data key out of a service's answer: overwrites the SDK's bytes, whether or not the check passes.
 * @throws {KeyWrapperError} `corrupt` unless the answer has bytes that {@link copyDataKey} would accept.
 */
export function takeDataKey(
  provider: string,
  operation: KeyWrapperOperation,
  plaintext: unknown,
  supports: ContextSupport,
): Uint8Array {
  const isRight = types.isUint8Array(plaintext) && isDataKey(plaintext, supports);
  const dataKey = isRight ? new Uint8Array(plaintext) : undefined;
  overwrite(plaintext);
  if (dataKey !== undefined) return dataKey;
  throw corrupt(provider, operation, `the answer has no data key of ${lengths(supports)}`);
}

/** Overwrites bytes with zeros; ignores any other value. */
export function overwrite(bytes: unknown): void {
  if (types.isUint8Array(bytes)) bytes.fill(0);
}

/**
 * Copies the ciphertext that a service returned for a data key.
 * @throws {KeyWrapperError} `corrupt` unless `wrapped` is 1 to `maxBytes` bytes.
 */
export function copyWrapped(
  provider: string,
  operation: KeyWrapperOperation,
  wrapped: unknown,
  maxBytes: number,
): Uint8Array {
  if (!types.isUint8Array(wrapped) || wrapped.length === 0 || wrapped.length > maxBytes) {
    throw corrupt(provider, operation, 'the answer has no wrapped key');
  }
  return new Uint8Array(wrapped);
}

/**
 * Checks a wrapped key before any call, and copies it.
 *
 * @throws {TypeError} for a value that is not a wrapped key.
 * @throws {KeyWrapperError} `corrupt` if it belongs to another provider or KMS key, or is not 1 to `maxBytes` bytes long.
 */
export function readWrappedKey(provider: string, wrappedKey: unknown, rules: WrappedKeyRules): WrappedKey {
  const { provider: maker, keyId, wrapped } = Object(wrappedKey) as Readonly<Record<keyof WrappedKey, unknown>>;
  if (typeof maker !== 'string' || typeof keyId !== 'string' || !types.isUint8Array(wrapped)) {
    throw new TypeError(
      `${provider}: a wrapped key must have a provider, a keyId and wrapped bytes, got ${show(wrappedKey)}`,
    );
  }
  if (maker !== provider) throw corrupt(provider, 'unwrap', 'the wrapped key belongs to another provider');
  // A service reports any other length as a malformed request, which would look like a configuration error.
  if (wrapped.length === 0 || wrapped.length > rules.maxBytes) {
    throw corrupt(provider, 'unwrap', `the wrapped key is not 1 to ${rules.maxBytes} bytes long`);
  }
  if (!rules.owns(keyId)) {
    throw corrupt(provider, 'unwrap', 'the wrapped key names a KMS key that is neither keyId nor in alsoUnwrap');
  }
  return { provider, keyId, wrapped: new Uint8Array(wrapped) };
}

function isDataKey(bytes: Uint8Array, { context }: ContextSupport): boolean {
  const hasLength = bytes.length === DATA_KEY_BYTES || (!context && bytes.length === DATA_KEY_AND_HASH_BYTES);
  return hasLength && !isConstant(bytes.subarray(0, DATA_KEY_BYTES));
}

function lengths({ context }: ContextSupport): string {
  return context ? `${DATA_KEY_BYTES} bytes` : `${DATA_KEY_BYTES} or ${DATA_KEY_AND_HASH_BYTES} bytes`;
}
