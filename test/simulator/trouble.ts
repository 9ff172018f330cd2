/** Faults with a shorter pause between them count as one: a member may not have completed a call meanwhile. */
const PEACE_MS = 180_000;
const REMEMBERED = 256;

/** The periods of a fault. */
export class Trouble {
  #depth = 0;
  /** Oldest first; the last one may not have ended. */
  readonly spells: { readonly from: number; until: number }[] = [];

  begin(nowMs: number): void {
    if (this.#depth === 0) this.spells.push({ from: nowMs, until: Number.POSITIVE_INFINITY });
    if (this.spells.length > REMEMBERED) this.spells.shift();
    this.#depth += 1;
  }

  /** Since when it has lasted without a pause, milliseconds; undefined if there is no fault now. */
  get since(): number | undefined {
    const spell = this.spells.at(-1);
    return spell?.until === Number.POSITIVE_INFINITY ? spell.from : undefined;
  }

  /** Whether it lasts, or ended less than `ms` ago. */
  isLately(nowMs: number, ms: number): boolean {
    const spell = this.spells.at(-1);
    return spell !== undefined && nowMs < spell.until + ms;
  }

  /** Milliseconds since it ended; infinite if it lasts, or never was. */
  endedForMs(nowMs: number): number {
    const spell = this.spells.at(-1);
    return spell === undefined || spell.until === Number.POSITIVE_INFINITY
      ? Number.POSITIVE_INFINITY
      : nowMs - spell.until;
  }

  end(nowMs: number): void {
    this.#depth -= 1;
    const spell = this.spells.at(-1);
    if (this.#depth === 0 && spell !== undefined) spell.until = nowMs;
  }
}

/** Milliseconds since the beginning of the current fault, or of one that ended a moment ago; 0 if there is none. */
export function lastingMs(nowMs: number, troubles: readonly Trouble[]): number {
  const spells = troubles.flatMap((trouble) => trouble.spells).toSorted((a, b) => b.until - a.until);
  let from = nowMs;
  for (const spell of spells) {
    if (spell.until < from - PEACE_MS) break;
    from = Math.min(from, spell.from);
  }
  return nowMs - from;
}
