import { disagreement } from './agreement.ts';
import { FAULT_CLASSES, type FaultClass } from './faults.ts';
import { callsPerMember } from './formula.ts';
import type { SimulatedMember } from './member.ts';
import { QUIET_MS } from './operations.ts';
import { Oracle, type Violation } from './oracle.ts';
import { storedKeys } from './stored-keys.ts';
import { DAY, HOUR, MINUTE, SECOND, World, type WorldOptions } from './world.ts';

/** The result of a run. Everything in it follows from its options. */
export interface RunReport {
  readonly options: WorldOptions & { readonly faults: readonly string[] };
  readonly tokens: {
    readonly sealed: number;
    readonly opened: number;
    readonly failed: number;
    readonly excusedSeals: number;
    readonly excusedOpens: number;
    readonly excusedAtOnce: number;
    readonly openedAfterPrepare: number;
  };
  readonly calls: {
    readonly kms: number;
    readonly store: number;
    readonly kmsPerMemberDay: number;
    readonly storePerMemberDay: number;
    readonly generated: number;
    /** Calls per member per day by the formula of the guide for a run of this length, if it covers the faults. */
    readonly expected: { readonly kms: number; readonly store: number } | undefined;
  };
  readonly ring: {
    /** Writes that the store accepted, and keys that it ever held. */
    readonly writes: number;
    readonly published: number;
    readonly keys: number;
    readonly mostKeys: number;
  };
  /** Seconds from the publication of a key until the last running member held it, one for each key. */
  readonly propagationSeconds: readonly number[];
  readonly bounds: {
    /** Longest seal with a revoked key after its revocation, seconds. */
    readonly lastSealWithRevokedSeconds: number;
    /** Longest seal, and unseal, after the KMS began to refuse, seconds. Sampled once a minute. */
    readonly lastSealAfterRefusalSeconds: number;
    readonly lastOpenAfterRefusalSeconds: number;
  };
  readonly violationCount: number;
  readonly violations: readonly Violation[];
  /** One sample an hour. */
  readonly hours: readonly HourSample[];
}

interface HourSample {
  readonly hour: number;
  readonly kmsCalls: number;
  readonly storeCalls: number;
  readonly up: number;
  readonly keys: number;
  readonly failed: number;
}

/** Listeners to a run. */
export interface RunListener {
  /** Called before the first member starts. */
  readonly onBegin?: (world: World) => void;
  /** Whether to continue with the next hour: the results so far are reported in any case. */
  readonly onHour?: (sample: HourSample) => boolean | void;
  /** Called for every event, with its time in milliseconds. */
  readonly trace?: (atMs: number, line: string) => void;
}

const MOST_KEYS_MADE = 3;

/** Runs a world under some classes of faults at once. */
export async function simulate(
  options: WorldOptions,
  faults: readonly string[],
  listener: RunListener = {},
): Promise<RunReport> {
  const world = new World(options);
  const { trace } = listener;
  if (trace !== undefined) {
    world.trace = (line) => trace(world.timeline.nowMs, line);
    world.store.trace = world.trace;
  }
  const oracle = new Oracle(world);
  for (const name of faults) faultClass(name)(world, oracle);
  listener.onBegin?.(world);
  for (const member of world.members) member.start();
  oracle.watch(Math.max(10 * SECOND, MINUTE));
  const propagation = watchPropagation(world);
  const hours: HourSample[] = [];
  let before = { kms: 0, store: 0 };
  const lastHour = options.days * 24;
  for (let hour = 1; hour <= lastHour; hour++) {
    await world.timeline.advance(hour * HOUR, options.quantumMs);
    const kms = world.kms.total;
    const store = world.store.calls.read + world.store.calls.write;
    const sample: HourSample = {
      hour,
      kmsCalls: kms - before.kms,
      storeCalls: store - before.store,
      up: world.members.filter((member) => member.isUp).length,
      keys: world.members.find((member) => member.isUp)?.codec?.health().keys.length ?? 0,
      failed: oracle.violationCount,
    };
    before = { kms, store };
    hours.push(sample);
    if (listener.onHour?.(sample) === false) break;
  }
  await converge(world, oracle);
  checkGenerated(world, oracle);
  const report = reportOf(world, oracle, faults, propagation, hours);
  for (const member of world.members) member.crash();
  return report;
}

function faultClass(name: string): FaultClass {
  const found = FAULT_CLASSES[name];
  if (found === undefined) {
    throw new RangeError(
      `unknown class of faults ${JSON.stringify(name)}; the classes are ${Object.keys(FAULT_CLASSES).join(', ')}`,
    );
  }
  return found;
}

