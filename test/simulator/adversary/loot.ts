import { type StoredKey, storedKeys } from '../stored-keys.ts';
import type { Thefts } from '../thefts.ts';
import { EPOCH_MS } from '../timeline.ts';
import type { World } from '../world.ts';
import type { Powers } from './powers.ts';

/** Steals a data key of the kind that the threat model allows, if the ring has one now. */
export function steal(world: World, thefts: Thefts, kind: Powers['steals']): void {
  const id = victimOf(world, kind)?.id;
  if (id !== undefined) thefts.steal(id);
}

function victimOf(world: World, kind: Powers['steals']): StoredKey | undefined {
  const wallMs = EPOCH_MS + world.timeline.nowMs;
  const current = storedKeys(world.store.document);
  const live = current
    .filter((key) => key.revoked === undefined && Date.parse(key.opensUntil) > wallMs)
    .toSorted((a, b) => b.created.localeCompare(a.created));
  const any = (keys: readonly StoredKey[]): StoredKey | undefined =>
    keys.length === 0 ? undefined : world.dice.pick(keys);
  switch (kind) {
    case 'newest':
      return live[0];
    case 'older':
      return any(live.slice(1));
    case 'revoked':
      return any(current.filter((key) => key.revoked !== undefined));
    case 'ended':
      return any(
        [...world.firstSeen.values()].map(({ key }) => key).filter((key) => Date.parse(key.opensUntil) < wallMs),
      );
    case undefined:
      return undefined;
  }
}
