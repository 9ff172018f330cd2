import { appendFileSync, closeSync, existsSync, fstatSync, openSync, readSync } from 'node:fs';

/** `doubtful`: the test failed without the change too, after it. */
type Outcome = 'start' | 'survived' | 'killed' | 'doubtful' | 'hung';

/** One test with one change of the source, as it ended; `start` where it has not. */
export interface Trial {
  readonly test: string;
  readonly mutant: string;
  readonly outcome: Outcome;
}

/** What was tried so far: a file of lines, so that it outlives a process that hangs. */
export class Trials {
  readonly #path: string;
  readonly #killed = new Set<string>();
  readonly #tried = new Set<string>();
  readonly #met = new Set<string>();
  #read = 0;

  constructor(path: string) {
    this.#path = path;
  }

  add(trial: Trial): void {
    appendFileSync(this.#path, `${JSON.stringify(trial)}\n`);
  }

  isKilled(mutant: string): boolean {
    return this.#killed.has(mutant);
  }

  /** Whether any test met it while it ran: what is met only while a module loads is not. */
  isMet(mutant: string): boolean {
    return this.#met.has(mutant);
  }

  /** Whether there is nothing more to learn of this change from this test. */
  isSettled(test: string, mutant: string): boolean {
    return this.#killed.has(mutant) || this.#tried.has(`${mutant} ${test}`);
  }

  /** Reads what other processes added. @returns the last trial. */
  refresh(): Trial | undefined {
    const lines = this.#newText().split('\n').filter(Boolean);
    const trials = lines.map((line): Trial => JSON.parse(line));
    for (const { test, mutant, outcome } of trials) {
      if (outcome === 'killed' || outcome === 'hung') this.#killed.add(mutant);
      this.#tried.add(`${mutant} ${test}`);
      this.#met.add(mutant);
    }
    return trials.at(-1);
  }

  #newText(): string {
    if (!existsSync(this.#path)) return '';
    const file = openSync(this.#path, 'r');
    try {
      const bytes = Buffer.alloc(fstatSync(file).size - this.#read);
      const count = readSync(file, bytes, 0, bytes.length, this.#read);
      // Another process may be in the middle of a line.
      const end = bytes.lastIndexOf(0x0a, count - 1) + 1;
      this.#read += end;
      return bytes.toString('utf8', 0, end);
    } finally {
      closeSync(file);
    }
  }
}
