import type { KeyHealth, KmsCodec } from '@sealring/core';
import type { Excuses } from './excuses.ts';
import { type SimulatedMember } from './member.ts';
import { type StoredKey, storedKeys } from './stored-keys.ts';
import type { Thefts } from './thefts.ts';
import { EPOCH_MS } from './timeline.ts';
import { type FirstSeen, propagationSecondsOf, SECOND, type World } from './world.ts';

/** A time that is longer than one check of all members. */
const LATELY_MS = 900_000;
/** How long a second ring that was created concurrently may stay in the store. */
const STRAY_MS = 1_800_000;
/** Keys that a member keeps without having unwrapped them. */
const MOST_CARRIED = 4;
/** How far `created` may be ahead of what the clocks allow: each key of a full ring is a second newer than the last. */
const CREATED_TOLERANCE_MS: number = 64 * SECOND;
/** Longest time that a write takes unless the network holds it. */
const WRITE_SECONDS = 5;

/** The facts that one process has known. */
interface Memory {
  readonly codec: KmsCodec;
  readonly keys: Map<string, KeyHealth>;
  lastSealed: string | undefined;
}

/**
 * A member forgets nothing before its end: it keeps every key until the key expires, it keeps every revocation, and it
 * never seals with an older key again. It accepts no unauthorized statement: every key comes from the fleet, every
 * revocation from an authorized party.
 */
export class MemoryLaws {
  readonly #world: World;
  readonly #excuses: Excuses;
  readonly #thefts: Thefts;
  readonly #isWished: (key: KeyHealth) => boolean;
  readonly #report: (law: string, detail: string) => void;
  readonly #memories = new Map<SimulatedMember, Memory>();
  /** When the attacker last held a key that was not revoked, milliseconds. */
  readonly #trustedAt = new Map<string, number>();
  readonly #revokedSomewhere = new Set<string>();
  /** Keys whose vouchers were checked. */
  readonly #vouched = new Set<string>();
  /** Keys that the store has held. */
  readonly #published = new Set<string>();

  constructor(options: {
    readonly world: World;
    readonly excuses: Excuses;
    readonly thefts: Thefts;
    /** Whether an authorized party requested the revocation of a key. */
    readonly isWished: (key: KeyHealth) => boolean;
    readonly report: (law: string, detail: string) => void;
  }) {
    this.#world = options.world;
    this.#excuses = options.excuses;
    this.#thefts = options.thefts;
    this.#isWished = options.isWished;
    this.#report = options.report;
  }

  /** Checks some of the members. */
  look(): void {
    for (const member of this.#world.sample()) if (member.isUp) this.#lookAt(member);
    this.#lookAtPublications();
    this.#lookAtVouchers();
    this.#lookAtStore();
  }

  sealed(member: SimulatedMember, keyId: string): void {
    const memory = this.#memoryOf(member);
    if (memory === undefined) return;
    if (this.#thefts.isOwn(keyId) && this.isJudged(member)) {
      this.#report('no member seals with a foreign key', `${member.name} sealed with ${keyId}`);
    }
    const last = this.#timesOf(memory.lastSealed);
    const now = this.#timesOf(keyId);
    const isOlder = last !== undefined && now !== undefined && (now === last ? 0 : now.localeCompare(last)) < 0;
    // A member that began in an attacker's ring and changed to another one is not bound by the first.
    const isBound = !this.#isRevokedAt(memory, memory.lastSealed) && !this.#world.isStray(memory.lastSealed ?? '');
    if (isOlder && isBound && !this.#excuses.isLost(member)) {
      this.#report(
        'no member seals with an older key again',
        `${member.name}: ${keyId} after ${memory.lastSealed ?? ''}`,
      );
    }
    memory.lastSealed = keyId;
  }

  /** Whether this member read its ring while no attacker with permission to wrap could deceive its start. */
  isJudged(member: SimulatedMember): boolean {
    return !this.#world.mayWrap || !this.#excuses.isLost(member);
  }

