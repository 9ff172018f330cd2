import { clearLine, cursorTo } from 'node:readline';

/** Operations that take less print no progress, milliseconds. */
const SILENT_MS = 2_000;
const REPEAT_MS = 5_000;
/** On a terminal, where the line is redrawn in place. */
const REDRAW_MS = 1_000;
const BAR_WIDTH = 20;

/** One line of progress on standard error: redrawn in place on a terminal, a new line for each update elsewhere. */
export class ProgressLine {
  readonly #stream = process.stderr;
  #isDrawn = false;

  /** Whether updates replace each other. */
  get isInPlace(): boolean {
    return this.#stream.isTTY;
  }

  update(text: string): void {
    if (!this.isInPlace) {
      this.#stream.write(`${text}\n`);
      return;
    }
    this.clear();
    // A line that wraps cannot be redrawn in place.
    this.#stream.write(text.slice(0, Math.max(1, this.#stream.columns - 1)));
    this.#isDrawn = true;
  }

  /** Removes the line from the terminal. */
  clear(): void {
    if (!this.#isDrawn) return;
    cursorTo(this.#stream, 0);
    clearLine(this.#stream, 0);
    this.#isDrawn = false;
  }
}

/** A bar such as `[#####               ]`. */
export function progressBar(share: number): string {
  const done = Math.round(Math.min(1, Math.max(0, share)) * BAR_WIDTH);
  return `[${'#'.repeat(done)}${' '.repeat(BAR_WIDTH - done)}]`;
}

/** Runs an operation, and after two seconds prints on standard error what it is waiting for. */
export async function withProgress<T>(what: string, run: () => Promise<T>): Promise<T> {
  const began = performance.now();
  const line = new ProgressLine();
  const print = (): void => line.update(`${what} … (${Math.round((performance.now() - began) / 1_000)} s)`);
  let timer = setTimeout(() => {
    print();
    timer = setInterval(print, line.isInPlace ? REDRAW_MS : REPEAT_MS);
  }, SILENT_MS);
  try {
    return await run();
  } finally {
    clearInterval(timer);
    line.clear();
  }
}
