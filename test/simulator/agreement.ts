import { type SimulatedMember } from './member.ts';
import { storedKeys } from './stored-keys.ts';
import { EPOCH_MS } from './timeline.ts';
import { SECOND, type World } from './world.ts';

/** Entries that a member keeps in the document without having unwrapped them. */
const MOST_CARRIED = 4;

/** A key as two parties compare it: id, and whether it is revoked. */
function told(id: string, isRevoked: boolean): string {
  return isRevoked ? `${id}!` : id;
}

/**
 * The first member whose ring differs from the store's ring, and the difference; keys that expire at this moment do not
 * count.
 */
export function disagreement(world: World, members: readonly SimulatedMember[]): string | undefined {
  const soon = EPOCH_MS + world.timeline.nowMs + world.options.clockSkewSeconds * SECOND;
  // An entry with a voucher that no member unwraps is not a key; a key has the times of its publication.
  const counts = (id: string): boolean =>
    world.kms.isGenuine(id) &&
    !world.isStray(id) &&
    !world.isMisdated(id) &&
    Date.parse(world.firstSeen.get(id)?.key.opensUntil ?? '') > soon;
  // A claim that no member accepts is junk, which stays until the next write.
  const believed = new Set(
    members
      .flatMap(({ codec }) => codec?.health().keys.filter(({ state }) => state === 'revoked') ?? [])
      .map(({ id }) => id),
  );
  const stored = storedKeys(world.store.document)
    .filter((key) => counts(key.id))
    .map((key) => told(key.id, key.revoked !== undefined && believed.has(key.id)));
  if (!storedKeys(world.store.document).some(({ id }) => world.kms.isGenuine(id))) return 'the store holds no ring';
  // Entries that a writer carries beside the keys may leave with the next write.
  const isFull = storedKeys(world.store.document).length >= 64 - MOST_CARRIED;
  for (const member of members) {
    if (!member.isUp || member.codec === undefined) continue;
    const known = member.codec
      .health()
      .keys.filter((key) => counts(key.id) && (key.held || key.state === 'revoked'))
      .map((key) => told(key.id, key.state === 'revoked'));
    // A member that does not know a revoked key cannot use it either; so the oldest of them leave a full document.
    const hasNoRoom = isFull && member.codec.health().keys.length >= 64;
    const more = known.filter((key) => !stored.includes(key) && !(hasNoRoom && key.endsWith('!')));
    const less = stored.filter((key) => !known.includes(key) && !key.endsWith('!'));
    if (more.length + less.length > 0) {
      return `${member.name} alone knows ${more.join(' ') || 'nothing'}, the store alone ${less.join(' ') || 'nothing'}`;
    }
  }
  return undefined;
}

/** The first token of one member that another refuses though both are up. */
export function mutualRefusal(members: readonly SimulatedMember[]): string | undefined {
  const up = members.filter((member) => member.isUp && member.codec !== undefined);
  for (const sealer of up) {
    let token: string;
    try {
      token = sealer.codec?.seal(new Uint8Array(2)) ?? '';
    } catch (error) {
      return `${sealer.name} does not seal: ${String(error)}`;
    }
    for (const opener of up) {
      try {
        opener.codec?.unseal(token);
      } catch {
        return `${opener.name} refuses a token of ${sealer.name} with ${token.slice(4, 16)}`;
      }
    }
  }
  return undefined;
}
