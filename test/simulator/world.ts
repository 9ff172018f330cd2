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

/** Options of a run. Equal options give equal runs. */
export interface WorldOptions {
  readonly seed: number;
  readonly members: number;
  readonly days: number;
  /** Share of calls that are lost, 0 to 1. */
  readonly loss: number;
  readonly clockSkewSeconds: number;
  /** Milliseconds of events that run together. */
  readonly quantumMs: number;
  /** Deviations from the default lifecycle. */
  readonly policy?: Partial<WorldPolicy>;
}

export const SECOND = 1_000;
export const MINUTE: number = 60 * SECOND;
export const HOUR: number = 60 * MINUTE;
export const DAY: number = 24 * HOUR;

/** A data key is published soon after it was made, or never. */
const PUBLISHED_WITHIN_MS: number = 30 * SECOND;

/** How long the creator of a second ring may not know the first. */
const ASTRAY_MS: number = 45 * MINUTE;

/** How long a new key waits until it seals, seconds: the lifecycle's default. */
export function propagationSecondsOf({
  sealOutageSeconds,
  refreshEverySeconds,
  clockSkewSeconds,
}: WorldPolicy): number {
  return sealOutageSeconds + 2 * refreshEverySeconds + clockSkewSeconds;
}

/** A fleet, its services, and the faults so far. */
export class World {
  readonly options: WorldOptions;
  readonly policy: WorldPolicy;
  readonly timeline = new Timeline();
  readonly dice: Dice;
  readonly kms: SimulatedKms;
  readonly store: SimulatedStore;
  readonly members: readonly SimulatedMember[];
  /** When the KMS began to fail or refuse, and when it last did so; milliseconds. */
  readonly kmsTrouble = new Trouble();
  readonly storeTrouble = new Trouble();
  /** When no member may wrap; existing wraps can still be unwrapped. */
  readonly wrapTrouble = new Trouble();
  /** When the KMS answers, but refuses: members must stop, not wait for its end. */
  readonly refusals = new Trouble();
  /** The time while an attacker writes to the store. */
  readonly hostility = new Trouble();
  readonly #own = new Map<SimulatedMember, OwnTrouble>();
  readonly #listeners: ((event: WorldEvent) => void)[] = [];
  /** Rings that were created while another one existed, by their first key. */
  readonly #strayRoots = new Set<string>();
  /** Every key that was ever stored, as it was first. */
  readonly firstSeen = new Map<string, FirstSeen>();
  /** When a member first wrote that a key is revoked; milliseconds. */
  readonly writtenAsRevoked = new Map<string, number>();
  /** Whether the attacker may wrap, and so can deceive a start. */
  mayWrap = false;
  /** Data keys that were not published because their maker was suspended, or the network held the write. */
  spoilt = 0;
  /** When a write was last held in the network, milliseconds. */
  lastHeldAtMs: number = Number.NEGATIVE_INFINITY;
  /** When the last fault is over, milliseconds: those that begin before end by then. */
  peaceFromMs: number = Number.POSITIVE_INFINITY;
  /** Called for every fault and event, with one line of text. */
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

  /** A machine of the fleet that does not run yet; those that are not in {@link members} are not managed. */
  newMember(name: string, skewMs: number): SimulatedMember {
    const member = new SimulatedMember(name, this, new Dice(this.dice.word()), skewMs, { policy: this.policy });
    member.line.onGenerate = () => this.tell({ kind: 'generating', member });
    member.line.onMade = () => this.#noticeMade(member);
    member.line.onUnwrap = () => this.tell({ kind: 'unwrapping', member });
    member.line.onRefused = () => this.tell({ kind: 'refused', member });
    return member;
  }

  /** Calls `listener` for every event that a fault can aim at. */
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

