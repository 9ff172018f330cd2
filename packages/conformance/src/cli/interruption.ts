import type { ExitCode } from './exit-code.ts';
import { EXIT_CODE } from './exit-code.ts';

/** SIGINT and SIGTERM, caught while a run lasts: the first asks it to end, the second ends it at once. */
export class Interruption {
  readonly #controller = new AbortController();
  readonly #atOnce: () => void;
  #code: ExitCode | undefined;

  constructor(atOnce: () => void) {
    this.#atOnce = atOnce;
    process.on('SIGINT', this.#onSignal).on('SIGTERM', this.#onSignal);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** What to exit with, once a signal came. */
  get code(): ExitCode | undefined {
    return this.#code;
  }

  stop(): void {
    process.off('SIGINT', this.#onSignal).off('SIGTERM', this.#onSignal);
  }

  readonly #onSignal = (name: NodeJS.Signals): void => {
    if (this.#code !== undefined) this.#atOnce();
    this.#code ??= name === 'SIGINT' ? EXIT_CODE.SIGINT : EXIT_CODE.SIGTERM;
    this.#controller.abort();
  };
}
