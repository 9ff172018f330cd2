import type { KeyHealth } from '@sealring/core';
import type { SimulatedMember } from './member.ts';
import { storedKeys } from './stored-keys.ts';
import type { Thefts } from './thefts.ts';
import { lastingMs, SECOND, type Trouble, type World } from './world.ts';

/** Shorter refusals, or two in a row, may be permissions that have not spread yet, and must not stop a fleet. */
const STRAY_REFUSAL_MS = 8 * SECOND;
const REFUSALS_IN_A_ROW = 3;
const IN_A_ROW_MS = 60 * SECOND;
/** How long after a refusal a member may take to notice that it is over. */
const ARMED_AGAIN_MS = 180 * SECOND;

/** A token the fleet sealed. */
export interface Minted {
  readonly token: string;
  readonly keyId: string;
  readonly atMs: number;
  readonly by: SimulatedMember;
}

/** Revocations by holders of the keys. */
interface Revocations {
  /** When a revocation was confirmed to its requester, milliseconds, by key. */
  readonly confirmedAt: ReadonlyMap<string, number>;
  /** Whether the revocation of a key was requested, with any answer. */
  readonly isWished: (key: { readonly id: string; readonly created: Date }) => boolean;
}

/** What the invariants excuse: the member has worse faults than are tolerated, or cannot know better. */
export class Excuses {
  readonly #world: World;
  readonly #thefts: Thefts;
  readonly #revocations: Revocations;

  constructor(world: World, thefts: Thefts, revocations: Revocations) {
    this.#world = world;
    this.#thefts = thefts;
    this.#revocations = revocations;
  }

