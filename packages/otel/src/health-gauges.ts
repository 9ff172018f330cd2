import type { BatchObservableCallback, BatchObservableResult, Meter } from '@opentelemetry/api';
import { type Clock, type CodecHealth, hashedKeyId, type KmsCodec } from '@sealring/core';
import { ATTRIBUTE, KNOWN } from './attributes.ts';

/** A codec whose health is read at each collection. */
export interface Observed {
  readonly codec: Pick<KmsCodec, 'health'>;
  readonly ring: string;
  readonly clock: Pick<Clock, 'wallMs'>;
}

/** The reported values of one codec. All zero, and no status, once it is closed or no longer observed. */
interface Report {
  readonly status: string | undefined;
  readonly ready: boolean;
  readonly canSeal: boolean;
  readonly canUnseal: boolean;
  readonly sealRemaining: number;
  readonly keySealRemaining: number;
  readonly kmsCheckAge: number;
  readonly refreshAge: number;
  readonly keyStates: readonly string[];
  readonly problems: readonly string[];
  readonly sealingKey: number;
}

const GONE: Report = Object.freeze({
  status: undefined,
  ready: false,
  canSeal: false,
  canUnseal: false,
  sealRemaining: 0,
  keySealRemaining: 0,
  kmsCheckAge: 0,
  refreshAge: 0,
  keyStates: [],
  problems: [],
  sealingKey: 0,
});

/** Gauges for the health of codecs, which may be added and removed between collections. */
export class HealthGauges {
  readonly #meter: Meter;
  readonly #gauges;
  readonly #callback: BatchObservableCallback;
  readonly #observed = new Map<string, Observed>();
  /** An SDK may continue to export the last values, so a removed codec is reported once more, with zeros. */
  readonly #gone = new Set<string>();

