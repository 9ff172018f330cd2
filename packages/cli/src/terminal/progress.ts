import { clearLine, cursorTo } from 'node:readline';
import { columnsOf } from './page.ts';
import { visibleLine } from './visible.ts';

/** The time before progress is printed, in milliseconds: more than the 2 000 after which a start emits its notice. */
const SILENT_MS = 2_100;
const REPEAT_MS = 5_000;
/** The interval on a terminal, where the line is redrawn in place. */
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
    this.#stream.write(text.slice(0, Math.max(1, columnsOf(this.#stream) - 1)));
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

/** Leaves the notices of starting codecs to {@link withProgress}: Node.js would print them with a process id. */
export function quietStartNotices(): void {
  const printers = process.listeners('warning');
  process.removeAllListeners('warning');
  process.on('warning', (warning) => {
    if (!isStartNotice(warning)) for (const print of printers) print(warning);
  });
}

function isStartNotice(warning: Error): boolean {
  return 'code' in warning && warning.code === 'SEALRING_WAITING';
}

/** Runs an operation, and after two seconds prints its current step on standard error. */
export async function withProgress<T>(what: string, run: () => Promise<T>): Promise<T> {
  const began = performance.now();
  const line = new ProgressLine();
  let text = what;
  const print = (): void => line.update(`${text} … (${Math.round((performance.now() - began) / 1_000)} s)`);
  const start = (): void => {
    print();
    timer = setInterval(print, line.isInPlace ? REDRAW_MS : REPEAT_MS);
  };
  let timer = setTimeout(start, SILENT_MS);
  const note = (warning: Error): void => {
    if (!isStartNotice(warning)) return;
    text = visibleLine(warning.message);
    clearInterval(timer);
    // The message says how long the start waits, so the elapsed time need not be printed repeatedly.
    if (line.isInPlace) start();
    else line.update(text);
  };
  process.on('warning', note);
  try {
    return await run();
  } finally {
    clearInterval(timer);
    process.off('warning', note);
    line.clear();
  }
}
