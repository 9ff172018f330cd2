import { Contestant } from './contestant.ts';
import { type Estimate, estimate, quantile } from './statistics.ts';
import type { Turn, TurnResult } from './worker.ts';

export const OURS = 'Sealring';
export const FLOORS = ['bare cipher', 'plain codec'] as const;
export const OPERATIONS = ['seal', 'unseal'] as const;

/** Fewer operations than this say nothing about the slowest one in a thousand. */
const TELLING_TAIL = 5_000;

/** The cost of one operation of one contender on one size of payload. */
export interface Cost {
  readonly contender: string;
  readonly operation: Turn['operation'];
  readonly bytes: number;
  readonly tokenLength: number;
  /** Microseconds per operation; `p999` is undefined if too few were timed. */
  readonly batch: Estimate;
  readonly p50: number;
  readonly p99: number;
  readonly p999: number | undefined;
  /** Garbage collection, microseconds per operation. */
  readonly collecting: number;
  /** Ratio to Sealring: of batches of the same round, and of the medians of single operations. */
  readonly timesOurs: Estimate;
  readonly timesOursAtP50: Estimate;
  /** Bytes per operation; for the headline size only. */
  readonly memory?: { readonly heap: number; readonly external: number };
}

export interface TokenPathOptions {
  readonly contenders: readonly string[];
  /** The interpreter with the MCP Python SDK, if there is one. */
  readonly python: string | undefined;
  readonly sizes: readonly number[];
  /** Turns of each contender at each operation. */
  readonly rounds: number;
  readonly turnMilliseconds: number;
  readonly headlineBytes: number;
  progress(done: number): void;
}

const WARM_UP_ROUNDS = 4;
const MEMORY_OF = 200;
const PYTHON = 'Python SDK';

/** A turn of each contender at each operation, round after round: a slow machine affects neighbours alike. */
export async function measureTokenPath(options: TokenPathOptions): Promise<readonly Cost[]> {
  const { contenders, python, sizes, rounds, turnMilliseconds: milliseconds } = options;
  const contestants = contenders.map((name) => Contestant.onNode(name));
  if (python !== undefined) contestants.push(Contestant.onPython(PYTHON, python));
  const tasks = sizes.flatMap((bytes) => OPERATIONS.map((operation) => ({ bytes, operation, milliseconds })));
  const results = new Map<string, TurnResult[]>();
  const keyOf = (name: string, { bytes, operation }: Turn): string => `${name} ${operation} ${bytes}`;
  try {
    for (let round = -WARM_UP_ROUNDS; round < rounds; round++) {
      for (const task of tasks) {
        for (const contestant of contestants) {
          const result = await contestant.take(task);
          const key = keyOf(contestant.name, task);
          if (round >= 0) results.set(key, [...(results.get(key) ?? []), result]);
        }
      }
      options.progress((round + WARM_UP_ROUNDS + 1) / (rounds + WARM_UP_ROUNDS));
    }
    const costs: Cost[] = [];
    for (const task of tasks) {
      const ours = results.get(keyOf(OURS, task)) ?? [];
      for (const contestant of contestants) {
        const turns = results.get(keyOf(contestant.name, task)) ?? [];
        const cost = costOf(contestant.name, task, turns, ours);
        const counts = task.bytes === options.headlineBytes && contestant.name !== PYTHON;
        const { memory } = counts ? await contestant.take({ ...task, memoryOf: MEMORY_OF }) : { memory: undefined };
        costs.push(memory === undefined ? cost : { ...cost, memory });
      }
    }
    return costs;
  } finally {
    for (const contestant of contestants) contestant.stop();
  }
}

function costOf(
  contender: string,
  { operation, bytes }: Turn,
  turns: readonly TurnResult[],
  ours: readonly TurnResult[],
): Cost {
  const samples = turns.flatMap((turn) => turn.samples).toSorted((a, b) => a - b);
  const medianOf = (turn: TurnResult | undefined): number =>
    quantile(
      (turn?.samples ?? []).toSorted((a, b) => a - b),
      0.5,
    );
  return {
    contender,
    operation,
    bytes,
    tokenLength: turns[0]?.tokenLength ?? 0,
    batch: estimate(turns.map((turn) => turn.nanoseconds / 1_000)),
    p50: quantile(samples, 0.5) / 1_000,
    p99: quantile(samples, 0.99) / 1_000,
    p999: samples.length < TELLING_TAIL ? undefined : quantile(samples, 0.999) / 1_000,
    collecting: turns.reduce((sum, turn) => sum + turn.collecting, 0) / turns.length / 1_000,
    timesOurs: estimate(turns.map((turn, round) => turn.nanoseconds / (ours[round]?.nanoseconds ?? Number.NaN))),
    timesOursAtP50: estimate(turns.map((turn, round) => medianOf(turn) / medianOf(ours[round]))),
  };
}
