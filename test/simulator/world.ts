import type { RingPolicy } from '@sealring/core';
import { Dice } from './dice.ts';
import { SimulatedMember } from './member.ts';
import { type NetworkWeather, SimulatedKms, SimulatedStore } from './services.ts';
import { Timeline } from './timeline.ts';

/** Lifecycle defaults that the invariants are computed from, seconds. */
export interface WorldPolicy {
  readonly clockSkewSeconds: number;
  readonly refreshEverySeconds: number;
  readonly backoffCapSeconds: number;
  readonly proveEverySeconds: number;
  readonly sealOutageSeconds: number;
  readonly storeOutageSeconds: number;
  readonly tokenLifetimeSeconds: number;
  readonly kmsTimeoutSeconds: number;
  readonly rotateEverySeconds: number;
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
}

export const SECOND = 1_000;
export const MINUTE: number = 60 * SECOND;
export const HOUR: number = 60 * MINUTE;
export const DAY: number = 24 * HOUR;

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
  readonly #own = new Map<SimulatedMember, OwnTrouble>();
  /** Told what is done to the world and what it does, a line each. */
  trace: (line: string) => void = () => undefined;

  constructor(options: WorldOptions) {
    this.options = options;
    this.dice = new Dice(options.seed);
    this.policy = {
      clockSkewSeconds: options.clockSkewSeconds,
      refreshEverySeconds: 300,
      backoffCapSeconds: 60,
      proveEverySeconds: 900,
      sealOutageSeconds: 3_600,
      storeOutageSeconds: 21_600,
      tokenLifetimeSeconds: 3_600,
      kmsTimeoutSeconds: 5,
      rotateEverySeconds: 86_400,
    };
    const weather = (meanLatencyMs: number): NetworkWeather => ({ loss: options.loss, meanLatencyMs });
    this.kms = new SimulatedKms(this.timeline, this.dice, weather(30));
    this.store = new SimulatedStore(this.timeline, this.dice, weather(8));
    const policy: Partial<RingPolicy> = this.policy;
    const half = (options.clockSkewSeconds * SECOND) / 2;
    this.members = Array.from({ length: options.members }, (_, i) => {
      const skewMs = this.dice.between(-half, half);
      return new SimulatedMember(`member ${i}`, this, new Dice(this.dice.word()), skewMs, { policy });
    });
  }

  /** Trouble that is this member's alone. */
  ownTrouble(member: SimulatedMember): OwnTrouble {
    let own = this.#own.get(member);
    if (own === undefined) {
      own = { kms: new Trouble(), store: new Trouble(), machine: new Trouble() };
      this.#own.set(member, own);
    }
    return own;
  }

  /** When a key first stood in the store; milliseconds of the world. */
  publishedAt(keyId: string): number | undefined {
    return this.store.history.find(({ stored }) => stored.document.includes(`"id":"${keyId}"`))?.at;
  }

  /** A member that runs; every one of them is as likely. */
  anyMember(): SimulatedMember | undefined {
    for (let tries = 0; tries < 8; tries++) {
      const member = this.dice.pick(this.members);
      if (member.isUp) return member;
    }
    const up = this.members.filter((member) => member.isUp);
    return up.length === 0 ? undefined : this.dice.pick(up);
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
  anyToSpare(): SimulatedMember | undefined {
    const holding = this.members.filter((member) => member.isUp && !member.line.storeCut);
    return holding.length <= 3 ? undefined : this.dice.pick(holding);
  }

  /** The KMS fails as `kind` says for `durationMs`. */
  kmsFails(kind: NonNullable<SimulatedKms['failing']>, durationMs: number): void {
    this.trace(`the KMS answers ${kind} for ${seconds(durationMs)}`);
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

  wrapsFail(durationMs: number): void {
    this.trace(`the KMS denies wraps for ${seconds(durationMs)}`);
    this.kms.wrapFailing = 'denied';
    this.wrapTrouble.begin(this.timeline.nowMs);
    this.timeline.after(durationMs, () => {
      this.kms.wrapFailing = undefined;
      this.wrapTrouble.end(this.timeline.nowMs);
    });
  }

  storeFails(durationMs: number): void {
    this.trace(`the store is down for ${seconds(durationMs)}`);
    this.store.down = true;
    this.storeTrouble.begin(this.timeline.nowMs);
    this.timeline.after(durationMs, () => {
      this.store.down = false;
      this.storeTrouble.end(this.timeline.nowMs);
    });
  }

  /** Cuts one member off from a service. */
  cut(member: SimulatedMember, service: 'kms' | 'store', durationMs: number): void {
    const flag = service === 'kms' ? 'kmsCut' : 'storeCut';
    this.trace(`${member.name} is cut off from the ${service} for ${seconds(durationMs)}`);
    const trouble = this.ownTrouble(member)[service];
    member.line[flag] = true;
    trouble.begin(this.timeline.nowMs);
    this.timeline.after(durationMs, () => {
      member.line[flag] = false;
      trouble.end(this.timeline.nowMs);
    });
  }

  crash(member: SimulatedMember, downMs: number): void {
    const { machine } = this.ownTrouble(member);
    this.trace(`${member.name} crashes for ${seconds(downMs)}`);
    member.crash();
    machine.begin(this.timeline.nowMs);
    this.timeline.after(downMs, () => {
      machine.end(this.timeline.nowMs);
      member.start();
    });
  }

  freeze(member: SimulatedMember, durationMs: number): void {
    const { machine } = this.ownTrouble(member);
    this.trace(`${member.name} is suspended for ${seconds(durationMs)}`);
    member.freeze();
    machine.begin(this.timeline.nowMs);
    this.timeline.after(durationMs, () => {
      machine.end(this.timeline.nowMs);
      member.thaw();
    });
  }
}

function seconds(ms: number): string {
  return `${Math.round(ms / SECOND)} s`;
}

interface OwnTrouble {
  readonly kms: Trouble;
  readonly store: Trouble;
  /** Crashed, or suspended. */
  readonly machine: Trouble;
}

/** Members that are looked at where looking at all of them would cost more than running them. */
const SAMPLE = 200;
/** Troubles with a shorter peace between them count as one: a member may not have got a call through meanwhile. */
const PEACE_MS: number = 3 * MINUTE;
const REMEMBERED = 256;

/** When something was wrong. */
export class Trouble {
  #depth = 0;
  /** Oldest first; the last one may be going on. */
  readonly spells: { readonly from: number; until: number }[] = [];

  begin(nowMs: number): void {
    if (this.#depth === 0) this.spells.push({ from: nowMs, until: Number.POSITIVE_INFINITY });
    if (this.spells.length > REMEMBERED) this.spells.shift();
    this.#depth += 1;
  }

  end(nowMs: number): void {
    this.#depth -= 1;
    const spell = this.spells.at(-1);
    if (this.#depth === 0 && spell !== undefined) spell.until = nowMs;
  }
}

/** Milliseconds since the beginning of what is wrong now, or was until just now; 0: nothing is. */
export function lastingMs(nowMs: number, troubles: readonly Trouble[]): number {
  const spells = troubles.flatMap((trouble) => trouble.spells).toSorted((a, b) => b.until - a.until);
  let from = nowMs;
  for (const spell of spells) {
    if (spell.until < from - PEACE_MS) break;
    from = Math.min(from, spell.from);
  }
  return nowMs - from;
}
