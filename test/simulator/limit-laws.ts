import type { Excuses, Minted } from './excuses.ts';
import { type SimulatedMember } from './member.ts';
import { Spreading } from './spreading.ts';
import { EPOCH_MS } from './timeline.ts';
import { SECOND, type Trouble, type World } from './world.ts';

/** The limits of an invariant, in seconds: sealing ends within one bound, unsealing within the other. */
interface Bound {
  readonly seal: number;
  readonly open: number;
}

/**
 * The bounds of lifecycle.md, checked at every token that is sealed or unsealed: the time after a refusal by the KMS,
 * after a revocation, without any KMS, without any store, and after a key's own times.
 */
export class LimitLaws {
  readonly #world: World;
  readonly #excuses: Excuses;
  readonly #revokedAt: ReadonlyMap<string, number>;
  readonly #report: (law: string, detail: string) => void;
  readonly #spreading: Spreading;
  /** Longest time between the beginning of a refusal by the KMS and a seal, or an unseal, milliseconds. */
  lastSealAfterRefusalMs = 0;
  lastOpenAfterRefusalMs = 0;
  lastSealWithRevokedMs = 0;

  constructor(options: {
    readonly world: World;
    readonly excuses: Excuses;
    readonly revokedAt: ReadonlyMap<string, number>;
    readonly report: (law: string, detail: string) => void;
  }) {
    this.#world = options.world;
    this.#excuses = options.excuses;
    this.#revokedAt = options.revokedAt;
    this.#report = options.report;
    this.#spreading = new Spreading(options.world, options.excuses, options.revokedAt);
  }

  /** Checks the stored document. Call it every minute. */
  look(): void {
    this.#spreading.look();
  }

  sealed(minted: Minted): void {
    const { by, keyId } = minted;
    const refused = sinceMs(this.#world, this.#world.refusals);
    this.lastSealAfterRefusalMs = Math.max(this.lastSealAfterRefusalMs, refused);
    this.#check(by, 'seal', 'the kill switch stops sealing', refused, this.#refusalBound(by));
    this.#checkOutages(by, 'seal');
    const revoked = this.#sinceRevocation(keyId);
    if (revoked !== undefined) this.lastSealWithRevokedMs = Math.max(this.lastSealWithRevokedMs, revoked);
    this.#checkRevoked(by, keyId, 'seal');
    this.#checkTimes(by, keyId, 'seal');
  }

  opened(member: SimulatedMember, { keyId }: Minted): void {
    const refused = sinceMs(this.#world, this.#world.refusals);
    this.lastOpenAfterRefusalMs = Math.max(this.lastOpenAfterRefusalMs, refused);
    this.#check(member, 'open', 'the kill switch stops unsealing', refused, this.#refusalBound(member));
    this.#checkOutages(member, 'open');
    this.#checkRevoked(member, keyId, 'open');
    this.#checkTimes(member, keyId, 'open');
  }

  #check(member: SimulatedMember, what: keyof Bound, law: string, since: number, bound: Bound): void {
    if (since <= bound[what] * SECOND) return;
    this.#report(law, `${member.name}: ${what} ${Math.round(since / SECOND)} s after, bound ${bound[what]} s`);
  }

  /** 980 s where the KMS could report it to this member, the longest outage where it could not. */
  #refusalBound(member: SimulatedMember): Bound {
    const { policy, timeline, refusals } = this.#world;
    const { kms, machine, clock } = this.#world.ownTrouble(member);
    const from = (refusals.since ?? timeline.nowMs) - policy.kmsCheckEverySeconds * SECOND;
    const isTold = [kms, machine, clock].every((trouble) => (trouble.spells.at(-1)?.until ?? 0) < from);
    const proved = policy.kmsCheckEverySeconds + policy.backoffCapSeconds + 4 * policy.kmsTimeoutSeconds;
    const open = policy.clockSkewSeconds + policy.refreshEverySeconds;
    return isTold ? { seal: proved, open: proved + open } : this.#withoutKms;
  }

