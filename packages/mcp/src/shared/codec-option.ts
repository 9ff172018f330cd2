import {
  INVALID_REASONS,
  type InvalidReason,
  type RequestStateCodec,
  SEAL_UNAVAILABLE_REASONS,
  type SealUnavailableError,
  type SealUnavailableReason,
} from '@sealring/core';
import { option } from '@sealring/core/adapter';
import { hasMethods } from './option-checks.ts';

/** A codec that may have to fetch a key before it can seal or unseal, such as a KMS codec. */
export interface PreparedCodec extends RequestStateCodec {
  /** Called with the token before unsealing, and without one before sealing. Returns undefined if the codec is ready. */
  prepare?(token: string | undefined, options: { readonly signal?: AbortSignal }): Promise<void> | undefined;
}

export function isCodec(value: unknown): value is PreparedCodec {
  return hasMethods(value, ['seal', 'unseal']);
}

/** @throws {TypeError} for a value that is not a codec. */
export function readCodec(owner: string, name: string, value: unknown): PreparedCodec {
  if (!isCodec(value)) throw option.typeError(`${owner}: ${name} must have seal and unseal, got ${option.show(value)}`);
  return value;
}

/**
 * Checks that the codec keeps a key for as long as a token lives.
 * @throws {RangeError} when `ttlSeconds` is longer than the codec's `tokenLifetimeSeconds`, if it has one.
 */
export function checkLifetime(owner: string, codec: object, ttlSeconds: number): void {
  const lifetime: unknown = Reflect.get(codec, 'tokenLifetimeSeconds');
  if (typeof lifetime === 'number' && !(lifetime >= ttlSeconds)) {
    throw option.rangeError(
      `${owner}: ttlSeconds ${ttlSeconds} is longer than the codec's tokenLifetimeSeconds ${lifetime}`,
    );
  }
}

/** The reason why a codec refused a token; undefined for any other failure. */
export function codecReason(error: unknown): InvalidReason | undefined {
  // Compares the name and not the class, because the contract for codecs defines no class.
  if (!(error instanceof Error) || error.name !== 'InvalidRequestState' || !('reason' in error)) return undefined;
  const { reason } = error;
  // A codec that was ported from the MCP Python SDK uses the reason `seal`.
  if (reason === 'seal') return 'authentication failed';
  return INVALID_REASONS.find((known) => known === reason);
}

/** The reason of a SealUnavailableError, if it is a known reason. Other text from the error is never repeated. */
export function sealUnavailableReason(error: SealUnavailableError): SealUnavailableReason | undefined {
  return SEAL_UNAVAILABLE_REASONS.find((known) => known === error.reason);
}

/** Handles the promise of an async function that was given in place of a synchronous one: its rejection must not end the process. */
export function swallow(value: unknown): void {
  if (value instanceof Promise) value.catch(() => {});
}
