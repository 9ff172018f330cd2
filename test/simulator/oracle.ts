import type { KeyHealth } from '@sealring/core';
import type { SimulatedMember } from './member.ts';
import { lastingMs, MINUTE, propagationSecondsOf, SECOND, type World } from './world.ts';

/** A token the fleet sealed, and what has to become of it. */
interface Minted {
  readonly token: string;
  readonly keyId: string;
  readonly atMs: number;
  readonly by: string;
}

/** Something that must not have happened. */
export interface Violation {
  readonly law: string;
  readonly atMs: number;
  readonly detail: string;
}

const AGES_MS: readonly number[] = [0, 10 * MINUTE, 31 * MINUTE, 58 * MINUTE];
/** Refusals that last no longer are permissions on their way, and must not stop a fleet. */
const STRAY_REFUSAL_MS = 8 * SECOND;
/** A violation is told in full this often; after that it is only counted. */
const TOLD = 20;

/**
 * Seals and opens as clients would make the fleet do, and holds the outcome against the laws: every token opens at
 * every member that is within its limits, for its whole life; nobody refuses to seal within a tolerated outage.
 */
export class Oracle {
  readonly #world: World;
  readonly violations: Violation[] = [];
  violationCount = 0;
  sealed = 0;
  opened = 0;
  /** Refused seals that the laws allow: outages beyond what is tolerated. */
  excusedSeals = 0;
  /** Refused opens that the laws allow: by members out of their limits, or of keys that were revoked. */
  excusedOpens = 0;
  /** Tokens of a key that was active at once (first key, revocation) which a member had to read the ring for. */
  openedAfterPrepare = 0;
  /** Refused opens of a key that was active at once, within the one refresh that spreads it. */
  excusedAtOnce = 0;
  /** Longest time between the beginning of a refusal by the KMS and a seal, or an open, milliseconds. */
  lastSealAfterRefusalMs = 0;
  lastOpenAfterRefusalMs = 0;
  readonly #revokedAt = new Map<string, number>();
  #lastSealWithRevokedMs = 0;
  #mostKeys = 0;

  constructor(world: World) {
    this.#world = world;
  }

  /** Begins to look: `everyMs` a token, each opened at four ages. */
  watch(everyMs: number): void {
    this.#world.timeline.every(everyMs, () => this.#mint());
    this.#world.timeline.every(5 * MINUTE, () => this.#count());
  }

  /** A key was revoked through `member` at this moment. */
  revoked(keyId: string): void {
    this.#world.trace(`revoked: ${keyId}`);
    this.#revokedAt.set(keyId, this.#world.timeline.nowMs);
  }

  get lastSealWithRevokedMs(): number {
    return this.#lastSealWithRevokedMs;
  }

  get mostKeys(): number {
    return this.#mostKeys;
  }

