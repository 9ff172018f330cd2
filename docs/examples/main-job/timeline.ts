import { styleText } from 'node:util';

type Style = Parameters<typeof styleText>[0];

/** An expectation of the story that was not met. */
export class Unexpected extends Error {
  override readonly name = 'Unexpected';
}

/** Prints what happens, when, and who did it. Coloured on a terminal, unless NO_COLOR is set. */
export class Timeline {
  readonly #started = performance.now();
  readonly #stream: NodeJS.WriteStream;
  readonly #coloured: boolean;

  constructor(stream: NodeJS.WriteStream = process.stdout) {
    this.#stream = stream;
    const { NO_COLOR } = process.env;
    this.#coloured = stream.isTTY && (NO_COLOR === undefined || NO_COLOR === '');
  }

  heading(text: string): void {
    this.#write(`\n${this.#style('bold', text)}\n`);
  }

  note(text: string): void {
    this.#write(`${' '.repeat(10)}${this.#style('dim', text)}\n`);
  }

  /** One event: `A → Ada   what`. */
  line(who: string, what: string): void {
    this.#write(`${this.#offset()}  ${this.#style('cyan', who.padEnd(11))} ${what}\n`);
  }

  /** An expectation that was met. */
  met(who: string, what: string): void {
    this.line(who, `${this.#style('green', '✓')} ${what}`);
  }

  /**
   * Prints `what`, which must hold.
   * @throws {Unexpected} with the message `otherwise` unless `condition` holds.
   */
  expect(condition: boolean, who: string, what: string, otherwise: string): asserts condition {
    if (!condition) throw new Unexpected(otherwise);
    this.met(who, what);
  }

  finished(text: string): void {
    this.#write(`\n${this.#style('green', `✓ ${text}`)}\n`);
  }

  failed(text: string): void {
    this.#write(`\n${this.#style('red', `✗ ${text}`)}\n`);
  }

  /** Begins a line that `step` extends and `done` ends. */
  progress(who: string, what: string): { step(text: string): void; done(text: string): void } {
    this.#write(`${this.#offset()}  ${this.#style('cyan', who.padEnd(11))} ${what} `);
    return {
      step: (text) => this.#write(this.#style('dim', text)),
      done: (text) => this.#write(` ${text}\n`),
    };
  }

  key(label: string): string {
    return this.#style('yellow', label);
  }

  #offset(): string {
    const seconds = ((performance.now() - this.#started) / 1_000).toFixed(2);
    return this.#style('dim', `${seconds.padStart(6)} s`);
  }

  #style(style: Style, text: string): string {
    return this.#coloured ? styleText(style, text, { validateStream: false }) : text;
  }

  #write(text: string): void {
    this.#stream.write(text);
  }
}
