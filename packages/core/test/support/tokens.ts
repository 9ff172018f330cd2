import { randomFillSync } from 'node:crypto';
import type { DataKey } from '../../src/keys/data-key.ts';
import { EnvelopeKeyCache } from '../../src/keys/envelope-key-cache.ts';
import type { UsableKey } from '../../src/ring/snapshot.ts';
import { type KeySource, SealringTokens } from '../../src/tokens/token-formats.ts';
import { createSealingState } from '../../src/tokens/token-sealer.ts';

/** A key of the ring that may seal and unseal. */
export function usable(held: DataKey): UsableKey {
  const times = { created: 0, activates: 0, sealsUntil: Infinity, opensUntil: Infinity };
  const facts = { revoked: false, revocation: undefined, vouchers: new Map(), wraps: [] };
  const { id, authenticator } = held;
  return { id, ...times, ...facts, held, authenticator, sealsFromSteadyMs: 0, isLeft: false };
}

/** A source of some keys by id, of which the first seals; remembers the ids that it did not have. */
export function sourceOf(
  keys: readonly DataKey[],
  byId: ReadonlyMap<string, DataKey> = new Map(keys.map((key) => [key.id, key])),
): KeySource & { readonly misses: (string | undefined)[] } {
  const misses: (string | undefined)[] = [];
  return {
    misses,
    sealingKey: () => usable(keys[0] as DataKey),
    unsealingKey: (id) => [byId.get(id) ?? []].flat().map(usable)[0],
    unsealingKeys: () => keys.map(usable),
    noteUnknownKey: (id) => void misses.push(id),
  };
}

/** Native tokens over such a source. */
export function tokensOver(
  source: KeySource & { readonly misses: (string | undefined)[] },
  options: {
    readonly purpose?: string | undefined;
    readonly maxTokenLength?: number;
    readonly cache?: EnvelopeKeyCache;
  } = {},
): SealringTokens & { readonly misses: (string | undefined)[] } {
  const random = (fill: Uint8Array): void => void randomFillSync(fill);
  const state = createSealingState({ random, hedge: false, kernelEntropy: () => new Uint8Array(0) });
  const { purpose, maxTokenLength = 256 * 1024, cache = new EnvelopeKeyCache('payments') } = options;
  return Object.assign(new SealringTokens(source, state, cache, { purpose, maxTokenLength }), {
    misses: source.misses,
  });
}