/** After the last fault and a few quiet hours there is one ring, and every member holds it. */
async function converge(world: World, oracle: Oracle): Promise<void> {
  const deadline = world.timeline.nowMs + 3 * HOUR;
  // A member that does not know the time, or is still cut off, may not know the ring.
  const sound = (): readonly SimulatedMember[] =>
    world.members.filter((member) => {
      const isCutOff = member.line.kmsCut || member.line.storeCut;
      return !isCutOff && !oracle.excuses.isLost(member);
    });
  let last: string | undefined;
  // Scheduled faults continue; one moment without a fault is enough.
  while (world.timeline.nowMs < deadline) {
    await world.timeline.advance(world.timeline.nowMs + 5 * MINUTE, world.options.quantumMs);
    last = disagreement(world, sound());
    if (last === undefined) return;
  }
  oracle.report('one ring', last ?? '');
}

/** However many members find a rotation due, few make a key for it. */
function checkGenerated(world: World, oracle: Oracle): void {
  const published = publishedIn(world);
  const made = world.kms.made - world.spoilt;
  if (made > MOST_KEYS_MADE * published) {
    oracle.report('at most 3 data keys per rotation', `${made} made for ${published} published`);
  }
}

/** Keys that were ever stored. */
function publishedIn({ store }: World): number {
  return new Set(store.history.flatMap(({ stored }) => storedKeys(stored.document).map(({ id }) => id))).size;
}

/** Measures how long a new key takes to reach the whole fleet. The time is sampled, so it is accurate within 30 s. */
function watchPropagation(world: World): number[] {
  const seconds: number[] = [];
  let known = 0;
  const pending = new Map<string, number>();
  world.timeline.every(30 * SECOND, () => {
    for (const { at, stored } of world.store.history.slice(known)) {
      for (const id of storedKeys(stored.document).map((key) => key.id)) {
        if (!seen.has(id)) pending.set(id, at);
        seen.add(id);
      }
    }
    known = world.store.history.length;
    if (pending.size === 0) return;
    const running = world.members.filter((member) => member.isUp);
    const held = running.map((member) => new Set(member.heldKeys.map((key) => key.id)));
    for (const [id, at] of pending) {
      if (held.every((ids) => ids.has(id))) {
        seconds.push(Math.round((world.timeline.nowMs - at) / SECOND));
        pending.delete(id);
      } else if (world.timeline.nowMs - at > DAY) pending.delete(id);
    }
  });
  const seen = new Set<string>();
  return seconds;
}

/** The formula for a run that it covers, per member per day: no faults, or ten minutes without a KMS hourly. */
function expectedCalls(
  { policy, options, timeline }: World,
  faults: readonly string[],
): { readonly kms: number; readonly store: number } | undefined {
  const wrong = faults.filter((name) => name !== 'quiet');
  const [only] = wrong;
  if (wrong.length > 1 || (only !== undefined && only !== 'kms-outage-hourly-10')) return undefined;
  const hourly = { fromSeconds: (QUIET_MS + HOUR) / SECOND, everySeconds: 3_600, lengthSeconds: 600 };
  const outages = only === undefined ? undefined : hourly;
  const { kms, store } = callsPerMember(policy, options.loss, timeline.nowMs / SECOND, outages);
  const days = timeline.nowMs / DAY;
  return { kms: kms / days, store: store / days };
}

function reportOf(
  world: World,
  oracle: Oracle,
  faults: readonly string[],
  propagationSeconds: readonly number[],
  hours: readonly HourSample[],
): RunReport {
  const { options, kms, store } = world;
  const storeCalls = store.calls.read + store.calls.write;
  const memberDays = options.members * (world.timeline.nowMs / DAY);
  return {
    options: { ...options, faults },
    tokens: {
      sealed: oracle.sealed,
      opened: oracle.opened,
      failed: oracle.violationCount,
      excusedSeals: oracle.excusedSeals,
      excusedOpens: oracle.excusedOpens,
      excusedAtOnce: oracle.excusedAtOnce,
      openedAfterPrepare: oracle.openedAfterPrepare,
    },
    calls: {
      kms: kms.total,
      store: storeCalls,
      kmsPerMemberDay: kms.total / memberDays,
      storePerMemberDay: storeCalls / memberDays,
      generated: kms.made,
      expected: expectedCalls(world, faults),
    },
    ring: {
      writes: store.history.length,
      published: publishedIn(world),
      keys: storedKeys(store.document).length,
      mostKeys: oracle.mostKeys,
    },
    propagationSeconds,
    bounds: {
      lastSealWithRevokedSeconds: oracle.limits.lastSealWithRevokedMs / SECOND,
      lastSealAfterRefusalSeconds: oracle.limits.lastSealAfterRefusalMs / SECOND,
      lastOpenAfterRefusalSeconds: oracle.limits.lastOpenAfterRefusalMs / SECOND,
    },
    violationCount: oracle.violationCount,
    violations: oracle.violations,
    hours,
  };
}