  report(law: string, detail: string): void {
    this.violationCount += 1;
    this.#world.trace(`VIOLATION of "${law}": ${detail}`);
    if (this.violations.length < TOLD) this.violations.push({ law, atMs: this.#world.timeline.nowMs, detail });
  }

  #mint(): void {
    const { timeline } = this.#world;
    const member = this.#world.anyMember();
    if (member?.codec === undefined) return;
    let token: string;
    try {
      token = member.codec.seal(PAYLOAD);
    } catch (error) {
      if (this.#mustSeal(member)) this.report('nobody refuses to seal', `${member.name}: ${String(error)}`);
      else this.excusedSeals += 1;
      return;
    }
    this.sealed += 1;
    const keyId = token.slice(4, 16);
    const revokedAt = this.#revokedAt.get(keyId);
    if (revokedAt !== undefined) this.#checkRevokedSeal(member, timeline.nowMs - revokedAt);
    this.lastSealAfterRefusalMs = Math.max(this.lastSealAfterRefusalMs, this.#refusedForMs());
    const minted: Minted = { token, keyId, atMs: timeline.nowMs, by: member.name };
    for (const age of AGES_MS) {
      timeline.after(age, () => {
        for (let i = 0; i < 3; i++) this.#open(minted);
      });
    }
  }

  #open(minted: Minted): void {
    const member = this.#world.anyMember();
    if (member?.codec === undefined) return;
    if (this.#opens(member, minted)) return;
    // As the boundary does: what may be awaited comes first, then the synchronous verdict.
    const { codec } = member;
    void codec.prepare(minted.token).then(
      () => {
        if (member.codec !== codec) return;
        if (this.#opens(member, minted)) this.openedAfterPrepare += 1;
        else if (this.#isSpreading(minted.keyId)) this.excusedAtOnce += 1;
        else if (this.#mustOpen(member, minted)) {
          const age = Math.round((this.#world.timeline.nowMs - minted.atMs) / SECOND);
          this.report(
            'every token opens',
            `${minted.by} sealed with ${minted.keyId}, ${member.name} refused at ${age} s`,
          );
        } else this.excusedOpens += 1;
      },
      () => undefined,
    );
  }

  #opens(member: SimulatedMember, minted: Minted): boolean {
    try {
      member.codec?.unseal(minted.token);
    } catch {
      return false;
    }
    this.opened += 1;
    this.lastOpenAfterRefusalMs = Math.max(this.lastOpenAfterRefusalMs, this.#refusedForMs());
    const revokedAt = this.#revokedAt.get(minted.keyId);
    const { timeline, policy } = this.#world;
    if (revokedAt !== undefined && timeline.nowMs - revokedAt > (policy.storeOutageSeconds + 3_600 + 1_200) * SECOND) {
      this.report('a revoked key opens nothing', `${member.name} opened with ${minted.keyId}`);
    }
    return true;
  }

  /** How long the KMS has refused everybody, milliseconds; 0 when it does not. */
  #refusedForMs(): number {
    const spell = this.#world.refusals.spells.at(-1);
    return spell === undefined || spell.until !== Number.POSITIVE_INFINITY
      ? 0
      : this.#world.timeline.nowMs - spell.from;
  }

  /** KMS, store and machine of this member are well, or have been in trouble for less than is tolerated. */
  #mustSeal(member: SimulatedMember): boolean {
    const { policy } = this.#world;
    const slack = policy.backoffCapSeconds + 4 * policy.kmsTimeoutSeconds;
    const kmsTolerated = policy.sealOutageSeconds - policy.proveEverySeconds - slack;
    const storeTolerated = policy.storeOutageSeconds - policy.refreshEverySeconds - slack;
    if (lastingMs(this.#world.timeline.nowMs, [this.#world.refusals]) > STRAY_REFUSAL_MS) return false;
    const { kms, store } = this.#troubles(member);
    // Told of a revocation while the KMS could not give it the successor, or in the very refresh that spreads that.
    const missing = member.codec?.health().keys.filter((key) => !key.held && key.state !== 'revoked') ?? [];
    if (kms > 0 && (missing.length > 0 || this.#wasHastyWithin(kms))) return false;
    if (missing.some(({ id }) => this.#isSpreading(id))) return false;
    // A successor may be late by the grace; whoever denies wraps for longer ends the ring's only key.
    const successorMs =
      (policy.rotateEverySeconds + Math.max(policy.sealOutageSeconds, policy.storeOutageSeconds)) * SECOND;
    if (this.#world.wrapTrouble.spells.some((spell) => spell.until > this.#world.timeline.nowMs - successorMs))
      return false;
    return kms <= kmsTolerated * SECOND && store <= storeTolerated * SECOND;
  }

  #mustOpen(member: SimulatedMember, minted: Minted): boolean {
    if (this.#revokedAt.has(minted.keyId) || member.codec?.health().ready !== true) return false;
    if (this.#isTakenBack(member, minted.keyId)) return false;
    // A key that did not wait for the propagation time is not known to whoever was cut off when it was published.
    const { kms, store } = this.#troubles(member);
    return !(this.#isHasty(minted.keyId) && (kms > 0 || store > 0));
  }

  /**
   * Whether the store failed over to a copy from before the key, older than a propagation, and this member started from it:
   * nobody can know more until a member that ran before has read the ring, and healed it.
   */
  #isTakenBack(member: SimulatedMember, keyId: string): boolean {
    const { store, timeline } = this.#world;
    const failedOverAt = store.lastFailOverAt;
    if (failedOverAt === undefined || (member.startedAtMs ?? 0) < failedOverAt) return false;
    return timeline.nowMs - failedOverAt < this.#refreshMs && store.document?.includes(`"id":"${keyId}"`) !== true;
  }

  /** How long this member has been without KMS and without store, milliseconds; a machine that is down has neither. */
  #troubles(member: SimulatedMember): { readonly kms: number; readonly store: number } {
    const own = this.#world.ownTrouble(member);
    const now = this.#world.timeline.nowMs;
    return {
      kms: lastingMs(now, [this.#world.kmsTrouble, own.kms, own.machine]),
      store: lastingMs(now, [this.#world.storeTrouble, own.store, own.machine]),
    };
  }

  #keyOf(keyId: string): KeyHealth | undefined {
    for (const member of this.#world.members) {
      const key = member.codec?.health().keys.find(({ id }) => id === keyId);
      if (key !== undefined) return key;
    }
    return undefined;
  }

  /** Whether a key was published during the last `ms` that whoever lacked the KMS could not unwrap in time. */
  #wasHastyWithin(ms: number): boolean {
    const { history } = this.#world.store;
    const since = this.#world.timeline.nowMs - ms;
    for (let i = history.length - 1; i >= 0 && (history[i]?.at ?? 0) >= since; i--) {
      const ids = history[i]?.stored.document.match(/(?<="id":")[^"]{12}/g) ?? [];
      if (ids.some((id) => this.#isHasty(id) && (this.#world.publishedAt(id) ?? 0) >= since)) return true;
    }
    return false;
  }

  /** Emergency keys, first keys and successors of revoked ones. */
  #isHasty(keyId: string): boolean {
    const key = this.#keyOf(keyId);
    const propagationMs = propagationSecondsOf(this.#world.policy) * SECOND;
    return key !== undefined && Number(key.activates) - Number(key.created) < propagationMs;
  }

  /** First keys and successors of revoked ones seal at once; whoever has not read the ring since cannot open. */
  #isActiveAtOnce(keyId: string): boolean {
    const key = this.#keyOf(keyId);
    return key !== undefined && key.activates <= key.created;
  }

  #isSpreading(keyId: string): boolean {
    const { timeline } = this.#world;
    const published = this.#world.publishedAt(keyId);
    if (published === undefined || !this.#isActiveAtOnce(keyId)) return false;
    const refreshMs = this.#refreshMs;
    const failedOverAt = this.#world.store.lastFailOverAt ?? 0;
    // A store that took it back has to be healed first, by who knows it and reads the ring: one refresh more.
    const since =
      failedOverAt > published && failedOverAt - published < 2 * refreshMs ? failedOverAt + refreshMs : published;
    return timeline.nowMs - since < refreshMs;
  }

  /** Longest time until a member whose store and KMS are well has read the ring again, milliseconds. */
  get #refreshMs(): number {
    const { refreshEverySeconds, backoffCapSeconds, kmsTimeoutSeconds } = this.#world.policy;
    return (refreshEverySeconds + backoffCapSeconds + 4 * kmsTimeoutSeconds) * SECOND;
  }

  #checkRevokedSeal(member: SimulatedMember, sinceMs: number): void {
    this.#lastSealWithRevokedMs = Math.max(this.#lastSealWithRevokedMs, sinceMs);
    const { policy } = this.#world;
    const troubled = this.#troubles(member).store > 0;
    const refresh = this.#refreshMs / SECOND;
    // A store that failed over since took the revocation back: it is healed, and read, a refresh later each.
    const sinceFailOverMs = this.#world.timeline.nowMs - (this.#world.store.lastFailOverAt ?? Number.NEGATIVE_INFINITY);
    const bound = troubled ? policy.storeOutageSeconds : sinceFailOverMs <= sinceMs ? 3 * refresh : refresh;
    if (sinceMs > bound * SECOND) {
      this.report('a revoked key seals nothing', `${member.name}: ${sinceMs / SECOND} s after, bound ${bound} s`);
    }
  }

  #count(): void {
    const keys = Math.max(0, ...this.#world.sample().map((member) => member.codec?.health().keys.length ?? 0));
    this.#mostKeys = Math.max(this.#mostKeys, keys);
    if (keys > 64) this.report('a ring has at most 64 keys', String(keys));
  }
}

const PAYLOAD: Uint8Array = new TextEncoder().encode('{"order":"A1"}');
