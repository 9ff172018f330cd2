import { Dice } from './dice.ts';
import { SimulatedMember } from './member.ts';
import { type Line, type NetworkWeather, SimulatedKms, SimulatedStore } from './services.ts';
import { type StoredKey, storedKeys } from './stored-keys.ts';
import { EPOCH_MS, Timeline } from './timeline.ts';
import { lastingMs, Trouble } from './trouble.ts';

export { lastingMs, Trouble };

/** Lifecycle defaults that the invariants are computed from, seconds. */
export interface WorldPolicy {
  readonly clockSkewSeconds: number;
  readonly refreshEverySeconds: number;
  readonly backoffCapSeconds: number;
  readonly kmsCheckEverySeconds: number;
  readonly sealOutageSeconds: number;
  readonly storeOutageSeconds: number;
  readonly tokenLifetimeSeconds: number;
  readonly kmsTimeoutSeconds: number;
  readonly rotateEverySeconds: number;
  readonly keyVersionEverySeconds?: number;
}

/** What a run is made of. Equal options give equal runs. */
export interface WorldOptions {
  readonly seed: number;
  readonly members: number;
  readonly days: number;
  /** Share of calls that are lost, 0 to 1. */
  readonly loss: number;
  readonly clockSkewSeconds: number;
  /** Milliseconds of events that are let loose together. */
  readonly quantumMs: number;
  /** What is not the default of the lifecycle. */
  readonly policy?: Partial<WorldPolicy>;
}

export const SECOND = 1_000;
export const MINUTE: number = 60 * SECOND;
export const HOUR: number = 60 * MINUTE;
export const DAY: number = 24 * HOUR;

/** When a data key was made it is published soon, or never. */
const PUBLISHED_WITHIN_MS: number = 30 * SECOND;

/** How long whoever made a second ring may be without the first. */
const ASTRAY_MS: number = 45 * MINUTE;

/** How long a new key waits until it seals, seconds: the lifecycle's default. */
export function propagationSecondsOf({
  sealOutageSeconds,
  refreshEverySeconds,
  clockSkewSeconds,
}: WorldPolicy): number {
  return sealOutageSeconds + 2 * refreshEverySeconds + clockSkewSeconds;
}

/** A fleet, its services, and what has been done to them. */
export class World {
  readonly options: WorldOptions;
  readonly policy: WorldPolicy;
  readonly timeline = new Timeline();
  readonly dice: Dice;
  readonly kms: SimulatedKms;
  readonly store: SimulatedStore;
  readonly members: readonly SimulatedMember[];
  /** Since when the KMS answers nobody, or refuses, and until when it last did; milliseconds. */
  readonly kmsTrouble = new Trouble();
  readonly storeTrouble = new Trouble();
  /** When nobody may wrap; what is wrapped already can be unwrapped. */
  readonly wrapTrouble = new Trouble();
  /** When the KMS answers, but refuses: it is to be obeyed, not to be coasted through. */
  readonly refusals = new Trouble();
  /** While somebody hostile writes the store. */
  readonly hostility = new Trouble();
  readonly #own = new Map<SimulatedMember, OwnTrouble>();
  readonly #listeners: ((event: WorldEvent) => void)[] = [];
  /** Rings that were made while another one lived: by their first key. */
  readonly #strayRoots = new Set<string>();
  /** Every key that was ever stored, as it was when it first was. */
  readonly firstSeen = new Map<string, FirstSeen>();
  /** When a member first wrote that a key is revoked; milliseconds. */
  readonly writtenAsRevoked = new Map<string, number>();
  /** Whether somebody hostile may wrap: then a start can be deceived. */
  mayWrap = false;
  /** Data keys that came to nothing because their maker was suspended, or the network held what it wrote. */
  spoilt = 0;
  /** When a write was last held in the network, milliseconds. */
  lastHeldAtMs: number = Number.NEGATIVE_INFINITY;
  /** When the last fault is over, milliseconds: those that begin before end by then. */
  peaceFromMs: number = Number.POSITIVE_INFINITY;
  /** Told what is done to the world and what it does, a line each. */
  trace: (line: string) => void = () => undefined;

