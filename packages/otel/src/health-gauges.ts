import type { BatchObservableCallback, BatchObservableResult, Meter } from '@opentelemetry/api';
import { type Clock, type CodecHealth, hashedKeyId, type KmsCodec } from '@sealring/core';
import { ATTRIBUTE, KNOWN } from './attributes.ts';

/** A codec whose health is asked for at every collection. */
export interface Observed {
  readonly codec: Pick<KmsCodec, 'health'>;
  readonly ring: string;
  readonly clock: Pick<Clock, 'wallMs'>;
}

/** What is reported of one codec. All zero, and no status, once it is closed or no longer observed. */
interface Report {
  readonly status: string | undefined;
  readonly ready: boolean;
  readonly canSeal: boolean;
  readonly canOpen: boolean;
  readonly sealRemaining: number;
  readonly keySealRemaining: number;
  readonly proofAge: number;
  readonly refreshAge: number;
  readonly keyStates: readonly string[];
  readonly problems: readonly string[];
  readonly sealingKey: number;
}

const GONE: Report = Object.freeze({
  status: undefined,
  ready: false,
  canSeal: false,
  canOpen: false,
  sealRemaining: 0,
  keySealRemaining: 0,
  proofAge: 0,
  refreshAge: 0,
  keyStates: [],
  problems: [],
  sealingKey: 0,
});

/** Gauges of the health of codecs, which may come and go between collections. */
export class HealthGauges {
  readonly #meter: Meter;
  readonly #gauges;
  readonly #callback: BatchObservableCallback;
  readonly #observed = new Map<string, Observed>();
  /** An SDK may go on exporting what was reported last: who left is reported once more, as nothing. */
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
    for (const name of ['ready', 'canSeal', 'canOpen'] as const) {
      result.observe(gauges[name], report[name] ? 1 : 0, own);
    }
    for (const name of ['sealRemaining', 'keySealRemaining', 'proofAge', 'refreshAge', 'sealingKey'] as const) {
      result.observe(gauges[name], report[name], own);
    }
  }
}

function reportOf(health: CodecHealth, nowMs: number): Report {
  return {
    status: health.status,
    ready: health.ready,
    canSeal: health.canSeal,
    canOpen: health.canUnseal,
    sealRemaining: secondsUntil(health.sealUntil, nowMs),
    keySealRemaining: secondsUntil(lastEnd(health), nowMs),
    proofAge: secondsSince(health.lastProof, nowMs),
    refreshAge: secondsSince(health.lastRefresh, nowMs),
    keyStates: health.keys.map(({ state }) => state),
    problems: health.problems.map(({ kind }) => kind),
    sealingKey: health.sealingKey === undefined ? 0 : fingerprint(health.sealingKey),
  };
}

function createGauges(meter: Meter) {
  const flag = (name: string, description: string) => meter.createObservableGauge(name, { unit: '1', description });
  const seconds = (name: string, description: string) => meter.createObservableGauge(name, { unit: 's', description });
  const count = (name: string, unit: string, description: string) =>
    meter.createObservableUpDownCounter(name, { unit, description });
  return {
    status: count('sealring.codec.status', '1', '1 for the status that the codec has, 0 for the others'),
    problem: count(
      'sealring.codec.problem',
      '1',
      '1 for each kind of problem that needs an operator, 0 for the others',
    ),
    ready: flag('sealring.codec.ready', 'Whether requests may be sent to this member'),
    canSeal: flag('sealring.codec.can_seal', 'Whether this member may seal now'),
    canOpen: flag('sealring.codec.can_open', 'Whether this member may open tokens now'),
    sealRemaining: seconds(
      'sealring.codec.seal.remaining',
      'How long sealing goes on if neither KMS nor store answers any more',
    ),
    proofAge: seconds('sealring.codec.proof.age', 'Time since the KMS last unwrapped a key of the ring rightly'),
    refreshAge: seconds('sealring.codec.refresh.age', 'Time since the last refresh that went through whole'),
    keys: count('sealring.ring.key.count', '{key}', 'Keys of the ring as this member knows it, by state'),
    keySealRemaining: seconds('sealring.ring.seal.remaining', 'How long a key of the ring may seal, if none follows'),
    // A number and no label: a label would have a new value for every key there ever was.
    sealingKey: flag(
      'sealring.ring.sealing_key.fingerprint',
      'Which key this member seals with: the same number at every member; 0 for none',
    ),
  };
}

/** When the last key that nobody has revoked stops sealing. */
function lastEnd({ keys }: CodecHealth): Date | undefined {
  const usable = keys.filter(({ state }) => state !== 'revoked' && state !== 'retired');
  return usable.length === 0 ? undefined : new Date(Math.max(...usable.map(({ sealsUntil }) => sealsUntil.getTime())));
}

function secondsUntil(date: Date | undefined, nowMs: number): number {
  return date === undefined ? 0 : Math.max(0, (date.getTime() - nowMs) / 1_000);
}

function secondsSince(date: Date | undefined, nowMs: number): number {
  return date === undefined ? 0 : Math.max(0, (nowMs - date.getTime()) / 1_000);
}

/** The first 6 bytes of the hash that events name a key by: a number that every double can hold. */
function fingerprint(keyId: string): number {
  return Buffer.from(hashedKeyId(keyId), 'base64url').readUIntBE(0, 6);
}

/** Undefined once the codec is closed. By name: the project may have a copy of core that is not ours. */
function healthOf({ codec }: Observed): CodecHealth | undefined {
  try {
    return codec.health();
  } catch (error) {
    if (error instanceof Error && error.name === 'CodecClosedError') return undefined;
    throw error;
  }
}
