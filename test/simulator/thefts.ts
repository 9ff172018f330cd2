// @boundaries-ignore an adversary forges documents with the core's own code
import { keyIdOf } from '../../packages/core/src/formats/derivation.ts';
// @boundaries-ignore an adversary forges documents with the core's own code
import { DataKey } from '../../packages/core/src/keys/data-key.ts';
// @boundaries-ignore an adversary forges documents with the core's own code
import { isNewer } from '../../packages/core/src/ring/certificates.ts';
import type { World } from './world.ts';

/** Stolen data keys. */
export interface StolenKey {
  readonly id: string;
  readonly created: number;
  readonly dataKey: Uint8Array;
  readonly held: DataKey;
}

/** The name of the ring in this world: the default. */
export const RING = 'default';

/** Keys that were stolen or made: an attacker certifies with them as any member could. */
export class Thefts {
  readonly #world: World;
  /** Data keys of the ring. */
  readonly stolen: StolenKey[] = [];
  /** The attacker's own data keys. */
  readonly own: StolenKey[] = [];

  constructor(world: World) {
    this.#world = world;
  }

  /** Steals a key of the ring by its id. */
  steal(id: string): void {
    const dataKey = this.#world.kms.dataKeys.find((key) => keyIdOf(key).toString('base64url') === id);
    const created = this.#createdOf(id);
    if (dataKey === undefined || created === undefined || this.stolen.some((key) => key.id === id)) return;
    this.#world.trace(`stolen: ${id}`);
    this.stolen.push({ id, created, dataKey, held: new DataKey(dataKey, RING) });
  }

  /** Creates a data key for the attacker. */
  make(dataKey: Uint8Array, created: number): StolenKey {
    const held = new DataKey(dataKey, RING);
    const key = { id: held.id, created, dataKey, held };
    this.own.push(key);
    return key;
  }

  get all(): readonly StolenKey[] {
    return [...this.stolen, ...this.own];
  }

  isOwn(id: string): boolean {
    return this.own.some((key) => key.id === id);
  }

  /** Whether a key is the attacker's own, or was made by a member that took the attacker's ring for the genuine one. */
  isForeign(id: string): boolean {
    if (this.isOwn(id)) return true;
    const { vouchers = {} } = this.#world.firstSeen.get(id)?.key ?? {};
    return Object.keys(vouchers).some((voucher) => voucher !== id && this.isOwn(voucher));
  }

  /** Whether the stolen keys certify the revocation of a key: their own, and, while not revoked, of every older one. */
  mayRevoke(id: string, isKnownAsRevoked: (id: string) => boolean = () => false): boolean {
    if (this.stolen.length === 0) return false;
    const created = this.#createdOf(id);
    if (created === undefined) return false;
    return this.stolen.some((key) => key.id === id || (isNewer(key, { id, created }) && !isKnownAsRevoked(key.id)));
  }

  /** The time in the first document that had the key: later documents may be forged. */
  #createdOf(id: string): number | undefined {
    const seen = this.#world.firstSeen.get(id);
    return seen === undefined ? undefined : Date.parse(seen.key.created);
  }
}
