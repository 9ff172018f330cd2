import type { Minted } from './excuses.ts';
import type { SimulatedMember } from './member.ts';
import { HOUR, type World } from './world.ts';

/** Keys whose last token is tried again; older ones expired long ago. */
const KEPT = 12;
/** A token need not unseal for longer than it lives, but a client may still present it. */
const TRIED_FOR_MS: number = 60 * HOUR;

/** The last token of every key, presented repeatedly: under a revoked or expired key it must not unseal. */
export class Keepsakes {
  readonly #world: World;
  readonly #opens: (member: SimulatedMember, minted: Minted) => boolean;
  readonly #byKey = new Map<string, Minted>();

  constructor(world: World, opens: (member: SimulatedMember, minted: Minted) => boolean) {
    this.#world = world;
    this.#opens = opens;
  }

  keep(minted: Minted): void {
    this.#byKey.delete(minted.keyId);
    this.#byKey.set(minted.keyId, minted);
    for (const id of this.#byKey.keys()) {
      if (this.#byKey.size <= KEPT) return;
      this.#byKey.delete(id);
    }
  }

  /** One token at one member each; the caller checks what it unsealed to. */
  tryAll(): void {
    for (const minted of this.#byKey.values()) this.#try(minted, this.#world.anyMember());
  }

  /** Every token at one member. */
  tryAllAt(member: SimulatedMember): void {
    if (member.isUp) for (const minted of this.#byKey.values()) this.#try(minted, member);
  }

  #try(minted: Minted, member: SimulatedMember | undefined): void {
    if (this.#world.timeline.nowMs - minted.atMs > TRIED_FOR_MS) return;
    // A token with an unknown key would only make the member read the ring.
    const isKnown = member?.codec?.health().keys.some(({ id }) => id === minted.keyId) === true;
    if (member !== undefined && isKnown) this.#opens(member, minted);
  }
}