  constructor(meter: Meter) {
    this.#meter = meter;
    this.#gauges = createGauges(meter);
    this.#callback = (result) => this.#collect(result);
    meter.addBatchObservableCallback(this.#callback, Object.values(this.#gauges));
  }

  get size(): number {
    return this.#observed.size;
  }

  has(ring: string): boolean {
    return this.#observed.has(ring);
  }

  add(one: Observed): void {
    this.#gone.delete(one.ring);
    this.#observed.set(one.ring, one);
  }

  remove(one: Observed): void {
    if (this.#observed.get(one.ring) !== one) return;
    this.#observed.delete(one.ring);
    this.#gone.add(one.ring);
  }

  dispose(): void {
    this.#observed.clear();
    this.#gone.clear();
    this.#meter.removeBatchObservableCallback(this.#callback, Object.values(this.#gauges));
  }

  #collect(result: BatchObservableResult): void {
    for (const one of this.#observed.values()) {
      const health = healthOf(one);
      if (health === undefined) this.remove(one);
      else this.#report(result, one.ring, reportOf(health, one.clock.wallMs()));
    }
    for (const ring of this.#gone) this.#report(result, ring, GONE);
    this.#gone.clear();
  }

  #report(result: BatchObservableResult, ring: string, report: Report): void {
    const gauges = this.#gauges;
    const own = { [ATTRIBUTE.ring]: ring };
    for (const status of KNOWN.status) {
      result.observe(gauges.status, status === report.status ? 1 : 0, { ...own, [ATTRIBUTE.status]: status });
    }
    for (const state of KNOWN.keyState) {
      const count = report.keyStates.filter((each) => each === state).length;
      result.observe(gauges.keys, count, { ...own, [ATTRIBUTE.keyState]: state });
    }
    for (const kind of KNOWN.problemKind) {
      result.observe(gauges.problem, report.problems.includes(kind) ? 1 : 0, { ...own, [ATTRIBUTE.problemKind]: kind });
    }
    for (const name of ['ready', 'canSeal', 'canUnseal'] as const) {
      result.observe(gauges[name], report[name] ? 1 : 0, own);
    }
    for (const name of ['sealRemaining', 'keySealRemaining', 'kmsCheckAge', 'refreshAge', 'sealingKey'] as const) {
      result.observe(gauges[name], report[name], own);
    }
  }
}

function reportOf(health: CodecHealth, nowMs: number): Report {
  return {
    status: health.status,
    ready: health.ready,
    canSeal: health.canSeal,
    canUnseal: health.canUnseal,
    sealRemaining: secondsUntil(health.sealUntil, nowMs),
    keySealRemaining: secondsUntil(lastEnd(health), nowMs),
    kmsCheckAge: secondsSince(health.lastKmsCheck, nowMs),
    refreshAge: secondsSince(health.lastRefresh, nowMs),
    keyStates: health.keys.map(({ state }) => state),
    problems: health.problems.map(({ kind }) => kind),
    sealingKey: health.sealingKey === undefined ? 0 : fingerprint(health.sealingKey),
  };
}

function createGauges(meter: Meter) {
  // Not `1`, which stands for a ratio: a collector would add `_ratio` to the name.
  const flag = (name: string, description: string) =>
    meter.createObservableGauge(name, { unit: '{member}', description });
  const seconds = (name: string, description: string) => meter.createObservableGauge(name, { unit: 's', description });
  const count = (name: string, unit: string, description: string) =>
    meter.createObservableUpDownCounter(name, { unit, description });
  return {
    status: count('sealring.codec.status', '{member}', '1 for the current status of the codec, 0 for the others'),
    problem: count(
      'sealring.codec.problem',
      '{problem}',
      '1 for each kind of problem that needs an operator, 0 for the others',
    ),
    ready: flag('sealring.codec.ready', 'Whether this member is ready for requests'),
    canSeal: flag('sealring.codec.can_seal', 'Whether this member can seal now'),
    canUnseal: flag('sealring.codec.can_unseal', 'Whether this member can unseal now'),
    sealRemaining: seconds(
      'sealring.codec.seal.remaining',
      'How long this member continues to seal without KMS and ring store',
    ),
    kmsCheckAge: seconds('sealring.codec.kms_check.age', 'Time since the last KMS check that passed'),
    refreshAge: seconds('sealring.codec.refresh.age', 'Time since the last complete refresh'),
    keys: count('sealring.ring.key.count', '{key}', 'Keys of the ring in the view of this member, by state'),
    keySealRemaining: seconds(
      'sealring.ring.seal.remaining',
      'How long the keys of the ring can seal without another rotation',
    ),
    // A number instead of a label, because a label would get a new value for each key.
    sealingKey: meter.createObservableGauge('sealring.ring.sealing_key.fingerprint', {
      unit: '{fingerprint}',
      description: 'Fingerprint of the key that this member seals with, the same on every member; 0 for none',
    }),
  };
}

/** When the last key that is not revoked stops sealing. */
function lastEnd({ keys }: CodecHealth): Date | undefined {
  const usable = keys.filter(({ state }) => state !== 'revoked' && state !== 'expired');
  return usable.length === 0 ? undefined : new Date(Math.max(...usable.map(({ sealsUntil }) => sealsUntil.getTime())));
}

function secondsUntil(date: Date | undefined, nowMs: number): number {
  return date === undefined ? 0 : Math.max(0, (date.getTime() - nowMs) / 1_000);
}

function secondsSince(date: Date | undefined, nowMs: number): number {
  return date === undefined ? 0 : Math.max(0, (nowMs - date.getTime()) / 1_000);
}

/** The first 6 bytes of the key's hash in the events: a number that a double represents exactly. */
function fingerprint(keyId: string): number {
  return Buffer.from(hashedKeyId(keyId), 'base64url').readUIntBE(0, 6);
}

/** Undefined once the codec is closed. By name, because the codec may use another copy of core. */
function healthOf({ codec }: Observed): CodecHealth | undefined {
  try {
    return codec.health();
  } catch (error) {
    if (error instanceof Error && error.name === 'CodecClosedError') return undefined;
    throw error;
  }
}