  /** Whether the maker of this key did not know that another ring existed. */
  #isStrayRoot({ at, key, isHonest }: FirstSeen): boolean {
    if (!isHonest || Object.keys(key.vouchers).length > 0) return false;
    return [...this.firstSeen.values()].some(
      (other) => other.isHonest && !this.isStray(other.key.id) && Date.parse(other.key.opensUntil) > EPOCH_MS + at,
    );
  }

  /**
   * Whether a key belongs to a ring that was created while another one existed: the fleet promises nothing about its
   * tokens.
   */
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

  /** Whether a member has only keys of such a ring, made a short while ago, and has not read the other one yet. */
  isAstray(member: SimulatedMember): boolean {
    if (this.#strayRoots.size === 0) return false;
    const held = member.heldKeys;
    const isNew = held.some(({ id }) => this.timeline.nowMs - (this.publishedAt(id) ?? 0) < ASTRAY_MS);
    return isNew && held.every(({ id }) => this.isStray(id));
  }

  /** How long a fault that begins now may last. */
  untilPeace(durationMs: number): number {
    return Math.max(0, Math.min(durationMs, this.peaceFromMs - this.timeline.nowMs));
  }

  /** How long after an attack all members must agree: 2 R + 60 s, and a lost call. */
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

  /** Whether an attacker writes to the store, or did until a moment ago. */
  get isUnsettled(): boolean {
    return this.timeline.nowMs < this.settledFromMs;
  }

  /** Faults of this member alone. */
  ownTrouble(member: SimulatedMember): OwnTrouble {
    let own = this.#own.get(member);
    if (own === undefined) {
      own = { kms: new Trouble(), store: new Trouble(), clock: new Trouble(), machine: new Trouble() };
      this.#own.set(member, own);
    }
    return own;
  }

  /** When the store first held a key; milliseconds of the world. */
  publishedAt(keyId: string): number | undefined {
    return this.firstSeen.get(keyId)?.at;
  }

  /** A random running member. */
  anyMember(dice: Dice = this.dice): SimulatedMember | undefined {
    for (let tries = 0; tries < 8; tries++) {
      const member = dice.pick(this.members);
      if (member.isUp) return member;
    }
    const up = this.members.filter((member) => member.isUp);
    return up.length === 0 ? undefined : dice.pick(up);
  }

  /** Random members, different ones each time: all of a small fleet. */
  sample(): readonly SimulatedMember[] {
    if (this.members.length <= SAMPLE) return this.members;
    return Array.from({ length: SAMPLE }, () => this.dice.pick(this.members));
  }

  /** A member whose end does not lose the ring: no process can restore a flushed store once none holds the ring. */
  anyToSpare(dice: Dice = this.dice): SimulatedMember | undefined {
    const holding = this.members.filter((member) => member.isUp && !member.line.storeCut);
    return holding.length <= 3 ? undefined : dice.pick(holding);
  }

  /** The KMS fails with `kind` for `durationMs`. */
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
      // If wraps were denied twice, they succeed again when the second time is over.
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

  /** Every answer of the KMS is delayed. */
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

  /** The network holds the writes of one member during the next minute, and delivers them this much later. */
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

/** An event that faults and attackers can aim at. `member` is the affected member. */
export interface WorldEvent {
  readonly kind:
    | 'starting'
    | 'cut off'
    | 'KMS away'
    | 'clock wrong'
    /** Called before and after. */
    | 'clock set'
    | 'unwrapping'
    | 'refused'
    | 'generating'
    | 'publication'
    | 'revocation'
    | 'activation'
    /** A member wrote to the store. */
    | 'written'
    /** The stored document has changed, or is gone. */
    | 'stored';
  readonly member?: SimulatedMember;
}

/** A key when it was first stored, and the document before. */
export interface FirstSeen {
  readonly at: number;
  readonly key: StoredKey;
  readonly before: readonly StoredKey[];
  /** Whether a member of the fleet wrote it; which one, if it is managed. */
  readonly isHonest: boolean;
  readonly by: SimulatedMember | undefined;
}

interface OwnTrouble {
  readonly kms: Trouble;
  readonly store: Trouble;
  /** Its clock is wrong by more than is tolerated. */
  readonly clock: Trouble;
  /** The time while the member has crashed or is suspended. */
  readonly machine: Trouble;
}

/** Most members that are checked if checking all would cost more than running them. */
const SAMPLE = 200;
