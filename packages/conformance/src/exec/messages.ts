import type { MessagePort } from 'node:worker_threads';

/** The program to run: through the shell where it is text. */
export interface ProgramOptions {
  readonly command: string | readonly string[];
  /** The longest time to wait for an answer, milliseconds. */
  readonly timeoutMs: number;
  readonly cwd: string | undefined;
  /** The whole environment. */
  readonly env: NodeJS.ProcessEnv;
}

/** What the thread that drives the program is started with. */
export interface ThreadData {
  readonly program: ProgramOptions;
  readonly port: MessagePort;
  /** One 32-bit word: 1 when an answer is there. */
  readonly bell: Int32Array;
}

/** A command to the thread. */
export type Order =
  /** Writes a line and waits for one. `shown` is the line as a finding may show it. */
  | { readonly do: 'ask'; readonly line: string; readonly shown: string }
  /** Asks whether something went wrong since the last answer. */
  | { readonly do: 'look' }
  /** Ends the program at once, because its answer was wrong. */
  | { readonly do: 'kill' }
  /** Lets the program end by itself, and sees to it that it does. */
  | { readonly do: 'end' };

/** The line that was received, or a description of the failure. Neither: nothing to report. */
export interface Outcome {
  readonly line?: string;
  readonly failure?: string;
}