  #lookAt(member: SimulatedMember): void {
    const memory = this.#memoryOf(member);
    if (memory === undefined) return;
    const health = memory.codec.health();
    const keys = new Map(health.keys.map((key) => [key.id, key]));
    const wall = EPOCH_MS + this.#world.timeline.nowMs;
    const skew = this.#world.options.clockSkewSeconds * SECOND;
    for (const known of memory.keys.values()) {
      if (!this.#world.kms.isGenuine(known.id)) continue;
      const key = keys.get(known.id);
      const isLive = wall < known.unsealsUntil.getTime() - skew;
      // By a clock that no date confirms, nothing has expired.
      const isKept = key?.held === true || key?.state === 'revoked';
      if (known.held && !isKept && isLive && !this.#excuses.isDeceived(member) && this.#world.isDated) {
        this.#report('a known key stays until it ends', `${member.name} forgot ${known.id}`);
      }
      const isKnownAsRevoked = known.state === 'revoked' && this.#isAsPublished(known);
      if (isKnownAsRevoked && key?.held === true && key.state !== 'revoked') {
        this.#report('a known revocation stays', `${member.name} unseals with ${known.id} again`);
      }
      if (known.held && key?.held === true && Number(key.unsealsUntil) !== Number(known.unsealsUntil)) {
        this.#report('the times of a key stay', `${member.name}: ${known.id}`);
      }
    }
    for (const key of keys.values()) if (key.held) this.#trustedAt.set(key.id, this.#world.timeline.nowMs);
    for (const key of keys.values()) {
      this.#judgeRevocation(member, key);
      if (key.held && this.#thefts.isOwn(key.id) && this.isJudged(member)) {
        this.#report('no member holds a foreign key', `${member.name} holds ${key.id}`);
      }
    }
    const carried = health.keys.filter(
      ({ id, held, state }) =>
        !held && state !== 'revoked' && state !== 'expired' && memory.keys.get(id)?.held !== true,
    );
    if (carried.length > MOST_CARRIED) {
      this.#report('at most 4 keys are carried', `${member.name} carries ${carried.length}`);
    }
    for (const key of keys.values()) memory.keys.set(key.id, key);
  }

