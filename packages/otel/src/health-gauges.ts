import type { Attributes, BatchObservableCallback, BatchObservableResult, Meter, Observable } from '@opentelemetry/api';
import { type Clock, type CodecHealth, hashedKeyId, type KmsCodec } from '@sealring/core';
import { ATTRIBUTE, KNOWN } from './attributes.ts';

/** A codec whose health is read at each collection. */
export interface Observed {
  readonly codec: Pick<KmsCodec, 'health'>;
  readonly ring: string;
  readonly clock: Pick<Clock, 'wallMs'>;
}

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
      else this.#report(result, one.ring, health, one.clock.wallMs());
    }
    for (const ring of this.#gone) this.#report(result, ring, undefined, 0);
    this.#gone.clear();
  }

  /** Reports zeros and no current status for a codec that is closed or no longer observed. */
  #report(result: BatchObservableResult, ring: string, health: CodecHealth | undefined, nowMs: number): void {
    const gauges = this.#gauges;
    const observe = (gauge: Observable, value: number | boolean, more?: Attributes): void =>
      result.observe(gauge, Number(value), { [ATTRIBUTE.ring]: ring, ...more });
    const secondsUntil = (date: Date | undefined): number => Math.max(0, ((date?.getTime() ?? 0) - nowMs) / 1_000);
    const secondsSince = (date: Date | undefined): number => Math.max(0, (nowMs - (date?.getTime() ?? nowMs)) / 1_000);
    const hasProblem = (kind: string): boolean => health?.problems.some((problem) => problem.kind === kind) === true;
    for (const status of KNOWN.status) {
      observe(gauges.status, health?.status === status, { [ATTRIBUTE.status]: status });
    }
    for (const state of KNOWN.keyState) {
      const count = health?.keys.filter((key) => key.state === state).length;
      observe(gauges.keys, count ?? 0, { [ATTRIBUTE.keyState]: state });
    }
    for (const kind of KNOWN.problemKind) observe(gauges.problem, hasProblem(kind), { [ATTRIBUTE.problemKind]: kind });
    for (const name of ['ready', 'canSeal', 'canUnseal'] as const) observe(gauges[name], health?.[name] === true);
    observe(gauges.sealRemaining, secondsUntil(health?.sealUntil));
    observe(gauges.keySealRemaining, secondsUntil(health && lastEnd(health)));
    observe(gauges.kmsCheckAge, secondsSince(health?.lastKmsCheck));
    observe(gauges.refreshAge, secondsSince(health?.lastRefresh));
    observe(gauges.sealingKey, health?.sealingKey === undefined ? 0 : fingerprint(health.sealingKey));
  }
}

function createGauges(meter: Meter) {
  // The unit is not `1`, because that means a ratio, and a collector would append `_ratio` to the name.
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
      'How long this member continues to seal without the KMS and the ring store',
    ),
    kmsCheckAge: seconds('sealring.codec.kms_check.age', 'Time since the last KMS check that passed'),
    refreshAge: seconds('sealring.codec.refresh.age', 'Time since the last complete refresh'),
    keys: count('sealring.ring.key.count', '{key}', 'Keys of the ring in the view of this member, by state'),
    keySealRemaining: seconds(
      'sealring.ring.seal.remaining',
      'How long the keys of the ring can seal without another rotation',
    ),
    // The fingerprint is the value and not a label, because a label would get a new value for each key.
    sealingKey: meter.createObservableGauge('sealring.ring.sealing_key.fingerprint', {
      unit: '{fingerprint}',
      description: 'Fingerprint of the key that this member seals with, the same on every member; 0 for none',
    }),
  };
}

/** When the last key that is not revoked stops sealing. */
function lastEnd({ keys }: CodecHealth): Date {
  const usable = keys.filter(({ state }) => state !== 'revoked' && state !== 'expired');
  return new Date(Math.max(0, ...usable.map(({ sealsUntil }) => sealsUntil.getTime())));
}

/** The first 6 bytes of the hash that events show for the key, as a number that a double represents exactly. */
function fingerprint(keyId: string): number {
  return Buffer.from(hashedKeyId(keyId), 'base64url').readUIntBE(0, 6);
}

/**
 * The health of a codec; undefined once the codec is closed. The error is recognized by its name, because the codec may
 * come from another copy of core.
 */
export function healthOf({ codec }: Pick<Observed, 'codec'>): CodecHealth | undefined {
  try {
    return codec.health();
  } catch (error) {
    if (error instanceof Error && error.name === 'CodecClosedError') return undefined;
    throw error;
  }
}
