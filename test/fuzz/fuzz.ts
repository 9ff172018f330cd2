import type { Coverage, Ran } from './coverage.ts';
import { Mutator } from './mutate.ts';
import { Fault, type Parser } from './parser.ts';

/** Time limit of an input, milliseconds; a slower one is measured three times more before it counts. */
const LONGEST_MS = 50;
/** Number of inputs between two reads of the coverage: larger while nothing new is found. */
const SMALLEST_BATCH = 256;
const LARGEST_BATCH = 4_096;
const KEPT_AT_MOST = 2_000;
/** Stops after this many failing inputs. */
const MOST_FAILURES = 100;

/** An input that shows a defect. */
interface Failure {
  readonly input: Uint8Array;
  /** The defect, in words. */
  readonly what: string;
}

/** The result of a run. */
export interface Outcome {
  readonly inputs: number;
  /** Inputs that the parser accepted. */
  readonly accepted: number;
  /** Inputs that reached code which none before them had reached. */
  readonly kept: readonly Uint8Array[];
  readonly failures: readonly Failure[];
}

export interface Budget {
  /** Number of inputs to try. */
  readonly inputs: number;
  readonly seed: number;
  /** Inputs from earlier runs. */
  readonly corpus?: readonly Uint8Array[];
}

/** Tries a parser on inputs made of its seeds and of each other, and keeps those that reach new code. */
export async function fuzz(
  parser: Parser,
  coverage: Coverage,
  { inputs, seed, corpus = [] }: Budget,
): Promise<Outcome> {
  const mutator = new Mutator(seed, parser.words);
  const pool = [...parser.seeds, ...corpus];
  const kept: Uint8Array[] = [];
  const failures: Failure[] = [];
  let accepted = 0;

  const run = async (batch: readonly Uint8Array[]): Promise<Ran> => {
    for (const input of batch) {
      const result = tried(parser, input);
      const { failure, isAccepted } = result instanceof Promise ? await result : result;
      if (isAccepted) accepted += 1;
      if (failure !== undefined) failures.push({ input, what: failure });
    }
    return coverage.take();
  };
  // Finds the inputs of a batch that reached the new code, by running its halves again. State inside a parser may hide
  // that code; then no input is kept.
  const keepOf = async (batch: readonly Uint8Array[]): Promise<void> => {
    const ran = await run(batch);
    if (!coverage.isNew(ran)) return;
    if (batch.length > 1) {
      const middle = batch.length >> 1;
      await keepOf(batch.slice(0, middle));
      await keepOf(batch.slice(middle));
    } else if (kept.length < KEPT_AT_MOST) {
      kept.push(...batch);
      pool.push(...batch);
      coverage.add(ran);
    }
  };

  coverage.add(await run(pool));
  accepted = 0;
  let size = SMALLEST_BATCH;
  for (let made = 0; made < inputs && failures.length < MOST_FAILURES; ) {
    const batch = Array.from({ length: Math.min(size, inputs - made) }, () => mutator.next(pool));
    made += batch.length;
    const ran = await run(batch);
    if (coverage.isNew(ran)) {
      const counted = accepted;
      await keepOf(batch);
      coverage.add(ran);
      accepted = counted;
      size = SMALLEST_BATCH;
    } else {
      size = Math.min(LARGEST_BATCH, size * 2);
    }
  }
  return { inputs, accepted, kept, failures };
}

interface Tried {
  readonly isAccepted: boolean;
  readonly failure: string | undefined;
}

function tried(parser: Parser, input: Uint8Array): Tried | Promise<Tried> {
  const began = performance.now();
  try {
    const result = parser.parse(input);
    if (result instanceof Promise) {
      return result.then(
        () => judged(parser, input, began),
        (error: unknown) => judged(parser, input, began, { error }),
      );
    }
    return judged(parser, input, began);
  } catch (error) {
    return judged(parser, input, began, { error });
  }
}

function judged(
  parser: Parser,
  input: Uint8Array,
  began: number,
  thrown?: { readonly error: unknown },
): Tried | Promise<Tried> {
  const isAccepted = thrown === undefined;
  if (thrown !== undefined) {
    const { error } = thrown;
    if (!(error instanceof Error)) return { isAccepted, failure: `threw a ${typeof error}` };
    if (error instanceof Fault || !parser.refuses(error)) {
      return { isAccepted, failure: `${error.name}: ${error.message.slice(0, 200)}` };
    }
  }
  const took = performance.now() - began;
  return took <= LONGEST_MS ? { isAccepted, failure: undefined } : slowest(parser, input, isAccepted);
}

/** The machine may have paused: a slow input is slow every time. */
async function slowest(parser: Parser, input: Uint8Array, isAccepted: boolean): Promise<Tried> {
  let best = Number.POSITIVE_INFINITY;
  for (let time = 0; time < 3; time++) {
    const began = performance.now();
    try {
      await parser.parse(input);
    } catch {
      // The answer was checked already: only its time matters.
    }
    best = Math.min(best, performance.now() - began);
  }
  return { isAccepted, failure: best > LONGEST_MS ? `took ${Math.round(best)} ms` : undefined };
}
