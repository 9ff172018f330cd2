import type { RequestStateCodec, SealUnavailableReason } from '@sealring/core';
import { show } from '@sealring/core/adapter';
import { hasMethods } from './option-checks.ts';

/** A codec that may have to look something up before it can seal or unseal: a KMS codec. */
export interface PreparedCodec extends RequestStateCodec {
  /** Before an unseal of `token`, or without one before a seal. Returns nothing when there is nothing to wait for. */
  prepare?(token: string | undefined, options: { readonly signal?: AbortSignal }): Promise<void> | undefined;
}

export function isCodec(value: unknown): value is PreparedCodec {
  return hasMethods(value, ['seal', 'unseal']);
}

/** @throws {TypeError} for what is no codec. */
export function readCodec(owner: string, name: string, value: unknown): PreparedCodec {
  if (!isCodec(value)) throw new TypeError(`${owner}: ${name} must have seal and unseal, got ${show(value)}`);
  return value;
}

/**
 * A key may be gone before such a token expires: it would be refused while it is still promised.
 * @throws {RangeError} when `ttlSeconds` is longer than the codec's `tokenLifetimeSeconds`, if it has one.
 */
export function checkLifetime(owner: string, codec: object, ttlSeconds: number): void {
  const lifetime: unknown = Reflect.get(codec, 'tokenLifetimeSeconds');
  if (typeof lifetime === 'number' && !(lifetime >= ttlSeconds)) {
    throw new RangeError(
      `${owner}: ttlSeconds ${ttlSeconds} is longer than the codec's tokenLifetimeSeconds ${lifetime}`,
    );
  }
}

/** The word of a codec that refused a token; undefined for any other failure. */
export function codecReason(error: unknown): 'malformed' | 'unknown key' | 'seal' | undefined {
  // By name, not by class: a codec may come with its own copy of the class.
  if (!(error instanceof Error) || error.name !== 'InvalidRequestState' || !('reason' in error)) return undefined;
  const { reason } = error;
  return reason === 'malformed' || reason === 'unknown key' || reason === 'seal' ? reason : undefined;
}

// Here, because a codec may come with its own copy of the class: no other text of its is repeated.
const SEAL_UNAVAILABLE: readonly string[] = [
  'no active key',
  'key proof too old',
  'ring read too old',
  'key refused by the kms',
  'reader',
  'token limit of the key reached',
] satisfies readonly SealUnavailableReason[];

/** Whether no key of the codec's may seal at this moment. */
export function isSealUnavailable(error: unknown): error is Error {
  return error instanceof Error && error.name === 'SealUnavailableError';
}

/** Why none may, where it is one of the known words. */
export function sealUnavailableReason(error: Error): SealUnavailableReason | undefined {
  const reason: unknown = Reflect.get(error, 'reason');
  return isSealUnavailableReason(reason) ? reason : undefined;
}

function isSealUnavailableReason(value: unknown): value is SealUnavailableReason {
  return typeof value === 'string' && SEAL_UNAVAILABLE.includes(value);
}

/** An async function where a synchronous one belongs: its rejection must not end the process. */
export function swallow(value: unknown): void {
  if (value instanceof Promise) value.catch(() => {});
}
