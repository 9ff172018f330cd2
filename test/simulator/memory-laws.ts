import type { KeyHealth, KmsCodec } from '@sealring/core';
import type { Excuses } from './excuses.ts';
import { type SimulatedMember } from './member.ts';
import { type StoredKey, storedKeys } from './stored-keys.ts';
import type { Thefts } from './thefts.ts';
import { EPOCH_MS } from './timeline.ts';
import { type FirstSeen, propagationSecondsOf, SECOND, type World } from './world.ts';

/** Longer than it takes until everybody was looked at. */
const LATELY_MS = 900_000;
/** How long a ring that was made beside another one may stand in its place. */
const STRAY_MS = 1_800_000;
/** Keys that a member keeps without having unwrapped them. */
const MOST_CARRIED = 4;
/** How far `created` may be ahead of what the clocks allow: each key of a full ring is a second newer than the last. */
const CREATED_TOLERANCE_MS: number = 64 * SECOND;
/** Longest time that a write is under way which is not held in the network. */
const WRITE_SECONDS = 5;

/** What one process has known. */
interface Memory {
  readonly codec: KmsCodec;
  readonly keys: Map<string, KeyHealth>;
  lastSealed: string | undefined;
}

/**
 * A member forgets nothing before its end: a key that it held stays until it ends, a revocation that it knew stays, it
 * never seals with an older key again. And it believes nobody what he may not say: every key comes from the fleet, every
 * revocation from who may make it.
 */
export class MemoryLaws {
  readonly #world: World;
  readonly #excuses: Excuses;
  readonly #thefts: Thefts;
  readonly #isWished: (key: KeyHealth) => boolean;
  readonly #report: (law: string, detail: string) => void;
  readonly #memories = new Map<SimulatedMember, Memory>();
  /** When somebody last held a key that was not revoked to him, milliseconds. */
  readonly #trustedAt = new Map<string, number>();
  readonly #revokedSomewhere = new Set<string>();
  /** Keys whose vouchers were looked at. */
  readonly #vouched = new Set<string>();
  /** Keys that were seen in the store already. */
  readonly #published = new Set<string>();

  constructor(options: {
    readonly world: World;
    readonly excuses: Excuses;
    readonly thefts: Thefts;
    /** Whether somebody who may asked for the revocation of a key. */
    readonly isWished: (key: KeyHealth) => boolean;
    readonly report: (law: string, detail: string) => void;
  }) {
    this.#world = options.world;
    this.#excuses = options.excuses;
    this.#thefts = options.thefts;
    this.#isWished = options.isWished;
    this.#report = options.report;
  }

