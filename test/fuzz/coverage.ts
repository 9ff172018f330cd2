import { type Profiler, Session } from 'node:inspector';

/** The executed code: for each function, by script and place, its executed characters. */
export type Ran = ReadonlyMap<string, Uint8Array>;

/**
 * The executed places of this project's code, by V8's own block coverage of this thread. Create it before that code is
 * loaded: functions that were compiled earlier are counted as a whole only.
 */
export class Coverage {
  readonly #session = new Session();
  readonly #known = new Map<string, Uint8Array>();

  constructor() {
    this.#session.connect();
    this.#session.post('Profiler.enable');
    this.#session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
    this.take();
  }

  /** The code that ran since the last call. */
  take(): Ran {
    const ran = new Map<string, Uint8Array>();
    // The callback runs before `post` returns.
    this.#session.post('Profiler.takePreciseCoverage', (_error, taken) => {
      for (const { url, functions } of taken?.result ?? []) {
        if (!/\/packages\/[a-z-]+\/(?:src|dist)\//.test(url)) continue;
        for (const { ranges } of functions) {
          const [whole] = ranges;
          if (whole !== undefined && whole.count > 0) ran.set(`${url}:${whole.startOffset}`, ranOf(ranges, whole));
        }
      }
    });
    return ran;
  }

  /** Whether it contains code that never ran before. */
  isNew(ran: Ran): boolean {
    for (const [place, now] of ran) {
      const before = this.#known.get(place);
      if (before === undefined || now.some((bit, i) => bit > (before[i] as number))) return true;
    }
    return false;
  }

  add(ran: Ran): void {
    for (const [place, now] of ran) {
      const before = this.#known.get(place);
      this.#known.set(place, before === undefined ? now : now.map((bit, i) => bit | (before[i] as number)));
    }
  }

  /** Executed characters of this project's code: a measure of coverage. */
  get size(): number {
    let total = 0;
    for (const known of this.#known.values()) for (const bit of known) total += bit;
    return total;
  }

  close(): void {
    this.#session.disconnect();
  }
}

function ranOf(
  ranges: readonly Profiler.CoverageRange[],
  { startOffset, endOffset }: Profiler.CoverageRange,
): Uint8Array {
  const ran = new Uint8Array(endOffset - startOffset);
  // Outer ranges come before those within them.
  for (const range of ranges) {
    ran.fill(range.count > 0 ? 1 : 0, range.startOffset - startOffset, range.endOffset - startOffset);
  }
  return ran;
}