  /**
   * A member knows the revocation of a key that it never unwrapped by the times in the document: edited times let
   * another key certify it, until the right ones come. An attacker who writes to the store can keep that key from the
   * member anyway.
   */
  #isAsPublished({ id, created, unsealsUntil }: KeyHealth): boolean {
    const seen = this.#world.firstSeen.get(id)?.key;
    return (
      Date.parse(seen?.created ?? '') === Number(created) && Date.parse(seen?.opensUntil ?? '') === Number(unsealsUntil)
    );
  }

  /**
   * Checks only the first member that treats a key as revoked: the others may have learned this from it. A thief whose
   * key no member trusts certifies nothing.
   */
  #judgeRevocation(member: SimulatedMember, key: KeyHealth): void {
    const { nowMs } = this.#world.timeline;
    if (key.state !== 'revoked' || !this.#isAsPublished(key) || this.#revokedSomewhere.has(key.id)) return;
    this.#revokedSomewhere.add(key.id);
    if (this.#isWished(key) || this.#thefts.isOwn(key.id) || !this.#world.kms.isGenuine(key.id)) return;
    const isTrustedNoMore = (id: string): boolean => nowMs - (this.#trustedAt.get(id) ?? nowMs) > LATELY_MS;
    if (!this.isJudged(member) || this.#thefts.mayRevoke(key.id, isTrustedNoMore)) return;
    this.#report('no unauthorized party revokes a key', `${member.name} takes ${key.id} for revoked`);
  }

  /** With permission to wrap, an attacker can give a starting member another ring, but never a mixed one. */
  started(member: SimulatedMember): void {
    this.#lookAt(member);
    if (!this.#world.mayWrap || this.#thefts.stolen.length > 0) return;
    const held = member.heldKeys;
    if (held.some(({ id }) => this.#thefts.isForeign(id)) && held.some(({ id }) => !this.#thefts.isForeign(id))) {
      this.#report('two lineages are not one ring', `${member.name} started with both`);
    }
  }

  /** A member that was deceived at its start accepts no key of the genuine ring: none is linked to its own. */
  #lookAtVouchers(): void {
    const { firstSeen, mayWrap } = this.#world;
    if (!mayWrap || this.#thefts.stolen.length > 0) return;
    for (const [id, { key, isHonest }] of firstSeen) {
      if (this.#vouched.has(id)) continue;
      this.#vouched.add(id);
      const by = Object.keys(key.vouchers).filter((voucher) => firstSeen.has(voucher));
      if (!isHonest || this.#thefts.isOwn(id)) continue;
      if (
        by.some((voucher) => this.#thefts.isForeign(voucher)) &&
        by.some((voucher) => !this.#thefts.isForeign(voucher))
      ) {
        this.#report('two lineages are not one ring', `${id} is vouched for by both`);
      }
    }
  }

  /** Of two rings in one store the older stays, and all members read it. */
  #lookAtStore(): void {
    const { store, storeTrouble, hostility, timeline } = this.#world;
    const keys = storedKeys(store.document);
    const lastMs = Math.max(0, ...keys.map(({ id }) => this.#world.publishedAt(id) ?? 0));
    if (keys.length === 0 || timeline.nowMs - lastMs < STRAY_MS) return;
    if (storeTrouble.isLately(timeline.nowMs, STRAY_MS) || hostility.isLately(timeline.nowMs, STRAY_MS)) return;
    if (keys.every(({ id }) => this.#world.isStray(id))) this.#report('the older ring stays', keys[0]?.id ?? '');
  }

  /** Unless requested for immediate use, a key waits for the propagation time from the moment when it can be read. */
  #lookAtPublications(): void {
    const { policy, lastHeldAtMs, timeline } = this.#world;
    for (const [id, seen] of this.#world.firstSeen) {
      const { at, key, isHonest, by } = seen;
      if (this.#published.has(id) || !isHonest) continue;
      if (timeline.nowMs - at < 600 * SECOND) continue;
      this.#published.add(id);
      // An entry with a key that no one holds is junk; an attacker who deceived a starting server chooses any times.
      const isKnown = this.#world.members.some((member) => member.heldKeys.some((each) => each.id === id));
      if (isKnown && this.#world.hostility.spells.length === 0) this.#judgeVouchers(seen);
      if (
        !isKnown ||
        this.#thefts.isForeign(id) ||
        this.#excuses.isHasty(id) ||
        timeline.nowMs - lastHeldAtMs < 86_400 * SECOND
      )
        continue;
      const wait = Date.parse(key.activates) - EPOCH_MS - at;
      // It is written within a refresh of its making, and its times follow its maker's clock.
      const leastMs = (propagationSecondsOf(policy) - policy.refreshEverySeconds - WRITE_SECONDS) * SECOND;
      const skewMs = by?.lowestSkewMs ?? (-policy.clockSkewSeconds / 2) * SECOND;
      if (wait < leastMs + skewMs) {
        this.#report('a planned key waits', `${id} is active ${Math.round(wait / SECOND)} s after it was stored`);
      }
    }
  }

  /** Its publisher had read the document: a new key is newer, and has vouchers by every key that can sign. */
  #judgeVouchers({ at, key, before: stored }: FirstSeen): void {
    // The members learn nothing yet from a key that was made by a clock that was far ahead, without a date to compare
    // with.
    const futureMs = Date.parse(key.created) + this.#world.policy.clockSkewSeconds * SECOND + CREATED_TOLERANCE_MS;
    const before = stored.filter(({ created }) => Date.parse(created) <= futureMs);
    const newer = before.filter((other) => other.created >= key.created);
    if (newer.length > 0)
      this.#report('a new key is newer than every known one', `${key.id} and ${newer[0]?.id ?? ''}`);
    // A member that started a short while ago need not know what has expired since.
    const isLive = (other: StoredKey): boolean => Date.parse(other.opensUntil) > EPOCH_MS + at;
    const signers = before.filter((other) => other.revoked === undefined && isLive(other)).length;
    if (Object.keys(key.vouchers).length < Math.min(signers, 4)) {
      this.#report('every key that can vouches for a new key', `${key.id} after ${signers} keys`);
    }
  }

  #memoryOf(member: SimulatedMember): Memory | undefined {
    const { codec } = member;
    if (codec === undefined) return undefined;
    let memory = this.#memories.get(member);
    if (memory?.codec !== codec) {
      memory = { codec, keys: new Map(), lastSealed: undefined };
      this.#memories.set(member, memory);
    }
    return memory;
  }

  #isRevokedAt(memory: Memory, keyId: string | undefined): boolean {
    const key = memory.codec.health().keys.find(({ id }) => id === keyId);
    // An expired key binds nothing either.
    return key === undefined || key.state === 'revoked' || key.state === 'expired';
  }

  /** Activation and id decide which key is newer for a member that seals. */
  #timesOf(keyId: string | undefined): string | undefined {
    const seen = keyId === undefined ? undefined : this.#world.firstSeen.get(keyId);
    return seen === undefined ? undefined : `${seen.key.activates} ${seen.key.id}`;
  }
}
