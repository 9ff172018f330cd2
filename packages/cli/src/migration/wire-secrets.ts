import type { KmsCodec } from '@sealring/core';
import { formatSecretsOf } from '@sealring/core/format-secrets';
import { Failure } from '../failure.ts';
import { isLive } from '../ring/key-state.ts';

/** The wires of other implementations. Each has its own secrets. */
export const WIRES = ['python', 'typescript', 'mcp.d'] as const;
export type Wire = (typeof WIRES)[number];

/**
 * The secrets of one wire format, in base64url, 32 bytes each: first the secret of the active key, then the secrets of
 * the other keys that may unseal, newest first. The derivation is one-way: the secrets unseal tokens of that wire only,
 * and do not reveal the data keys.
 *
 * @throws {Failure} if no key of the ring seals now.
 */
export function wireSecretsOf(codec: KmsCodec, wire: Wire): readonly string[] {
  const secrets = formatSecretsOf(codec, wire).open.map((key) => key.export().toString('base64url'));
  // In the same order as the secrets.
  const keys = codec
    .health()
    .keys.filter((key) => key.held && isLive(key))
    .toReversed();
  const sealing = secrets[keys.findIndex(({ state }) => state === 'active')];
  if (sealing === undefined || keys.length !== secrets.length) {
    throw new Failure(
      'no-sealing-key',
      'no key of the ring seals now, or a live key could not be unwrapped: run "sealring status"',
    );
  }
  return [sealing, ...secrets.filter((secret) => secret !== sealing)];
}
