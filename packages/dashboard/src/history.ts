import type { MemberCounts } from './member.ts';

/** Maximum number of rounds to keep and show. */
const MAX_ROUNDS = 120;

/** Counts between two rounds, summed over all members. */
export interface Round {
  readonly seconds: number;
  readonly sealed: number;
  readonly unsealed: number;
  readonly refused: ReadonlyMap<string, number>;
  readonly rejected: ReadonlyMap<string, number>;
}

/** Computes counts per round from the counters of the members. */
export class History {
  readonly #rounds: Round[] = [];
  readonly #last = new Map<string, MemberCounts>();
  #at: number | undefined;

  get rounds(): readonly Round[] {
    return this.#rounds;
  }

  /**
   * Adds a round. `counts` contains only members that answered. A member that missed a round is compared with its last
   * answer when it answers again.
   */
  add(atMs: number, counts: ReadonlyMap<string, MemberCounts>): void {
    const seconds = this.#at === undefined ? 0 : (atMs - this.#at) / 1_000;
    this.#at = atMs;
    const steps = [...counts].flatMap(([member, now]) => {
      const before = this.#last.get(member);
      this.#last.set(member, now);
      // A member's counts from before its first answer do not belong to this round.
      return before === undefined ? [] : [stepOf(before, now)];
    });
    if (seconds <= 0) return;
    this.#rounds.push({
      seconds,
      sealed: steps.reduce((total, step) => total + step.sealed, 0),
      unsealed: steps.reduce((total, step) => total + step.unsealed, 0),
      refused: merged(steps.map((step) => step.refused)),
      rejected: merged(steps.map((step) => step.rejected)),
    });
    if (this.#rounds.length > MAX_ROUNDS) this.#rounds.shift();
  }
}

function stepOf(before: MemberCounts, now: MemberCounts): MemberCounts {
  const each = (was: ReadonlyMap<string, number>, is: ReadonlyMap<string, number>): ReadonlyMap<string, number> =>
    new Map([...is].map(([reason, count]) => [reason, increase(was.get(reason) ?? 0, count)]));
  return {
    sealed: increase(before.sealed, now.sealed),
    unsealed: increase(before.unsealed, now.unsealed),
    refused: each(before.refused, now.refused),
    rejected: each(before.rejected, now.rejected),
  };
}

/**
 * The increase of a counter. A counter that is lower than before has started again at 0, because its process was
 * restarted.
 */
function increase(before: number, now: number): number {
  return now >= before ? now - before : now;
}

/** Sums by reason. Reasons with a sum of 0 are left out. */
export function merged(maps: readonly ReadonlyMap<string, number>[]): ReadonlyMap<string, number> {
  const total = new Map<string, number>();
  for (const [reason, count] of maps.flatMap((map) => [...map])) {
    if (count > 0) total.set(reason, (total.get(reason) ?? 0) + count);
  }
  return total;
}
