import type { KeyHealth, KmsCodec } from '@sealring/core';
import { keyNamed } from '../ring/key-name.ts';
import { UsageError } from '../usage-error.ts';

/** The keys to revoke: one by its name, id or fingerprint, or all that may have been created up to a time. */
export type RevocationTarget = { readonly key: string } | { readonly before: Date };

/** A time later than the creation of any key: a document has four digits for a year. */
export const END_OF_TIME: Date = new Date('9999-12-31T23:59:59Z');

/** The keys to revoke. A key that is already revoked is included only if it is named. @throws {UsageError} */
export function keysToRevoke(
  target: RevocationTarget,
  keys: readonly KeyHealth[],
  clockSkewSeconds: number,
): readonly KeyHealth[] {
  if ('key' in target) {
    const key = keyNamed(target.key, keys);
    if (key === undefined) throw new UsageError(`the ring has no key "${target.key.slice(0, 80)}"`);
    return [key];
  }
  const latest = target.before.getTime() + clockSkewSeconds * 1_000;
  return keys.filter(({ state, created }) => state !== 'revoked' && created.getTime() <= latest);
}

/** Revokes the keys. @returns the keys that this call revoked, and the named key in any case. */
export async function revoke(codec: KmsCodec, target: RevocationTarget): Promise<readonly KeyHealth[]> {
  const before = revokedIn(codec);
  const named = 'key' in target ? keysToRevoke(target, codec.health().keys, 0)[0]?.id : undefined;
  await ('before' in target ? codec.revokeAllBefore(target.before) : codec.revoke(named ?? ''));
  const known = new Set(before.map(({ id }) => id));
  return revokedIn(codec).filter(({ id }) => !known.has(id) || id === named);
}

/** The keys that a codec treats as revoked. */
export function revokedIn(codec: KmsCodec): readonly KeyHealth[] {
  return codec.health().keys.filter(({ state }) => state === 'revoked');
}
