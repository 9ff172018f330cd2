import type { Excuses } from './excuses.ts';
import { storedKeys } from './stored-keys.ts';
import { type World } from './world.ts';

/**
 * The time from which the revocation of a key spreads. A store that fails over, or loses everything, loses it too; it
 * spreads again once a member that knows it can write it.
 */
export class Spreading {
  readonly #world: World;
  readonly #excuses: Excuses;
  readonly #revokedAt: ReadonlyMap<string, number>;
  /** When the store last lost a revocation, or no member could write it again, milliseconds. */
  readonly #lostAt = new Map<string, number>();
  readonly #missing = new Set<string>();

  constructor(world: World, excuses: Excuses, revokedAt: ReadonlyMap<string, number>) {
    this.#world = world;
    this.#excuses = excuses;
    this.#revokedAt = revokedAt;
    world.listen(({ kind }) => {
      if (kind === 'stored') this.look();
    });
  }

  /** Milliseconds since the revocation of a key could begin to spread; undefined if it was not revoked. */
  sinceMs(keyId: string): number | undefined {
    const revokedAt = this.#revokedAt.get(keyId);
    if (revokedAt === undefined) return undefined;
    this.look();
    return this.#world.timeline.nowMs - Math.max(revokedAt, this.#lostAt.get(keyId) ?? 0);
  }

  /** Whether the store lost the revocation of a key, so that it must be restored first. */
  wasLost(keyId: string): boolean {
    return this.#lostAt.has(keyId);
  }

  /** Checks the stored document. */
  look(): void {
    if (this.#revokedAt.size === 0) return;
    const stored = storedKeys(this.#world.store.document).filter(({ revoked }) => revoked !== undefined);
    const ids = new Set(stored.map(({ id }) => id));
    for (const id of this.#revokedAt.keys()) {
      if (ids.has(id)) {
        this.#missing.delete(id);
        continue;
      }
      if (!this.#missing.has(id) || !this.#isHealable(id)) this.#lostAt.set(id, this.#world.timeline.nowMs);
      this.#missing.add(id);
    }
  }

  /** Whether a member that knows a key as revoked has had the time to read the ring, and to write it. */
  #isHealable(id: string): boolean {
    const { timeline, storeTrouble, members } = this.#world;
    const { refreshMs } = this.#excuses;
    if (storeTrouble.isLately(timeline.nowMs, refreshMs)) return false;
    return members.some((member) => {
      const { store, machine } = this.#world.ownTrouble(member);
      const isAway = [store, machine].some((trouble) => trouble.isLately(timeline.nowMs, refreshMs));
      if (!member.isUp || isAway || this.#excuses.isLost(member)) return false;
      return member.codec?.health().keys.some((key) => key.id === id && key.state === 'revoked') === true;
    });
  }
}