  /** Looks at some of the members. */
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
      this.#report('nobody seals with a foreign key', `${member.name} sealed with ${keyId}`);
    }
    const last = this.#timesOf(memory.lastSealed);
    const now = this.#timesOf(keyId);
    const isOlder = last !== undefined && now !== undefined && (now === last ? 0 : now.localeCompare(last)) < 0;
    // Whoever began in a ring that somebody made him go over from is not bound by it.
    const isBound = !this.#isRevokedAt(memory, memory.lastSealed) && !this.#world.isStray(memory.lastSealed ?? '');
    if (isOlder && isBound && !this.#excuses.isLost(member)) {
      this.#report('nobody seals with an older key again', `${member.name}: ${keyId} after ${memory.lastSealed ?? ''}`);
    }
    memory.lastSealed = keyId;
  }

  /** Whether this member came to what it knows while nobody could deceive it: with the right to wrap, a start can be. */
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
      // By a time that no date confirms nothing has ended.
      const isKept = key?.held === true || key?.state === 'revoked';
      if (known.held && !isKept && isLive && !this.#excuses.isDeceived(member) && this.#world.isDated) {
        this.#report('a known key stays until it ends', `${member.name} forgot ${known.id}`);
      }
      const isKnownAsRevoked = known.state === 'revoked' && this.#isAsPublished(known);
      if (isKnownAsRevoked && key?.held === true && key.state !== 'revoked') {
        this.#report('a known revocation stays', `${member.name} opens by ${known.id} again`);
      }
      if (known.held && key?.held === true && Number(key.unsealsUntil) !== Number(known.unsealsUntil)) {
        this.#report('the times of a key stay', `${member.name}: ${known.id}`);
      }
    }
    for (const key of keys.values()) if (key.held) this.#trustedAt.set(key.id, this.#world.timeline.nowMs);
    for (const key of keys.values()) {
      this.#judgeRevocation(member, key);
      if (key.held && this.#thefts.isOwn(key.id) && this.isJudged(member)) {
        this.#report('nobody holds a foreign key', `${member.name} holds ${key.id}`);
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
   * Of a key that a member never unwrapped it knows a revocation by the times that the document gives it: edited ones let
   * another key certify that, until the right ones come. Whoever writes the store can keep that key from it anyway.
   */
  #isAsPublished({ id, created, unsealsUntil }: KeyHealth): boolean {
    const seen = this.#world.firstSeen.get(id)?.key;
    return (
      Date.parse(seen?.created ?? '') === Number(created) && Date.parse(seen?.opensUntil ?? '') === Number(unsealsUntil)
    );
  }

  /**
   * Only the first member that takes a key for revoked is judged: the others may have it from there. A thief whose key
   * nobody trusts any more certifies nothing.
   */
  #judgeRevocation(member: SimulatedMember, key: KeyHealth): void {
    const { nowMs } = this.#world.timeline;
    if (key.state !== 'revoked' || !this.#isAsPublished(key) || this.#revokedSomewhere.has(key.id)) return;
    this.#revokedSomewhere.add(key.id);
    if (this.#isWished(key) || this.#thefts.isOwn(key.id) || !this.#world.kms.isGenuine(key.id)) return;
    const isTrustedNoMore = (id: string): boolean => nowMs - (this.#trustedAt.get(id) ?? nowMs) > LATELY_MS;
    if (!this.isJudged(member) || this.#thefts.mayRevoke(key.id, isTrustedNoMore)) return;
    this.#report('nobody revokes what he may not', `${member.name} takes ${key.id} for revoked`);
  }

  /** With the right to wrap a start can be given another ring, but never one among the keys of the true one. */
  started(member: SimulatedMember): void {
    this.#lookAt(member);
    if (!this.#world.mayWrap || this.#thefts.stolen.length > 0) return;
    const held = member.codec?.health().keys.filter((key) => key.held) ?? [];
    if (held.some(({ id }) => this.#thefts.isForeign(id)) && held.some(({ id }) => !this.#thefts.isForeign(id))) {
      this.#report('two lineages are not one ring', `${member.name} started with both`);
    }
  }

  /** Whoever was caught at a start lets nobody into the ring of the others: no key of theirs hangs together with his. */
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

  /** Of two rings in one place the older stays, and all hear of it. */
  #lookAtStore(): void {
    const { store, storeTrouble, hostility, timeline } = this.#world;
    const keys = storedKeys(store.document);
    const lastMs = Math.max(0, ...keys.map(({ id }) => this.#world.publishedAt(id) ?? 0));
    if (keys.length === 0 || timeline.nowMs - lastMs < STRAY_MS) return;
    if (storeTrouble.isLately(timeline.nowMs, STRAY_MS) || hostility.isLately(timeline.nowMs, STRAY_MS)) return;
    if (keys.every(({ id }) => this.#world.isStray(id))) this.#report('the older ring stays', keys[0]?.id ?? '');
  }

  /** A key that nobody asked to be hasty waits for the propagation time, from the moment when it can be read. */
  #lookAtPublications(): void {
    const { policy, lastHeldAtMs, timeline } = this.#world;
    for (const [id, seen] of this.#world.firstSeen) {
      const { at, key, isHonest, by } = seen;
      if (this.#published.has(id) || !isHonest) continue;
      if (timeline.nowMs - at < 600 * SECOND) continue;
      this.#published.add(id);
      // What nobody holds is junk; what an attacker made who caught a server at its start has whatever times he likes.
      const isKnown = this.#world.members.some((member) =>
        member.codec?.health().keys.some((each) => each.id === id && each.held),
      );
      if (isKnown && this.#world.hostility.spells.length === 0) this.#judgeVouchers(seen);
      if (
        !isKnown ||
        this.#thefts.isForeign(id) ||
        this.#excuses.isHasty(id) ||
        timeline.nowMs - lastHeldAtMs < 86_400 * SECOND
      )
        continue;
      const wait = Date.parse(key.activates) - EPOCH_MS - at;
      // It is written within a refresh of its making, and its times are by the clock of who made it.
      const leastMs = (propagationSecondsOf(policy) - policy.refreshEverySeconds - WRITE_SECONDS) * SECOND;
      const skewMs = by?.lowestSkewMs ?? (-policy.clockSkewSeconds / 2) * SECOND;
      if (wait < leastMs + skewMs) {
        this.#report('a planned key waits', `${id} is active ${Math.round(wait / SECOND)} s after it was stored`);
      }
    }
  }

  /** Its publisher had read what stood there: a new key is newer, and vouched for by what he can sign with. */
  #judgeVouchers({ at, key, before: stored }: FirstSeen): void {
    // What was made by a clock that was far ahead, without any date that could tell, teaches nobody anything yet.
    const futureMs = Date.parse(key.created) + this.#world.policy.clockSkewSeconds * SECOND + CREATED_TOLERANCE_MS;
    const before = stored.filter(({ created }) => Date.parse(created) <= futureMs);
    const newer = before.filter((other) => other.created >= key.created);
    if (newer.length > 0)
      this.#report('a new key is newer than every known one', `${key.id} and ${newer[0]?.id ?? ''}`);
    // Whoever started lately need not know what has ended since.
    const isLive = (other: StoredKey): boolean => Date.parse(other.opensUntil) > EPOCH_MS + at;
    const signers = before.filter((other) => other.revoked === undefined && isLive(other)).length;
    if (Object.keys(key.vouchers).length < Math.min(signers, 4)) {
      this.#report('a new key is vouched for by all that can', `${key.id} after ${signers} keys`);
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
    // One that has ended binds nothing either.
    return key === undefined || key.state === 'revoked' || key.state === 'expired';
  }

  /** Activation and id: what is newer to whoever seals. */
  #timesOf(keyId: string | undefined): string | undefined {
    const seen = keyId === undefined ? undefined : this.#world.firstSeen.get(keyId);
    return seen === undefined ? undefined : `${seen.key.activates} ${seen.key.id}`;
  }
}
