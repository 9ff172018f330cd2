import type { KeyHealth } from '@sealring/core';
import { isExpected } from './exceptions.ts';
import { Excuses, type Minted } from './excuses.ts';
import { Keepsakes } from './keepsakes.ts';
import { LimitLaws } from './limit-laws.ts';
import type { SimulatedMember } from './member.ts';
import { MemoryLaws } from './memory-laws.ts';
import { Thefts } from './thefts.ts';
import { MINUTE, SECOND, type World } from './world.ts';

/** A violation of an invariant. */
export interface Violation {
  readonly law: string;
  readonly atMs: number;
  readonly detail: string;
}

const AGES_MS: readonly number[] = [0, 10 * MINUTE, 31 * MINUTE, 58 * MINUTE];
/** A fault at a member also causes an attempt to seal this much later. */
const SOON_MS: readonly number[] = [200, 3 * SECOND];
/** When its clock is wrong, it gets the last token of every key. */
const SHOWN_AFTER_MS: readonly number[] = [7 * MINUTE, 20 * MINUTE, 40 * MINUTE];
/** A violation is reported in full this often, and only counted after that. */
const TOLD = 20;

/**
 * Seals and unseals as clients make the fleet do, and checks the invariants: every token unseals at every member that
 * is within its limits, for its whole life; no member refuses to seal within a tolerated outage; no member seals or
 * unseals beyond a bound.
 */
export class Oracle {
  readonly #world: World;
  readonly violations: Violation[] = [];
  violationCount = 0;
  sealed = 0;
  opened = 0;
  /** Refused seals that the invariants allow: outages beyond what is tolerated. */
  excusedSeals = 0;
  /** Refused tokens that the invariants allow: at members outside their limits, or under revoked keys. */
  excusedOpens = 0;
  /** Tokens of a key that was active at once (first key, revocation), for which a member had to read the ring. */
  openedAfterPrepare = 0;
  /** Refused tokens of a key that was active at once, within the one refresh that spreads it. */
  excusedAtOnce = 0;
  readonly thefts: Thefts;
  readonly excuses: Excuses;
  readonly limits: LimitLaws;
  readonly #memory: MemoryLaws;
  readonly #keepsakes: Keepsakes;
  readonly #revokedAt = new Map<string, number>();
  readonly #wished = new Set<string>();
  #wishedBeforeMs = Number.NEGATIVE_INFINITY;
  #mostKeys = 0;

