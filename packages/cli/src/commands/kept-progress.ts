import type { KeepProgress } from '../revocation/kept-revocation.ts';
import { ProgressLine, progressBar } from '../terminal/progress.ts';

/** The interval between lines where standard error is not a terminal, after the first two seconds. */
const REPEAT_MS = 15_000;
const SILENT_MS = 2_000;

/** Shows on standard error how long the store has kept a revocation. */
export class KeepProgressLine {
  readonly #line = new ProgressLine();
  #nextMs = performance.now() + SILENT_MS;
  #losses = 0;

  update({ keptSeconds, waitSeconds, losses }: KeepProgress): void {
    if (losses > this.#losses) {
      this.#line.clear();
      process.stderr.write('the store lost the revocation: writing it again and restarting the wait\n');
    }
    this.#losses = losses;
    if (!this.#line.isInPlace && performance.now() < this.#nextMs) return;
    this.#nextMs = performance.now() + REPEAT_MS;
    const bar = this.#line.isInPlace ? `${progressBar(keptSeconds / waitSeconds)} ` : '';
    this.#line.update(`${bar}revoked; waiting until the store has kept it: ${keptSeconds} of ${waitSeconds} s`);
  }

  clear(): void {
    this.#line.clear();
  }
}
