import { type Clock, createKmsCodec, type KmsCodec, type RingPolicy } from '@sealring/core';
import { completePolicy } from '../policy-times.ts';
import { dice } from './dice.ts';
import { SimulatedServices } from './services.ts';
import { settled, VirtualTime } from './virtual-time.ts';

const DAY_MS = 86_400_000;
/** Any date. */
const EPOCH_MS = Date.parse('2026-01-01T00:00:00Z');
/** Tokens that are tried again later, at most. */
const MOST_TOKENS = 500;

export interface FleetOptions {
  readonly policy: Partial<RingPolicy>;
  readonly servers: number;
  readonly days: number;
  readonly seed: number;
  /** How long the KMS, or the store, is out of reach in the middle of the run, seconds. */
  readonly kmsOutageSeconds: number;
  readonly storeOutageSeconds: number;
}

/** What was counted. */
export interface FleetReport {
  readonly sealed: number;
  readonly opened: number;
  /** Tokens that a server refused while its times let it open them. */
  readonly refusedTokens: number;
  /** Reason and number of what could not be sealed, and when that was first, seconds after the outage began. */
  readonly refusedSeals: Readonly<Record<string, number>>;
  readonly firstRefusalSeconds: number | undefined;
  readonly keysMade: number;
  readonly mostKeys: number;
  readonly kmsCallsPerServerDay: number;
  readonly versionLooksPerServerDay: number;
  readonly storeReadsPerServerDay: number;
}

interface Token {
  readonly text: string;
  readonly atMs: number;
}

/**
 * Runs the real keeper, schedule and codec of a fleet on a virtual clock: days pass in seconds. Servers start together,
 * their clocks differ by up to clockSkew, and once a minute one of them seals what all others open.
 *
 * @param hour - Told of every virtual hour; `false` ends the run.
 */
export async function runFleet(options: FleetOptions, hour: (hours: number) => boolean): Promise<FleetReport> {
  const { servers, days, seed, policy } = options;
  const times = completePolicy(policy);
  const time = new VirtualTime();
  const services = new SimulatedServices();
  const roll = dice(seed);
  const fleet = await start(servers, { services, roll, policy, time });
  const started = { ...services.calls };
  const endMs = time.nowMs + days * DAY_MS;
  const outageMs = time.nowMs + (days * DAY_MS) / 2;
  const stepMs = Math.min(60_000, times.refreshEverySeconds * 500);

  const tokens: Token[] = [];
  const refusedSeals = new Map<string, number>();
  const seen = new Set<string>();
  const counts = {
    sealed: 0,
    opened: 0,
    refusedTokens: 0,
    mostKeys: 0,
    firstRefusalSeconds: undefined as number | undefined,
  };
  let hours = 0;
  try {
    for (let step = 0; time.nowMs < endMs; step++) {
      const sinceOutageMs = time.nowMs - outageMs;
      services.isKmsAway = sinceOutageMs >= 0 && sinceOutageMs < options.kmsOutageSeconds * 1_000;
      services.isStoreAway = sinceOutageMs >= 0 && sinceOutageMs < options.storeOutageSeconds * 1_000;
      await time.runUntil(Math.min(endMs, time.nowMs + stepMs));
      const token = sealAt(fleet[step % servers] as KmsCodec);
      if ('text' in token) {
        counts.sealed += 1;
        tokens.push({ text: token.text, atMs: time.nowMs });
      } else {
        refusedSeals.set(token.reason, (refusedSeals.get(token.reason) ?? 0) + 1);
        counts.firstRefusalSeconds ??= Math.round((time.nowMs - outageMs) / 1_000);
      }
      const old = tokens[Math.floor(roll() * tokens.length)];
      const isYoung = ({ atMs }: Token): boolean => time.nowMs - atMs < times.tokenLifetimeSeconds * 1_000;
      for (const codec of fleet) {
        for (const tried of ['text' in token ? token.text : undefined, old && isYoung(old) ? old.text : undefined]) {
          if (tried === undefined) continue;
          if (opens(codec, tried)) counts.opened += 1;
          else counts.refusedTokens += 1;
        }
      }
      while (tokens.length > MOST_TOKENS || (tokens[0] !== undefined && !isYoung(tokens[0]))) tokens.shift();
      const { keys } = (fleet[0] as KmsCodec).health();
      for (const { id } of keys) seen.add(id);
      counts.mostKeys = Math.max(counts.mostKeys, keys.length);
      if (time.nowMs >= hours * 3_600_000 && !hour(hours++)) break;
    }
    const serverDays = (servers * Math.max(1, time.nowMs)) / DAY_MS;
    return {
      ...counts,
      refusedSeals: Object.fromEntries(refusedSeals),
      keysMade: seen.size,
      kmsCallsPerServerDay: (services.calls.kms - started.kms) / serverDays,
      versionLooksPerServerDay: (services.calls.looks - started.looks) / serverDays,
      storeReadsPerServerDay: (services.calls.store - started.store) / serverDays,
    };
  } finally {
    await Promise.all(fleet.map((codec) => codec.close()));
  }
}

interface World {
  readonly services: SimulatedServices;
  readonly roll: () => number;
  readonly policy: Partial<RingPolicy>;
  readonly time: VirtualTime;
}

async function start(servers: number, world: World): Promise<readonly KmsCodec[]> {
  const { services, roll, policy, time } = world;
  const skewMs = completePolicy(policy).clockSkewSeconds * 1_000;
  const random = (fill: Uint8Array): void => {
    for (let at = 0; at < fill.length; at++) fill[at] = Math.floor(roll() * 256);
  };
  const fleet: KmsCodec[] = [];
  for (let server = 0; server < servers; server++) {
    const started = createKmsCodec({
      keyWrapper: services.keyWrapper,
      ring: services.ring,
      policy,
      random,
      clock: clockOf(time, (roll() - 0.5) * skewMs),
      create: server === 0 ? 'now' : 'never',
    });
    fleet.push(await inTime(started, time));
  }
  return fleet;
}

/** Lets virtual time pass until a promise that waits for it is settled. */
async function inTime<T>(waiting: Promise<T>, time: VirtualTime): Promise<T> {
  const state = { isSettled: false };
  const settle = (): void => {
    state.isSettled = true;
  };
  waiting.then(settle, settle);
  for (await settled(); !state.isSettled; await settled()) await time.runUntil(time.nowMs + 1_000);
  return waiting;
}

function clockOf(time: VirtualTime, skewMs: number): Clock {
  return {
    wallMs: () => EPOCH_MS + time.nowMs + skewMs,
    monotonicNs: () => BigInt(Math.round(time.nowMs * 1e6)),
    schedule: (callback, delayMs) => time.after(delayMs, callback),
  };
}

const PAYLOAD = new TextEncoder().encode('simulated');

function sealAt(codec: KmsCodec): { readonly text: string } | { readonly reason: string } {
  try {
    return { text: codec.seal(PAYLOAD) };
  } catch (error) {
    if (error instanceof Error && error.name === 'SealUnavailableError') {
      return { reason: String(Reflect.get(error, 'reason')) };
    }
    throw error;
  }
}

function opens(codec: KmsCodec, token: string): boolean {
  try {
    codec.unseal(token);
    return true;
  } catch (error) {
    if (error instanceof Error && error.name === 'InvalidRequestState') return false;
    throw error;
  }
}