  constructor(world: World) {
    this.#world = world;
    const report = (law: string, detail: string): void => this.report(law, detail);
    this.thefts = new Thefts(world);
    const isWished = (key: Pick<KeyHealth, 'id' | 'created'>): boolean => this.#isWished(key);
    this.excuses = new Excuses(world, this.thefts, { confirmedAt: this.#revokedAt, isWished });
    this.limits = new LimitLaws({ world, excuses: this.excuses, revokedAt: this.#revokedAt, report });
    this.#memory = new MemoryLaws({
      world,
      excuses: this.excuses,
      thefts: this.thefts,
      isWished,
      report,
    });
    this.#keepsakes = new Keepsakes(world, (member, minted) => this.#opens(member, minted));
  }

  /** Starts the checks: a token every `everyMs`, each unsealed at four ages. */
  watch(everyMs: number): void {
    const { timeline, members } = this.#world;
    for (const member of members) {
      member.onStartFailure = (error) => this.caught(error, `${member.name} starts`);
      member.onStarted = () => this.#memory.started(member);
    }
    timeline.every(everyMs, () => this.#mintAt(this.#world.anyMember()));
    const lookedAt = new Map<SimulatedMember, number>();
    this.#world.listen(({ kind, member }) => {
      if (member === undefined) return;
      if (kind === 'clock set') this.#mintAt(member);
      if (kind === 'clock wrong') {
        for (const ms of SHOWN_AFTER_MS) timeline.after(ms, () => this.#keepsakes.tryAllAt(member));
      }
      if (kind !== 'refused' || timeline.nowMs - (lookedAt.get(member) ?? 0) < MINUTE) return;
      lookedAt.set(member, timeline.nowMs);
      for (const ms of SOON_MS) timeline.after(ms, () => this.#mintAt(member));
    });
    timeline.every(MINUTE, () => this.limits.look());
    timeline.every(5 * MINUTE, () => {
      this.#count();
      this.#memory.look();
      this.#keepsakes.tryAll();
    });
  }

  /** A key was revoked through a member at this moment. */
  revoked(keyId: string): void {
    this.#world.trace(`revoked: ${keyId}`);
    this.#revokedAt.set(keyId, this.#world.timeline.nowMs);
    this.#wished.add(keyId);
  }

  /** A requested revocation: one that fails for its requester may still have been written. */
  wished(keyIds: readonly string[]): void {
    for (const id of keyIds) this.#wished.add(id);
  }

  /** A requested revocation of every key that was created before this moment. */
  wishedAll(createdBeforeMs: number): void {
    this.#wishedBeforeMs = Math.max(this.#wishedBeforeMs, createdBeforeMs);
  }

  #isWished({ id, created }: Pick<KeyHealth, 'id' | 'created'>): boolean {
    const skewMs = this.#world.policy.clockSkewSeconds * SECOND;
    return this.#wished.has(id) || created.getTime() - skewMs <= this.#wishedBeforeMs;
  }

  isRevoked(keyId: string): boolean {
    return this.#revokedAt.has(keyId);
  }

  /** The error of a call that a caller made. */
  caught(error: unknown, what: string): void {
    if (!isExpected(error)) this.report('no exception but those of the closed set', `${what}: ${String(error)}`);
  }

  get mostKeys(): number {
    return this.#mostKeys;
  }

  report(law: string, detail: string): void {
    this.violationCount += 1;
    this.#world.trace(`VIOLATION of "${law}": ${detail}`);
    if (this.violations.length < TOLD) this.violations.push({ law, atMs: this.#world.timeline.nowMs, detail });
  }

  #mintAt(member: SimulatedMember | undefined): void {
    const { timeline } = this.#world;
    if (member?.codec === undefined || !member.isUp) return;
    let token: string;
    try {
      token = member.codec.seal(PAYLOAD);
    } catch (error) {
      this.caught(error, `${member.name} seals`);
      if (this.excuses.mustSeal(member)) this.report('no member refuses to seal', `${member.name}: ${String(error)}`);
      else this.excusedSeals += 1;
      return;
    }
    this.sealed += 1;
    const keyId = token.slice(4, 16);
    const minted: Minted = { token, keyId, atMs: timeline.nowMs, by: member };
    this.limits.sealed(minted);
    this.#memory.sealed(member, keyId);
    // A member that does not know the time is not ready, and gets no requests.
    if (this.excuses.isLost(member)) return;
    this.#keepsakes.keep(minted);
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
    // Unseal it as the boundary does: first the asynchronous preparation, then the synchronous result.
    const { codec } = member;
    void Promise.resolve(codec.prepare(minted.token)).then(
      () => {
        if (member.codec !== codec) return;
        if (this.#opens(member, minted)) this.openedAfterPrepare += 1;
        else if (this.excuses.isSpreading(minted.keyId)) this.excusedAtOnce += 1;
        else if (this.excuses.mustOpen(member, minted)) {
          const age = Math.round((this.#world.timeline.nowMs - minted.atMs) / SECOND);
          this.report(
            'every token unseals',
            `${minted.by.name} sealed with ${minted.keyId}, ${member.name} refused at ${age} s`,
          );
        } else this.excusedOpens += 1;
      },
      (error: unknown) => this.caught(error, `${member.name} prepares`),
    );
  }

  #opens(member: SimulatedMember, minted: Minted): boolean {
    if (member.codec === undefined) return false;
    try {
      member.codec.unseal(minted.token);
    } catch (error) {
      this.caught(error, `${member.name} opens`);
      return false;
    }
    this.opened += 1;
    this.limits.opened(member, minted);
    return true;
  }

  /** Presents a token by a holder of the data key. */
  presented(member: SimulatedMember, keyId: string, token: string): void {
    const isOpen = this.#opens(member, { token, keyId, atMs: this.#world.timeline.nowMs, by: member });
    if (isOpen && this.thefts.isOwn(keyId) && this.#memory.isJudged(member)) {
      this.report('no forged token unseals', `${member.name} unsealed a token under ${keyId}`);
    }
  }

  #count(): void {
    const healths = this.#world.sample().map((member) => [member, member.codec?.health()] as const);
    // Beside the 64 keys of the document, a member remembers every revoked key that it held, and some of which it only
    // knows the revocation.
    const isRevoked = ({ id, state }: KeyHealth): boolean => state === 'revoked' && this.#world.kms.isGenuine(id);
    let most = 0;
    for (const [{ name }, health] of healths) {
      const keys = health?.keys ?? [];
      this.#mostKeys = Math.max(this.#mostKeys, keys.length);
      most = Math.max(most, keys.filter((key) => !isRevoked(key)).length);
      if (health?.lastError?.source === 'internal') {
        this.report('no exception but those of the closed set', `${name} failed in the background`);
      }
    }
    if (most > 64 + 16) this.report('a ring has at most 64 keys', String(most));
  }
}

const PAYLOAD: Uint8Array = new TextEncoder().encode('{"order":"A1"}');
