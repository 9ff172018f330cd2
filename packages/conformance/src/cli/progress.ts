/** How often a line is rewritten on a terminal, and how often one is printed elsewhere, milliseconds. */
const REWRITE_MS = 200;
const PRINT_MS = 2_000;

/** Where progress is printed; standard error, for example. */
export interface ProgressStream {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

/**
 * Prints which requirement is being tried: on a terminal in one line that is rewritten, elsewhere in a line from time
 * to time.
 */
export class Progress {
  readonly #stream: ProgressStream;
  readonly #total: number;
  readonly #began = performance.now();
  #text = '';
  #timer: NodeJS.Timeout | undefined;

  constructor(stream: ProgressStream, total: number) {
    this.#stream = stream;
    this.#total = total;
  }

  show(done: number, id: string): void {
    this.#text = `${done}/${this.#total} ${id}`;
    const isFirst = this.#timer === undefined;
    this.#timer ??= setInterval(() => this.#tell(), this.#isTerminal ? REWRITE_MS : PRINT_MS);
    if (isFirst || this.#isTerminal) this.#tell();
  }

  /** Takes the line away. */
  end(): void {
    if (this.#timer === undefined) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
    if (this.#isTerminal) this.#stream.write('\r\u001b[K');
  }

  get #isTerminal(): boolean {
    return this.#stream.isTTY === true;
  }

  #tell(): void {
    const line = `${this.#text} (${Math.round((performance.now() - this.#began) / 1_000)} s)`;
    // On a terminal one line only: what wraps cannot be rewritten.
    const shown = `\r${line.slice(0, (this.#stream.columns ?? 80) - 1)}\u001b[K`;
    this.#stream.write(this.#isTerminal ? shown : `${line}\n`);
  }
}
