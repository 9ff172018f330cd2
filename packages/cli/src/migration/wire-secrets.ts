import type { KmsCodec } from '@sealring/core';
import { formatSecretsOf } from '@sealring/core/format-secrets';
import { Failure } from '../failure.ts';

/** The wires of other implementations, which start from a secret of their own. */
export const WIRES = ['python', 'typescript', 'mcp.d'] as const;
export type Wire = (typeof WIRES)[number];

/**
 * The secrets that one wire starts from, base64url of 32 bytes each: that of the key which seals first, then the others
 * that may open, newest first. Derived one way: they open tokens of that wire, and neither ring nor native tokens.
 *
 * @throws {Failure} when no key of the ring seals now.
 */
export function wireSecretsOf(codec: KmsCodec, wire: Wire): readonly string[] {
  const open = formatSecretsOf(codec, wire).open.map((key) => key.export().toString('base64url'));
  // In the order of the secrets.
  const keys = codec
    .health()
    .keys.filter(({ state, held }) => held && state !== 'revoked' && state !== 'retired')
    .toReversed();
  const sealing = open[keys.findIndex(({ state }) => state === 'active')];
  if (sealing === undefined || keys.length !== open.length) {
    throw new Failure('no key of the ring seals now, or one of them was not unwrapped: "sealring status" says more');
  }
  return [sealing, ...open.filter((secret) => secret !== sealing)];
}
