import type { RequestStateCodec, SealUnavailableReason } from '@sealring/core';
import { optionRangeError, optionTypeError, show } from '@sealring/core/adapter';
import { hasMethods } from './option-checks.ts';

/** A codec that may have to fetch a key before it can seal or unseal: a KMS codec. */
export interface PreparedCodec extends RequestStateCodec {
  /** Called with the token before unsealing, and without one before sealing. Returns undefined if the codec is ready. */
  prepare?(token: string | undefined, options: { readonly signal?: AbortSignal }): Promise<void> | undefined;
}

export function isCodec(value: unknown): value is PreparedCodec {
  return hasMethods(value, ['seal', 'unseal']);
}

/** @throws {TypeError} for a value that is not a codec. */
export function readCodec(owner: string, name: string, value: unknown): PreparedCodec {
  if (!isCodec(value)) throw optionTypeError(`${owner}: ${name} must have seal and unseal, got ${show(value)}`);
  return value;
}

/**
 * Checks that the codec keeps a key for as long as a token lives.
 * @throws {RangeError} when `ttlSeconds` is longer than the codec's `tokenLifetimeSeconds`, if it has one.
 */
export function checkLifetime(owner: string, codec: object, ttlSeconds: number): void {
  const lifetime: unknown = Reflect.get(codec, 'tokenLifetimeSeconds');
  if (typeof lifetime === 'number' && !(lifetime >= ttlSeconds)) {
    throw optionRangeError(
      `${owner}: ttlSeconds ${ttlSeconds} is longer than the codec's tokenLifetimeSeconds ${lifetime}`,
    );
  }
}

/** The reason why a codec refused a token; undefined for any other failure. */
export function codecReason(error: unknown): 'malformed' | 'unknown key' | 'authentication failed' | undefined {
  // By name, not by class: a codec may use another copy of @sealring/core.
  if (!(error instanceof Error) || error.name !== 'InvalidRequestState' || !('reason' in error)) return undefined;
  const { reason } = error;
  // A codec that was ported from the MCP Python SDK says `seal`.
  if (reason === 'seal') return 'authentication failed';
  return reason === 'malformed' || reason === 'unknown key' || reason === 'authentication failed' ? reason : undefined;
}

// Listed here, because a codec may use another copy of @sealring/core. Other text of an error is never repeated.
const SEAL_UNAVAILABLE: readonly unknown[] = [
  'no active key',
  'KMS check too old',
  'ring read too old',
  'key refused by the kms',
  'reader',
  'token limit of the key reached',
] satisfies readonly SealUnavailableReason[];

/** Whether a codec threw because no key may seal now. */
export function isSealUnavailable(error: unknown): error is Error {
  return error instanceof Error && error.name === 'SealUnavailableError';
}

/** The reason of such an error, if it is a known one. */
export function sealUnavailableReason(error: Error): SealUnavailableReason | undefined {
  const reason: unknown = Reflect.get(error, 'reason');
  return isSealUnavailableReason(reason) ? reason : undefined;
}

function isSealUnavailableReason(value: unknown): value is SealUnavailableReason {
  return SEAL_UNAVAILABLE.includes(value);
}

/** Handles the promise of an async function that was given in place of a synchronous one: its rejection must not end the process. */
export function swallow(value: unknown): void {
  if (value instanceof Promise) value.catch(() => {});
}