  /** KMS, store and machine of this member work, or failed for less than the tolerated time. */
  mustSeal(member: SimulatedMember): boolean {
    const { policy, timeline, refusals } = this.#world;
    const slack = policy.backoffCapSeconds + 4 * policy.kmsTimeoutSeconds;
    const kmsTolerated = policy.sealOutageSeconds - policy.kmsCheckEverySeconds - slack;
    const storeTolerated = policy.storeOutageSeconds - policy.refreshEverySeconds - slack;
    const { kms, store } = this.troubles(member);
    if (isStopping(refusals, timeline.nowMs - kms - ARMED_AGAIN_MS, timeline.nowMs)) return false;
    if (this.isLost(member) || this.#isRobbed(member)) return false;
    // A read by a clock that was behind counts as old by the right one, until the next read.
    const clock = this.#world.ownTrouble(member).clock.spells.at(-1);
    const cutOffMs = Math.max(kms, store);
    if (clock !== undefined && cutOffMs > 0 && timeline.nowMs - cutOffMs < clock.until + this.refreshMs) return false;
    // Read a revocation while the KMS could not unwrap the successor, or in the very refresh that spreads it.
    const listed = member.codec?.health().keys ?? [];
    const missing = listed.filter(({ id, held, state }) => {
      return !held && state !== 'revoked' && this.#world.kms.isGenuine(id);
    });
    if (kms > 0 && (missing.length > 0 || this.#wasHastyWithin(kms))) return false;
    if (missing.some(({ id }) => this.isSpreading(id))) return false;
    if (this.#lacksSuccessor() || this.#awaitsSuccessor(member)) return false;
    return kms <= kmsTolerated * SECOND && store <= storeTolerated * SECOND;
  }

  mustOpen(member: SimulatedMember, minted: Minted): boolean {
    const { keyId } = minted;
    if (this.#isRevoked(keyId) || member.codec?.health().ready !== true) return false;
    if (this.isLost(member) || this.#isTakenBack(member, keyId) || this.#thefts.mayRevoke(keyId)) return false;
    if (this.#world.isStray(keyId) || this.#world.isAstray(member)) return false;
    const { from } = this.#world.hostility.spells.at(-1) ?? {};
    // A write between two hostile ones need not reach any member.
    if (from !== undefined && (this.#world.publishedAt(keyId) ?? 0) >= from - this.refreshMs) {
      if (this.#world.isUnsettled || minted.atMs < this.#world.settledFromMs) return false;
    }
    // A key that did not wait for the propagation time is unknown to a member that was cut off when it was published; a
    // member that has read it, and cannot unwrap it, is not ready.
    return !(this.isHasty(keyId) && this.troubles(member).store > 0);
  }

  /** Whether this member does not know the time, or read its ring while an attacker wrote to the store. */
  isLost(member: SimulatedMember): boolean {
    return this.isWithoutTime(member) || this.isDeceived(member);
  }

  /** Whether the clock of this member is wrong, or was until a moment ago. */
  isWithoutTime(member: SimulatedMember): boolean {
    const { clock } = this.#world.ownTrouble(member);
    if (clock.isLately(this.#world.timeline.nowMs, this.refreshMs)) return true;
    // Without any date, a process takes a clock that was wrong from the beginning for right, until it restarts.
    return !this.#world.isDated && this.startedWithoutTime(member);
  }

  /** Whether the clock of this member was wrong when its process started. */
  startedWithoutTime(member: SimulatedMember): boolean {
    const { clock } = this.#world.ownTrouble(member);
    const startedAt = member.startedAtMs ?? 0;
    return clock.spells.some(({ from, until }) => from <= startedAt && startedAt <= until);
  }

  /**
   * Whether the clock of this member, which is wrong or was a moment ago, was right at the start of this process, and
   * the process did not pause.
   */
  canTellTime(member: SimulatedMember): boolean {
    const { clock, machine } = this.#world.ownTrouble(member);
    const spell = clock.spells.at(-1);
    if (spell === undefined) return true;
    const isSuspended = machine.isLately(this.#world.timeline.nowMs, this.#world.timeline.nowMs - spell.from);
    return this.#world.isDated && !isSuspended && spell.from > (member.startedAtMs ?? 0) + this.refreshMs;
  }

  /** Whether this member read its ring while an attacker wrote to the store. */
  isDeceived(member: SimulatedMember): boolean {
    const { hostility, isUnsettled } = this.#world;
    const startedAt = member.startedAtMs ?? 0;
    const spell = hostility.spells.findLast(({ from }) => from <= startedAt);
    return spell !== undefined && startedAt <= spell.until && isUnsettled;
  }

  /** Whether a thief of keys revoked one that this member would seal with, as holders of a key can. */
  #isRobbed(member: SimulatedMember): boolean {
    if (!this.#world.hostility.isLately(this.#world.timeline.nowMs, this.#world.settleMs)) return false;
    const revoked = member.codec?.health().keys.filter(({ state }) => state === 'revoked') ?? [];
    return revoked.some(({ id }) => !this.#isRevoked(id) && this.#thefts.mayRevoke(id));
  }

  /** Whether a key was revoked: a request may be answered as failed although its write arrived. */
  #isRevoked(keyId: string): boolean {
    const { confirmedAt, isWished } = this.#revocations;
    if (confirmedAt.has(keyId)) return true;
    const seen = this.#world.writtenAsRevoked.has(keyId) ? this.#world.firstSeen.get(keyId) : undefined;
    return seen !== undefined && isWished({ id: keyId, created: new Date(seen.key.created) });
  }

  /**
   * A revocation without a KMS or a confirmed time has no successor: the first member that reads it creates one.
   */
  #awaitsSuccessor(member: SimulatedMember): boolean {
    if (this.#isWithheldFrom(member)) return true;
    if (member.codec?.health().problems.some(({ kind }) => kind === 'no-sealing-key') !== true) return false;
    const { timeline, kmsTrouble, writtenAsRevoked } = this.#world;
    const written = [...writtenAsRevoked].flatMap(([id, atMs]) => (this.#isRevoked(id) ? [atMs] : []));
    const lastMs = Math.max(...this.#revocations.confirmedAt.values(), ...written);
    return timeline.nowMs - lastMs < 2 * this.refreshMs || kmsTrouble.isLately(timeline.nowMs, this.refreshMs);
  }

  /**
   * Whether a member knows a revocation, and has no key to seal with, while an attacker who writes to the store can
   * withhold every successor.
   */
  #isWithheldFrom(member: SimulatedMember): boolean {
    const { timeline, hostility, writtenAsRevoked } = this.#world;
    const spell = hostility.spells.at(-1);
    if (spell === undefined || !hostility.isLately(timeline.nowMs, 2 * this.refreshMs)) return false;
    const keys = member.codec?.health().keys ?? [];
    if (keys.some(({ state, held }) => state === 'active' && held)) return false;
    const { confirmedAt } = this.#revocations;
    return keys.some(({ id, state }) => {
      const atMs = Math.max(confirmedAt.get(id) ?? 0, writtenAsRevoked.get(id) ?? 0);
      return state === 'revoked' && this.#isRevoked(id) && atMs >= spell.from - 2 * this.refreshMs;
    });
  }

  /** A successor may be late by the grace period; an attacker who denies wraps for longer ends the ring's only key. */
  #lacksSuccessor(): boolean {
    const { policy, wrapTrouble, timeline } = this.#world;
    const successorMs =
      (policy.rotateEverySeconds + Math.max(policy.sealOutageSeconds, policy.storeOutageSeconds)) * SECOND;
    return wrapTrouble.spells.some((spell) => spell.until > timeline.nowMs - successorMs);
  }

  /**
   * Whether the store failed over to a copy from before the key, older than a propagation, and this member started from
   * it: it can know no more until an earlier member has read and restored the ring.
   */
  #isTakenBack(member: SimulatedMember, keyId: string): boolean {
    const { store, timeline } = this.#world;
    const failedOverAt = store.lastFailOverAt;
    if (failedOverAt === undefined || (member.startedAtMs ?? 0) < failedOverAt) return false;
    return timeline.nowMs - failedOverAt < this.refreshMs && !storedKeys(store.document).some(({ id }) => id === keyId);
  }

  /** How long this member has been without KMS and without store, milliseconds; a machine that is down has neither. */
  troubles(member: SimulatedMember): { readonly kms: number; readonly store: number } {
    const own = this.#world.ownTrouble(member);
    const now = this.#world.timeline.nowMs;
    const { kmsTrouble, storeTrouble, hostility } = this.#world;
    return {
      kms: lastingMs(now, [kmsTrouble, own.kms, own.machine]),
      store: lastingMs(now, [storeTrouble, own.store, own.machine, hostility]),
    };
  }

  /**
   * The times as the publisher wrote them, or else as a holder of the key knows them: an attacker may have written
   * others.
   */
  #timesOf(keyId: string): { readonly createdMs: number; readonly activatesMs: number } | undefined {
    const seen = this.#world.firstSeen.get(keyId);
    if (seen?.isHonest === true) {
      return { createdMs: Date.parse(seen.key.created), activatesMs: Date.parse(seen.key.activates) };
    }
    let found: KeyHealth | undefined;
    for (const member of this.#world.members) {
      const key = member.codec?.health().keys.find(({ id }) => id === keyId);
      if (key?.held === true) found = key;
      if (found?.held === true) break;
      found ??= key;
    }
    return found && { createdMs: Number(found.created), activatesMs: Number(found.activates) };
  }

  /** Whether a key was published during the last `ms` that members without the KMS could not unwrap in time. */
  #wasHastyWithin(ms: number): boolean {
    const { history } = this.#world.store;
    const since = this.#world.timeline.nowMs - ms;
    for (let i = history.length - 1; i >= 0 && (history[i]?.at ?? 0) >= since; i--) {
      const ids = storedKeys(history[i]?.stored.document).map(({ id }) => id);
      const genuine = ids.filter((id) => this.#world.kms.isGenuine(id));
      if (genuine.some((id) => this.isHasty(id) && (this.#world.publishedAt(id) ?? 0) >= since)) return true;
    }
    return false;
  }

  /** Keys that seal at once: emergency keys, first keys and successors of revoked ones. */
  isHasty(keyId: string): boolean {
    const times = this.#timesOf(keyId);
    if (times === undefined) return false;
    const { refreshEverySeconds, backoffCapSeconds, clockSkewSeconds } = this.#world.policy;
    const emergencyMs = (refreshEverySeconds + backoffCapSeconds + clockSkewSeconds + 2) * SECOND;
    return times.activatesMs - times.createdMs <= emergencyMs;
  }

  /** First keys and successors of revoked ones seal at once; a member that has not read since cannot unseal. */
  #isActiveAtOnce(keyId: string): boolean {
    const times = this.#timesOf(keyId);
    return times !== undefined && times.activatesMs <= times.createdMs;
  }

  isSpreading(keyId: string): boolean {
    const { timeline } = this.#world;
    const published = this.#world.publishedAt(keyId);
    if (published === undefined || !this.#isActiveAtOnce(keyId)) return false;
    const { refreshMs } = this;
    const failedOverAt = this.#world.store.lastFailOverAt ?? 0;
    // A store that lost it must first be restored by a member that knows it and reads the ring: one refresh more.
    const since =
      failedOverAt > published && failedOverAt - published < 2 * refreshMs ? failedOverAt + refreshMs : published;
    return timeline.nowMs - since < refreshMs;
  }

  /** Longest time until a member with a healthy store and KMS has read the ring again, milliseconds. */
  get refreshMs(): number {
    const { refreshEverySeconds, backoffCapSeconds, kmsTimeoutSeconds } = this.#world.policy;
    return (refreshEverySeconds + backoffCapSeconds + 4 * kmsTimeoutSeconds) * SECOND;
  }
}

/** Whether refusals since some moment lasted long enough to stop a member, or were enough in a row. */
function isStopping({ spells }: Trouble, sinceMs: number, nowMs: number): boolean {
  const lately = spells.filter(({ until }) => until > sinceMs);
  if (lately.some(({ from, until }) => Math.min(until, nowMs) - from > STRAY_REFUSAL_MS)) return true;
  return lately.some(({ from }, i) => (lately[i - REFUSALS_IN_A_ROW + 1]?.until ?? 0) > from - IN_A_ROW_MS);
}
