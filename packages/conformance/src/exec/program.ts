import { type ChildProcess, spawn } from 'node:child_process';
import type { MessagePort } from 'node:worker_threads';
import { within } from '../trial.ts';
import { Lines } from './lines.ts';
import { shownStart, shownText } from './shown.ts';

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

/** How long a program may take to exit once its input has ended, and again after it was asked to exit. */
const GRACE_MS = 1_000;
/** How long after a program's end its last output is waited for: what it started may hold the pipe. */
const LAST_WORDS_MS = 300;
/** Kept of the beginning of standard error, and as much of its end, bytes. */
const KEPT_OF_STDERR = 2_048;
const IS_WINDOWS = process.platform === 'win32';

/** A program that answers lines with lines, one at a time. A failure is reported with the request that caused it. */
export class Program {
  readonly #child: ChildProcess;
  readonly #timeoutMs: number;
  readonly #lines = new Lines();
  /** Resolves when the program has ended and its output has been read. */
  readonly #ended: Promise<void>;
  #hasEnded = false;
  #firstErrors = '';
  #lastErrors = '';
  #hasAnswered = false;
  #failure: string | undefined;
  /** The request that is waited for, or the last one. */
  #asked = '';
  #answer: ((outcome: Outcome) => void) | undefined;

  /** @throws what `spawn` throws for a command or a folder that cannot be one. */
  constructor({ command, timeoutMs, cwd, env }: ProgramOptions) {
    this.#timeoutMs = timeoutMs;
    const [file = '', ...args] = typeof command === 'string' ? [command] : command;
    const child = spawn(file, args, {
      ...(cwd !== undefined && { cwd }),
      env,
      shell: typeof command === 'string',
      // A group of its own, so that what it starts ends with it.
      detached: !IS_WINDOWS,
      windowsHide: true,
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    this.#child = child;
    // It ended, or closed its input: its exit or its silence is reported.
    child.stdin.on('error', () => undefined);
    child.stdout.on('data', (chunk: Buffer) => this.#read(chunk));
    child.stderr.on('data', (chunk: Buffer) => this.#keepErrors(chunk.toString('latin1')));
    this.#ended = new Promise((resolve) => {
      child.once('error', (error: NodeJS.ErrnoException) => {
        this.#hasEnded = true;
        this.#fail(`the program could not be started: ${error.code ?? error.name}`);
        resolve();
      });
      child.once('exit', (code, signal) => {
        const seen = (): void => {
          this.#hasEnded = true;
          this.#sayEnd(code, signal);
          resolve();
        };
        const late = setTimeout(seen, LAST_WORDS_MS);
        child.once('close', () => {
          clearTimeout(late);
          seen();
        });
      });
    });
    const guard = child.pid === undefined ? undefined : guardOf(child.pid);
    child.once('exit', () => {
      this.#signal('SIGKILL');
      guard?.kill('SIGKILL');
    });
  }

  /** Writes one line and resolves to the next line of the program. */
  async ask(line: string, shown: string): Promise<Outcome> {
    if (this.#failure !== undefined) return { failure: this.#failure };
    this.#asked = shown;
    const answered = new Promise<Outcome>((resolve) => {
      this.#answer = resolve;
    });
    const late = setTimeout(
      () =>
        this.#fail(`no answer within ${this.#timeoutMs} ms to ${shown}, and the program was killed${this.#errors()}`),
      this.#timeoutMs,
    );
    this.#child.stdin?.write(`${line}\n`);
    try {
      return await answered;
    } finally {
      clearTimeout(late);
    }
  }

  /** What went wrong since the last answer. */
  look(): Outcome {
    return this.#failure === undefined ? {} : { failure: this.#failure };
  }

  /** Ends it at once, with all that it started. */
  async kill(): Promise<void> {
    this.#signal('SIGKILL');
    await this.#endsWithin(GRACE_MS);
  }

  /** Ends its input, and then it. */
  async end(): Promise<void> {
    this.#child.stdin?.end();
    if (await this.#endsWithin(GRACE_MS)) return;
    this.#signal('SIGTERM');
    if (await this.#endsWithin(GRACE_MS)) return;
    await this.kill();
  }

  #read(chunk: Buffer): void {
    try {
      for (const line of this.#lines.add(chunk)) {
        if (this.#answer === undefined) this.#fail(this.#unasked(line));
        else {
          this.#hasAnswered = true;
          this.#settle({ line });
        }
      }
    } catch (error) {
      this.#fail(`the answer to ${this.#asked} is ${error instanceof RangeError ? error.message : 'not UTF-8'}`);
    }
  }

  #unasked(line: string): string {
    return `after its answer to ${this.#asked} the program wrote an unrequested line: ${shownText(line)}`;
  }

  #sayEnd(code: number | null, signal: NodeJS.Signals | null): void {
    const how = signal === null ? `ended with exit code ${code}` : `was ended by ${signal}`;
    const when = this.#answer === undefined ? 'after its answer to' : 'instead of answering';
    let rest = '';
    try {
      rest = this.#lines.rest();
    } catch {
      // Half a character: the end is enough.
    }
    const last = rest === '' ? '' : `; its last line has no end: ${shownText(rest)}`;
    this.#fail(`the program ${how} ${when} ${this.#asked}${last}${this.#errors()}`);
  }

  /** Bytes, one to a character: a character may come in two chunks. */
  #keepErrors(bytes: string): void {
    const room = KEPT_OF_STDERR - this.#firstErrors.length;
    this.#firstErrors += bytes.slice(0, room);
    this.#lastErrors = (this.#lastErrors + bytes.slice(room)).slice(-KEPT_OF_STDERR);
  }

  /** The part of standard error that is reported with a failure. */
  #errors(): string {
    const text = Buffer.from(this.#firstErrors + this.#lastErrors, 'latin1').toString('utf8');
    if (text === '') return '';
    return `; it wrote to stderr: ${this.#hasAnswered ? shownText(text, 'both') : shownStart(text)}`;
  }

  /** Only the first failure is reported: the others follow from it. A program that failed is ended. */
  #fail(failure: string): void {
    this.#failure ??= failure;
    this.#signal('SIGKILL');
    this.#settle({ failure: this.#failure });
  }

  #settle(outcome: Outcome): void {
    const answer = this.#answer;
    this.#answer = undefined;
    answer?.(outcome);
  }

  async #endsWithin(ms: number): Promise<boolean> {
    await within(ms, this.#ended, undefined);
    return this.#hasEnded;
  }

  #signal(signal: NodeJS.Signals): void {
    const { pid } = this.#child;
    if (pid === undefined) return;
    try {
      if (IS_WINDOWS) this.#child.kill(signal);
      else process.kill(-pid, signal);
    } catch {
      // Nothing is left of it.
    }
  }
}

/**
 * Kills the program's group when this process is gone, however it ended: its input ends then. The program has a moment
 * to end by itself.
 */
function guardOf(pid: number): ChildProcess | undefined {
  if (IS_WINDOWS) return undefined;
  const script = 'read -r line; sleep 1; kill -s KILL -- "-$0"';
  const guard = spawn('/bin/sh', ['-c', script, String(pid)], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
  // Without a shell there is no guard.
  guard.on('error', () => undefined);
  guard.stdin.on('error', () => undefined);
  return guard;
}