  constructor(options: WorldOptions) {
    this.options = options;
    this.dice = new Dice(options.seed);
    this.policy = {
      clockSkewSeconds: options.clockSkewSeconds,
      refreshEverySeconds: 300,
      backoffCapSeconds: 60,
      kmsCheckEverySeconds: 900,
      sealOutageSeconds: 3_600,
      storeOutageSeconds: 21_600,
      tokenLifetimeSeconds: 3_600,
      kmsTimeoutSeconds: 5,
      rotateEverySeconds: 86_400,
      ...options.policy,
    };
    const weather = (meanLatencyMs: number): NetworkWeather => ({ loss: options.loss, meanLatencyMs });
    this.kms = new SimulatedKms(this.timeline, this.dice, weather(30));
    this.store = new SimulatedStore(this.timeline, this.dice, weather(8));
    this.store.onWritten = (document, before, line) => this.#noticeWrite(document, before, line);
    this.store.onStored = () => this.tell({ kind: 'stored' });
    const half = (options.clockSkewSeconds * SECOND) / 2;
    this.members = Array.from({ length: options.members }, (_, i) => {
      const skewMs = this.dice.between(-half, half);
      return this.newMember(`member ${i}`, skewMs);
    });
  }

  /** A machine of the fleet that does not run yet; of those that are not in {@link members} nobody takes care. */
  newMember(name: string, skewMs: number): SimulatedMember {
    const member = new SimulatedMember(name, this, new Dice(this.dice.word()), skewMs, { policy: this.policy });
    member.line.onGenerate = () => this.tell({ kind: 'generating', member });
    member.line.onMade = () => this.#noticeMade(member);
    member.line.onUnwrap = () => this.tell({ kind: 'unwrapping', member });
    member.line.onRefused = () => this.tell({ kind: 'refused', member });
    return member;
  }

  /** Calls `listener` on everything that can be aimed at. */
  listen(listener: (event: WorldEvent) => void): void {
    this.#listeners.push(listener);
  }

  tell(event: WorldEvent): void {
    for (const listener of this.#listeners) listener(event);
  }

  #noticeWrite(document: string, before: string | undefined, line: Line | undefined): void {
    const known = new Map(storedKeys(before).map((key) => [key.id, key]));
    const keys = storedKeys(document);
    for (const key of keys) {
      if (!this.firstSeen.has(key.id)) {
        const by = this.members.find((member) => member.line === line);
        const isHonest = line !== undefined;
        const seen = { at: this.timeline.nowMs, key, before: [...known.values()], isHonest, by };
        if (this.#isStrayRoot(seen)) this.#strayRoots.add(key.id);
        this.firstSeen.set(key.id, seen);
      }
      if (known.has(key.id)) continue;
      this.tell({ kind: 'publication' });
      const activatesInMs = Date.parse(key.activates) - EPOCH_MS - this.timeline.nowMs;
      if (activatesInMs > 0) this.timeline.after(activatesInMs, () => this.tell({ kind: 'activation' }));
    }
    const revoked = keys.filter((key) => key.revoked !== undefined && known.get(key.id)?.revoked === undefined);
    for (const { id } of line === undefined ? [] : revoked) {
      if (!this.writtenAsRevoked.has(id)) this.writtenAsRevoked.set(id, this.timeline.nowMs);
    }
    if (revoked.length > 0) this.tell({ kind: 'revocation' });
    if (line !== undefined) this.tell({ kind: 'written' });
  }

  #noticeMade(member: SimulatedMember): void {
    const madeAt = this.timeline.nowMs;
    const isHeld = member.line.writesHeldMs > 0;
    this.timeline.after(PUBLISHED_WITHIN_MS, () => {
      const isHit = isHeld || this.ownTrouble(member).machine.isLately(this.timeline.nowMs, PUBLISHED_WITHIN_MS);
      const isPublished = [...this.firstSeen.values()].some(({ by, at }) => by === member && at >= madeAt);
      if (isHit && !isPublished) this.spoilt += 1;
    });
  }

