import type { Clock } from '../../src/base/clock.ts';
import type { VirtualClock } from './virtual-clock.ts';

/** The clock of one machine of a fleet: it can be wrong, and its process can be stopped. */
export class MachineClock implements Clock {
  /** How far the machine's wall clock is ahead of the fleet's. */
  offsetSeconds = 0;
  readonly #fleet: VirtualClock;
  #isStopped = false;
  #due: (() => void)[] = [];

  constructor(fleet: VirtualClock, offsetSeconds = 0) {
    this.#fleet = fleet;
    this.offsetSeconds = offsetSeconds;
  }

  wallMs(): number {
    return this.#fleet.wallMs() + this.offsetSeconds * 1_000;
  }

  monotonicNs(): bigint {
    return this.#fleet.monotonicNs();
  }

  uptimeMs(): number {
    return this.#fleet.uptimeMs();
  }

  schedule(callback: () => void, delayMs: number): () => void {
    let isCancelled = false;
    const due = (): void => {
      if (isCancelled) return;
      if (this.#isStopped) this.#due.push(due);
      else callback();
    };
    const cancel = this.#fleet.schedule(due, delayMs);
    return () => {
      isCancelled = true;
      cancel();
    };
  }

  /** No timer of the process runs until {@link resume}; time continues. */
  stop(): void {
    this.#isStopped = true;
  }

  /** Overdue timers run now. */
  resume(): void {
    this.#isStopped = false;
    for (const due of this.#due.splice(0)) due();
  }
}
