import type { RequestStateCodec } from '@sealring/core';
import { hasMethods } from './option-checks.ts';

/** A codec that may have to look something up before it can unseal: a KMS codec. */
export interface PreparedCodec extends RequestStateCodec {
  prepare?(token: string, options: { readonly signal?: AbortSignal }): Promise<void>;
}

export function isCodec(value: unknown): value is PreparedCodec {
  return hasMethods(value, ['seal', 'unseal']);
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

/** An async function where a synchronous one belongs: its rejection must not end the process. */
export function swallow(value: unknown): void {
  if (value instanceof Promise) value.catch(() => {});
}