  /** Whether whoever made this key knew nothing of another ring that lives. */
  #isStrayRoot({ at, key, isHonest }: FirstSeen): boolean {
    if (!isHonest || Object.keys(key.vouchers).length > 0) return false;
    return [...this.firstSeen.values()].some(
      (other) => other.isHonest && !this.isStray(other.key.id) && Date.parse(other.key.opensUntil) > EPOCH_MS + at,
    );
  }

  /** Whether a key is of a ring that was made while another one lived: nothing is promised of its tokens. */
  isStray(id: string): boolean {
    if (this.#strayRoots.size === 0) return false;
    const { vouchers = {} } = this.firstSeen.get(id)?.key ?? {};
    const known = Object.keys(vouchers).filter((voucher) => this.firstSeen.has(voucher));
    return this.#strayRoots.has(id) || (known.length > 0 && known.every((voucher) => this.isStray(voucher)));
  }

  /** Whether a key was made by a clock that was far ahead: without any date its maker could not know. */
  isMisdated(id: string): boolean {
    const seen = this.firstSeen.get(id);
    if (this.isDated || seen === undefined) return false;
    return Date.parse(seen.key.created) > EPOCH_MS + seen.at + HOUR;
  }

  /** Whether a member has keys of such a ring alone, made a short while ago: it has not heard of the other one yet. */
  isAstray(member: SimulatedMember): boolean {
    if (this.#strayRoots.size === 0) return false;
    const held = member.codec?.health().keys.filter((key) => key.held) ?? [];
    const isNew = held.some(({ id }) => this.timeline.nowMs - (this.publishedAt(id) ?? 0) < ASTRAY_MS);
    return isNew && held.every(({ id }) => this.isStray(id));
  }

  /** How long a fault that begins now may last. */
  untilPeace(durationMs: number): number {
    return Math.max(0, Math.min(durationMs, this.peaceFromMs - this.timeline.nowMs));
  }

  /** How long after somebody hostile has stopped everybody must agree: 2 R + 60 s, and a call that is lost. */
  get settleMs(): number {
    const { refreshEverySeconds, backoffCapSeconds, kmsTimeoutSeconds } = this.policy;
    return (2 * refreshEverySeconds + backoffCapSeconds + 4 * kmsTimeoutSeconds) * SECOND;
  }

  get settledFromMs(): number {
    return (this.hostility.spells.at(-1)?.until ?? Number.NEGATIVE_INFINITY) + this.settleMs;
  }

  /** Whether the answers of the services carry dates. */
  get isDated(): boolean {
    return this.kms.dates.aheadMs !== undefined && this.store.dates.aheadMs !== undefined;
  }

  /** Whether somebody writes the store who must not, or did until just now. */
  get isUnsettled(): boolean {
    return this.timeline.nowMs < this.settledFromMs;
  }

  /** Trouble that is this member's alone. */
  ownTrouble(member: SimulatedMember): OwnTrouble {
    let own = this.#own.get(member);
    if (own === undefined) {
      own = { kms: new Trouble(), store: new Trouble(), clock: new Trouble(), machine: new Trouble() };
      this.#own.set(member, own);
    }
    return own;
  }

  /** When a key first stood in the store; milliseconds of the world. */
  publishedAt(keyId: string): number | undefined {
    return this.firstSeen.get(keyId)?.at;
  }

  /** A member that runs; every one of them is as likely. */
  anyMember(dice: Dice = this.dice): SimulatedMember | undefined {
    for (let tries = 0; tries < 8; tries++) {
      const member = dice.pick(this.members);
      if (member.isUp) return member;
    }
    const up = this.members.filter((member) => member.isUp);
    return up.length === 0 ? undefined : dice.pick(up);
  }

  /** Some of the members, other ones each time: all of a small fleet. */
  sample(): readonly SimulatedMember[] {
    if (this.members.length <= SAMPLE) return this.members;
    return Array.from({ length: SAMPLE }, () => this.dice.pick(this.members));
  }

  /**
   * A member that can be taken away without the ring being lost with it: nothing heals a store that was flushed once no
   * process holds the ring any more.
   */
  anyToSpare(dice: Dice = this.dice): SimulatedMember | undefined {
    const holding = this.members.filter((member) => member.isUp && !member.line.storeCut);
    return holding.length <= 3 ? undefined : dice.pick(holding);
  }

  /** The KMS fails as `kind` says for `durationMs`. */
  kmsFails(kind: NonNullable<SimulatedKms['failing']>, forMs: number): void {
    const durationMs = this.untilPeace(forMs);
    this.trace(`the KMS answers ${kind} for ${seconds(durationMs)}`);
    this.tell({ kind: 'KMS away' });
    const mend = this.kms.fail(kind);
    const refuses = kind === 'denied' || kind === 'disabled' || kind === 'not-found';
    this.kmsTrouble.begin(this.timeline.nowMs);
    if (refuses) this.refusals.begin(this.timeline.nowMs);
    this.timeline.after(durationMs, () => {
      mend();
      if (refuses) this.refusals.end(this.timeline.nowMs);
      this.kmsTrouble.end(this.timeline.nowMs);
    });
  }

  wrapsFail(forMs: number): void {
    const durationMs = this.untilPeace(forMs);
    this.trace(`the KMS denies wraps for ${seconds(durationMs)}`);
    this.kms.wrapFailing = 'denied';
    this.wrapTrouble.begin(this.timeline.nowMs);
    this.timeline.after(durationMs, () => {
      this.wrapTrouble.end(this.timeline.nowMs);
      // Denied twice, they are made again when the second time is over.
      if (this.wrapTrouble.since === undefined) this.kms.wrapFailing = undefined;
    });
  }

  storeFails(forMs: number): void {
    const durationMs = this.untilPeace(forMs);
    this.trace(`the store is down for ${seconds(durationMs)}`);
    this.store.down = true;
    this.storeTrouble.begin(this.timeline.nowMs);
    this.timeline.after(durationMs, () => {
      this.storeTrouble.end(this.timeline.nowMs);
      this.store.down = this.storeTrouble.since !== undefined;
    });
  }

  /** Cuts one member off from a service. */
  cut(member: SimulatedMember, service: 'kms' | 'store', forMs: number): void {
    const durationMs = this.untilPeace(forMs);
    this.tell({ kind: 'cut off', member });
    const flag = service === 'kms' ? 'kmsCut' : 'storeCut';
    this.trace(`${member.name} is cut off from the ${service} for ${seconds(durationMs)}`);
    const trouble = this.ownTrouble(member)[service];
    member.line[flag] = true;
    trouble.begin(this.timeline.nowMs);
    this.timeline.after(durationMs, () => {
      trouble.end(this.timeline.nowMs);
      // Cut off twice, it is back when the second cut is over.
      member.line[flag] = trouble.since !== undefined;
    });
  }

  crash(member: SimulatedMember, forMs: number): void {
    const downMs = this.untilPeace(forMs);
    const { machine } = this.ownTrouble(member);
    this.trace(`${member.name} crashes for ${seconds(downMs)}`);
    member.crash();
    machine.begin(this.timeline.nowMs);
    this.timeline.after(downMs, () => {
      machine.end(this.timeline.nowMs);
      this.tell({ kind: 'starting', member });
      member.start();
    });
  }

  freeze(member: SimulatedMember, forMs: number): void {
    const durationMs = this.untilPeace(forMs);
    const { machine } = this.ownTrouble(member);
    this.trace(`${member.name} is suspended for ${seconds(durationMs)}`);
    member.freeze();
    machine.begin(this.timeline.nowMs);
    this.timeline.after(durationMs, () => {
      machine.end(this.timeline.nowMs);
      member.thaw();
    });
  }

  /** One member's clock is wrong, and then as right as before. */
  clockIsWrong(member: SimulatedMember, aheadMs: number, forMs: number): void {
    const durationMs = this.untilPeace(forMs);
    this.trace(`the clock of ${member.name} is ${seconds(aheadMs)} ahead for ${seconds(durationMs)}`);
    const { clock } = this.ownTrouble(member);
    member.wrongMs += aheadMs;
    clock.begin(this.timeline.nowMs);
    this.tell({ kind: 'clock wrong', member });
    this.timeline.after(durationMs, () => {
      member.wrongMs -= aheadMs;
      clock.end(this.timeline.nowMs);
    });
  }

  /** One member's clock is set, by no more than is tolerated. */
  setClock(member: SimulatedMember, skewMs: number): void {
    this.tell({ kind: 'clock set', member });
    member.skewMs = skewMs;
    member.lowestSkewMs = Math.min(member.lowestSkewMs, skewMs);
    this.tell({ kind: 'clock set', member });
  }

  /** Every answer of the KMS takes longer. */
  kmsIsSlow(slowMs: number, forMs: number): void {
    const durationMs = this.untilPeace(forMs);
    this.trace(`the KMS takes ${seconds(slowMs)} for ${seconds(durationMs)}`);
    const { weather } = this.kms;
    weather.slowMs = (weather.slowMs ?? 0) + slowMs;
    this.kmsTrouble.begin(this.timeline.nowMs);
    this.timeline.after(durationMs, () => {
      weather.slowMs = (weather.slowMs ?? 0) - slowMs;
      this.kmsTrouble.end(this.timeline.nowMs);
    });
  }

  /** The dates of one service are wrong. */
  dateIsWrong(service: 'kms' | 'store', aheadMs: number, forMs: number): void {
    const durationMs = this.untilPeace(forMs);
    this.trace(`the dates of the ${service} are ${seconds(aheadMs)} ahead for ${seconds(durationMs)}`);
    this.timeline.after(durationMs, this[service].dates.beWrong(aheadMs));
  }

  /** The network holds the writes that one member sends during the next minute, and delivers them that much later. */
  holdWrites(member: SimulatedMember, heldMs: number): void {
    this.trace(`what ${member.name} writes now arrives ${seconds(heldMs)} later`);
    this.lastHeldAtMs = this.timeline.nowMs;
    member.line.writesHeldMs = this.untilPeace(heldMs);
    this.timeline.after(60_000, () => {
      member.line.writesHeldMs = 0;
    });
  }
}

function seconds(ms: number): string {
  return `${Math.round(ms / SECOND)} s`;
}

/** Something that faults and attackers can be aimed at. `member` is whom it is about. */
export interface WorldEvent {
  readonly kind:
    | 'starting'
    | 'cut off'
    | 'KMS away'
    | 'clock wrong'
    /** Told before and after. */
    | 'clock set'
    | 'unwrapping'
    | 'refused'
    | 'generating'
    | 'publication'
    | 'revocation'
    | 'activation'
    /** A member wrote the store. */
    | 'written'
    /** What is stored is another document than before, or none. */
    | 'stored';
  readonly member?: SimulatedMember;
}

/** A key when it first stood in the store, and what stood there before. */
export interface FirstSeen {
  readonly at: number;
  readonly key: StoredKey;
  readonly before: readonly StoredKey[];
  /** Whether a member of the fleet wrote it; which, where it is one of those that are taken care of. */
  readonly isHonest: boolean;
  readonly by: SimulatedMember | undefined;
}

interface OwnTrouble {
  readonly kms: Trouble;
  readonly store: Trouble;
  /** Its clock is wrong by more than is tolerated. */
  readonly clock: Trouble;
  /** Crashed, or suspended. */
  readonly machine: Trouble;
}

/** Members that are looked at where looking at all of them would cost more than running them. */
const SAMPLE = 200;
