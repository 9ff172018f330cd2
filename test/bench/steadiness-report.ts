import { type Estimate, estimate, quantile } from './statistics.ts';
import type { Condition } from './steadiness-disturbances.ts';
import type { Counts, LoadMeasure } from './steadiness-load.ts';
import type { Recording } from './steadiness-server.ts';
import type { Verdict } from './verdict.ts';

/** One measured phase under load. Quiet phases and others alternate; the first and last are quiet. */
export interface Phase {
  readonly condition: 'quiet' | Condition;
  readonly recording: Recording;
  readonly load: LoadMeasure;
  /** Number of disturbances; 0 in a quiet phase. */
  readonly disturbances: number;
}

/** Microseconds of one kind of token operation. */
export interface Tail {
  readonly operations: number;
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
  readonly longest: number;
}

/** Values of all phases of one condition. */
export interface ConditionReport {
  readonly condition: Phase['condition'];
  readonly phases: number;
  /** In all phases together, and in the phase that had the fewest. */
  readonly disturbances: number;
  readonly fewestDisturbances: number;
  /** The least number of different keys that sealed in a phase. */
  readonly fewestSealingKeys: number;
  /** Inside the server: seals, and accepted unseals; `token` is both together. */
  readonly token: Tail;
  readonly seal: Tail;
  readonly unseal: Tail;
  /** Refused unseals; undefined if there were none. */
  readonly refusal: Tail | undefined;
  /**
   * Ratio to the p99.9 of the quiet phases next to it: phase by phase, undefined for fewer than six. For the quiet
   * condition: each quiet phase to its two quiet neighbours, which shows the effect of chance alone.
   */
  readonly tokenRatio: Estimate | undefined;
  readonly sealRatio: Estimate | undefined;
  readonly unsealRatio: Estimate | undefined;
  /** The same ratio for the operations of all phases together, compared with all quiet phases. */
  readonly pooledTokenRatio: number;
  /** The times from outside, in milliseconds from the intended start, and the p99.9 of the clients' own delay. */
  readonly request: { readonly p50: number; readonly p99: number; readonly p999: number };
  readonly requestRatio: Estimate | undefined;
  readonly latenessP999: number;
  /** Milliseconds, the median of the phases. */
  readonly eventLoopP999: number;
  /** Garbage collection: milliseconds per second, and the longest one. */
  readonly collecting: number;
  readonly longestCollection: number;
  readonly counts: Counts;
}

export interface SteadinessReport {
  /** Requests per second: of clients that wait for their answers, and of the measured ones, which do not. */
  readonly closedLoopRate: number | undefined;
  readonly rate: number;
  readonly rounds: number;
  readonly phaseSeconds: number;
  /** Quiet first. */
  readonly conditions: readonly ConditionReport[];
  /** Requests that ended before the first phase or after the last. */
  readonly besides: Counts;
}

const JUDGED: readonly Condition[] = ['rotation', 'KMS hang', 'KMS outage', 'hostile tokens'];
const TOKEN_LIMIT = 1.2;
const LEAST_ROUNDS = 6;
const FAILURES_TOLD = 5;

type Samples = (phase: Phase) => readonly number[];

const sealsOf: Samples = ({ recording }) => recording.seals;
const unsealsOf: Samples = ({ recording }) => recording.unseals;
const tokensOf: Samples = ({ recording }) => [...recording.seals, ...recording.unseals];
const requestsOf: Samples = ({ load }) => load.latencies;

/** The statistics of each condition, quiet first. */
export function summarise(phases: readonly Phase[]): readonly ConditionReport[] {
  const conditions = new Set(phases.map(({ condition }) => condition));
  return Array.from(conditions, (condition) => summaryOf(condition, phases));
}