  get #withoutKms(): Bound {
    const { sealOutageSeconds, tokenLifetimeSeconds, clockSkewSeconds } = this.#world.policy;
    return { seal: sealOutageSeconds, open: sealOutageSeconds + tokenLifetimeSeconds + 2 * clockSkewSeconds };
  }

  get #withoutStore(): Bound {
    const { storeOutageSeconds, tokenLifetimeSeconds, clockSkewSeconds } = this.#world.policy;
    return { seal: storeOutageSeconds, open: storeOutageSeconds + tokenLifetimeSeconds + 2 * clockSkewSeconds };
  }

  #checkOutages(member: SimulatedMember, what: keyof Bound): void {
    const own = this.#world.ownTrouble(member);
    const longest = (...troubles: Trouble[]): number => Math.max(...troubles.map((each) => sinceMs(this.#world, each)));
    const kms = longest(own.kms, this.#world.kmsTrouble);
    this.#check(member, what, 'no member continues without a KMS check', kms, this.#withoutKms);
    const store = longest(own.store, this.#world.storeTrouble);
    this.#check(member, what, 'no member continues without reading the ring', store, this.#withoutStore);
  }

  /** Milliseconds since a key's revocation; undefined for one that was not revoked. */
  #sinceRevocation(keyId: string): number | undefined {
    const at = this.#revokedAt.get(keyId);
    return at === undefined ? undefined : this.#world.timeline.nowMs - at;
  }

  #checkRevoked(member: SimulatedMember, keyId: string, what: keyof Bound): void {
    const sinceSpreading = this.#spreading.sinceMs(keyId);
    // A member that was cut off from the store, or suspended, reads it after that.
    const { hostility, timeline, storeTrouble } = this.#world;
    const own = this.#world.ownTrouble(member);
    const sinceCutOff = Math.min(
      ...[own.store, own.machine, storeTrouble].map((trouble) => trouble.endedForMs(timeline.nowMs)),
    );
    const since = sinceSpreading === undefined ? undefined : Math.min(sinceSpreading, sinceCutOff);
    // A revocation that an attacker rolls back repeatedly spreads when the attacker stops.
    if (since === undefined || this.#world.isUnsettled) return;
    const refresh = this.#excuses.refreshMs / SECOND;
    const isTroubled = this.#excuses.troubles(member).store > 0 || hostility.isLately(timeline.nowMs, since);
    // A fact that the store lost is restored one refresh later, and read another refresh later.
    const longest = this.#spreading.wasLost(keyId) ? 3 * refresh : refresh;
    const told = { seal: longest, open: longest };
    const law = what === 'seal' ? 'a revoked key seals nothing' : 'a revoked key unseals nothing';
    if (hostility.isLately(timeline.nowMs, since)) {
      this.#check(member, what, law, timeline.nowMs - this.#world.settledFromMs, told);
    } else this.#check(member, what, law, since, isTroubled ? this.#withoutStore : told);
  }

  /** A key's own times hold at every member whose clock is right. */
  #checkTimes(member: SimulatedMember, keyId: string, what: keyof Bound): void {
    const { key } = this.#world.firstSeen.get(keyId) ?? {};
    if (key === undefined || this.#excuses.isDeceived(member)) return;
    if (this.#excuses.isWithoutTime(member) && !this.#excuses.canTellTime(member)) return;
    const wall = EPOCH_MS + this.#world.timeline.nowMs;
    const half = (this.#world.options.clockSkewSeconds * SECOND) / 2 + SECOND;
    const until = Date.parse(what === 'seal' ? key.sealsUntil : key.opensUntil) + half;
    // A key that a fast clock sealed with stays in use: an older key never seals again.
    const isBound = this.#excuses.startedWithoutTime(member);
    const isEarly = what === 'seal' && !isBound && wall < Date.parse(key.activates) - 2 * half;
    if (wall > until || isEarly) {
      this.#report(
        'a key keeps its times',
        `${member.name}: ${what} with ${keyId} ${isEarly ? 'too early' : 'too late'}`,
      );
    }
  }
}

function sinceMs(world: World, trouble: Trouble): number {
  return trouble.since === undefined ? 0 : world.timeline.nowMs - trouble.since;
}