function summaryOf(condition: Phase['condition'], phases: readonly Phase[]): ConditionReport {
  const mine = phases.filter((phase) => phase.condition === condition);
  const quiet = phases.filter((phase) => phase.condition === 'quiet');
  const requests = sortedOf(mine, requestsOf);
  const disturbances = mine.map((phase) => phase.disturbances);
  return {
    condition,
    phases: mine.length,
    disturbances: sum(disturbances),
    fewestDisturbances: Math.min(...disturbances),
    fewestSealingKeys: Math.min(...mine.map(({ recording }) => recording.sealingKeys)),
    token: tailOf(mine, tokensOf),
    seal: tailOf(mine, sealsOf),
    unseal: tailOf(mine, unsealsOf),
    refusal: mine.some(({ recording }) => recording.refusals.length > 0)
      ? tailOf(mine, ({ recording }) => recording.refusals)
      : undefined,
    tokenRatio: ratioOf(condition, phases, tokensOf),
    sealRatio: ratioOf(condition, phases, sealsOf),
    unsealRatio: ratioOf(condition, phases, unsealsOf),
    pooledTokenRatio: p999Of(mine, tokensOf) / p999Of(quiet, tokensOf),
    request: { p50: quantile(requests, 0.5), p99: quantile(requests, 0.99), p999: quantile(requests, 0.999) },
    requestRatio: ratioOf(condition, phases, requestsOf),
    latenessP999: p999Of(mine, ({ load }) => load.lateness),
    eventLoopP999: quantile(
      mine.map(({ recording }) => recording.eventLoopP999).toSorted((a, b) => a - b),
      0.5,
    ),
    collecting:
      sum(mine.map(({ recording }) => recording.collecting)) / sum(mine.map((phase) => phase.recording.seconds)),
    longestCollection: Math.max(...mine.map(({ recording }) => recording.longestCollection)),
    counts: addedUp(mine.map(({ load }) => load.counts)),
  };
}

/**
 * Ratio of each phase to its quiet neighbours, because a slow machine affects neighbours alike. The ratio is to their
 * geometric mean: together they would have the tail of the worse one, and phases that do not differ would have a ratio
 * below 1.
 */
function ratioOf(condition: Phase['condition'], phases: readonly Phase[], samples: Samples): Estimate | undefined {
  const step = condition === 'quiet' ? 2 : 1;
  const ratios = phases.flatMap((phase, at) => {
    const [before, after] = [phases[at - step], phases[at + step]];
    if (phase.condition !== condition || before === undefined || after === undefined) return [];
    return [p999Of([phase], samples) / Math.sqrt(p999Of([before], samples) * p999Of([after], samples))];
  });
  return ratios.length < LEAST_ROUNDS ? undefined : estimate(ratios);
}

function sortedOf(phases: readonly Phase[], samples: Samples): readonly number[] {
  return phases.flatMap(samples).toSorted((a, b) => a - b);
}

function p999Of(phases: readonly Phase[], samples: Samples): number {
  return quantile(sortedOf(phases, samples), 0.999);
}

function tailOf(phases: readonly Phase[], nanoseconds: Samples): Tail {
  const sorted = sortedOf(phases, nanoseconds);
  const at = (share: number): number => quantile(sorted, share) / 1_000;
  return { operations: sorted.length, p50: at(0.5), p99: at(0.99), p999: at(0.999), longest: at(1) };
}

export function addedUp(counts: readonly Counts[]): Counts {
  const add = (pick: (each: Counts) => number): number => sum(counts.map(pick));
  return {
    valid: add(({ valid }) => valid),
    failed: add(({ failed }) => failed),
    hostile: add(({ hostile }) => hostile),
    refused: add(({ refused }) => refused),
    failures: counts.flatMap(({ failures }) => failures).slice(0, FAILURES_TOLD),
  };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** A limit whose value was not measured, or too rarely, is not met. */
export function judgeSteadiness({ conditions, besides }: SteadinessReport): readonly Verdict[] {
  const tails = JUDGED.map((name): Verdict => {
    const ratio = conditions.find(({ condition }) => condition === name)?.tokenRatio?.median;
    // The printed number decides.
    const measured = Number((ratio ?? Number.NaN).toFixed(2));
    const law = `p99.9 of token operations during ${name}, as a multiple of the quiet condition, at most`;
    return { law, limit: TOKEN_LIMIT, measured, met: measured <= TOKEN_LIMIT };
  });
  const failures = [...conditions, { condition: 'start and end', counts: besides }].map(
    ({ condition, counts }): Verdict => none(`failed valid requests, ${condition}`, counts.failed),
  );
  const { hostile, refused } = addedUp([...conditions.map(({ counts }) => counts), besides]);
  const idle = conditions.filter(({ condition, fewestDisturbances: fewest }) => condition !== 'quiet' && fewest === 0);
  const rotation = conditions.find(({ condition }) => condition === 'rotation');
  const keys = rotation?.fewestSealingKeys ?? 0;
  return [
    ...tails,
    { law: 'keys that sealed in every rotation, at least', limit: 2, measured: keys, met: keys >= 2 },
    ...failures,
    none('hostile tokens that were not refused', hostile - refused),
    none('conditions with a phase in which nothing happened', idle.length),
  ];
}

function none(law: string, measured: number): Verdict {
  return { law, limit: 0, measured, met: measured === 0 };
}
