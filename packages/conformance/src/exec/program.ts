import { type ChildProcess, spawn } from 'node:child_process';
import type { MessagePort } from 'node:worker_threads';
import { within } from '../trial.ts';
import { Lines } from './lines.ts';
import { shownStart, shownText } from './shown.ts';

/** A line of the program as an object: an answer or a notification. A member that is null counts as absent. */
export type Said = Readonly<Record<string, unknown>>;

/** The program to run. If `command` is a string, a shell runs it. */
export interface ProgramOptions {
  readonly command: string | readonly string[];
  readonly timeoutMs: number;
  readonly cwd: string | undefined;
  readonly env: NodeJS.ProcessEnv;
  /** Whether the program may write notifications, which are not answers to requests: `{"changed":"w1"}`. */
  readonly notifies: boolean;
}

/** The data of the thread that drives the program. */
export interface ThreadData {
  readonly program: ProgramOptions;
  readonly port: MessagePort;
  /** One 32-bit word: the number of posts. */
  readonly bell: Int32Array;
}

export type Order =
  /** Writes a request and waits for its answer. `shown` is the request as a finding may show it. */
  | { readonly do: 'ask'; readonly id: number; readonly line: string; readonly shown: string }
  /** Writes a line that has no answer. */
  | { readonly do: 'tell'; readonly line: string }
  /** Asks whether the program has failed since its last answer. */
  | { readonly do: 'look' }
  /** Kills the program after a wrong answer. */
  | { readonly do: 'kill' }
  /** Closes the input of the program, and kills it if it does not exit. */
  | { readonly do: 'end' };

/** The answer, or a description of the failure, or neither. */
export interface Outcome {
  readonly answer?: Said;
  readonly failure?: string;
}

/** A message from the thread: the outcome of an order, by its number, or the watcher that the program notifies. */
export type Post = { readonly number: number; readonly outcome: Outcome } | { readonly changed: string };

/** Time for a program to exit after its input ended, and again after `SIGTERM`, in milliseconds. */
const GRACE_MS = 1_000;
/**
 * How long to wait for the last output after a program has ended, in milliseconds. Its child processes can still hold
 * the pipe.
 */
const LAST_WORDS_MS = 300;
/** Number of bytes that are kept from the beginning of standard error, and as many from its end. */
const KEPT_OF_STDERR = 2_048;
const IS_WINDOWS = process.platform === 'win32';

interface Waiting {
  readonly shown: string;
  readonly settle: (outcome: Outcome) => void;
}

/** A program that answers request lines in any order. A failure is reported with the request that caused it. */
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
  /** The last request that was sent. */
  #asked = '';
  /** Requests that wait for an answer, by id, the earliest first. */
  readonly #waiting = new Map<unknown, Waiting>();
  readonly #notify: ((watcher: string) => void) | undefined;

  /** @throws the error of `spawn` for an invalid command or folder. */
  constructor({ command, timeoutMs, cwd, env, notifies }: ProgramOptions, notify: (watcher: string) => void) {
    this.#timeoutMs = timeoutMs;
    this.#notify = notifies ? notify : undefined;
    const [file = '', ...args] = typeof command === 'string' ? [command] : command;
    const child = spawn(file, args, {
      ...(cwd !== undefined && { cwd }),
      env,
      shell: typeof command === 'string',
      // A separate process group, so that child processes of the program end with the program.
      detached: !IS_WINDOWS,
      windowsHide: true,
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    this.#child = child;
    // The program ended or closed its input. Its exit or missing answer is reported.
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

  async ask(id: number, line: string, shown: string): Promise<Outcome> {
    if (this.#failure !== undefined) return { failure: this.#failure };
    this.#asked = shown;
    const answered = new Promise<Outcome>((settle) => this.#waiting.set(id, { shown, settle }));
    const late = setTimeout(() => {
      this.#fail(`no answer within ${this.#timeoutMs} ms to ${shown}, and the program was killed${this.#errors()}`);
    }, this.#timeoutMs);
    this.#child.stdin?.write(`${line}\n`);
    try {
      return await answered;
    } finally {
      clearTimeout(late);
    }
  }

  tell(line: string): Outcome {
    this.#child.stdin?.write(`${line}\n`);
    return {};
  }

  look(): Outcome {
    return this.#failure === undefined ? {} : { failure: this.#failure };
  }

  async kill(): Promise<void> {
    this.#signal('SIGKILL');
    await this.#endsWithin(GRACE_MS);
  }

  /** Closes the program's input, and then ends the program. */
  async end(): Promise<void> {
    this.#child.stdin?.end();
    if (await this.#endsWithin(GRACE_MS)) return;
    this.#signal('SIGTERM');
    if (await this.#endsWithin(GRACE_MS)) return;
    await this.kill();
  }

  #read(chunk: Buffer): void {
    try {
      for (const line of this.#lines.add(chunk)) this.#take(line);
    } catch (error) {
      this.#fail(`${this.#expected()} is ${error instanceof RangeError ? error.message : 'not UTF-8'}`);
    }
  }

  #take(line: string): void {
    const said = readObject(line);
    if (typeof said !== 'string') {
      const { id, changed } = said;
      const waiting = this.#waiting.get(id);
      if (waiting !== undefined) {
        this.#hasAnswered = true;
        this.#waiting.delete(id);
        return waiting.settle({ answer: said });
      }
      if (id === undefined && typeof changed === 'string' && this.#notify !== undefined) return this.#notify(changed);
    }
    if (this.#waiting.size === 0) {
      this.#fail(`after its answer to ${this.#asked} the program wrote an unrequested line: ${shownText(line)}`);
    } else {
      const why = typeof said === 'string' ? said : 'is for another request';
      this.#fail(`${this.#expected()} ${why}: ${shownText(line)}`);
    }
  }

  /** A description of the expected line. */
  #expected(): string {
    const [first, ...more] = this.#waiting.values();
    const answer = `the answer to ${first?.shown ?? this.#asked}`;
    return more.length === 0 ? answer : `${answer}, or to one of ${more.length} later requests,`;
  }

  #sayEnd(code: number | null, signal: NodeJS.Signals | null): void {
    const how = signal === null ? `ended with exit code ${code}` : `was ended by ${signal}`;
    const [first, ...more] = this.#waiting.values();
    const others = more.length === 0 ? '' : ` and ${more.length} later requests`;
    const when =
      first === undefined ? `after its answer to ${this.#asked}` : `instead of answering ${first.shown}${others}`;
    let rest = '';
    try {
      rest = this.#lines.rest();
    } catch {
      // The line ends within a character: report only the end of the program.
    }
    const last = rest === '' ? '' : `; its last line is cut off: ${shownText(rest)}`;
    this.#fail(`the program ${how} ${when}${last}${this.#errors()}`);
  }

  /** Keeps bytes of standard error, as Latin-1, since a character may arrive in two chunks. */
  #keepErrors(bytes: string): void {
    const room = KEPT_OF_STDERR - this.#firstErrors.length;
    this.#firstErrors += bytes.slice(0, room);
    this.#lastErrors = (this.#lastErrors + bytes.slice(room)).slice(-KEPT_OF_STDERR);
  }

  #errors(): string {
    const text = Buffer.from(this.#firstErrors + this.#lastErrors, 'latin1').toString('utf8');
    if (text === '') return '';
    return `; it wrote to stderr: ${this.#hasAnswered ? shownText(text, 'both') : shownStart(text)}`;
  }

  /** Reports only the first failure, which causes the others, and kills the program. */
  #fail(failure: string): void {
    this.#failure ??= failure;
    this.#signal('SIGKILL');
    for (const { settle } of this.#waiting.values()) settle({ failure: this.#failure });
    this.#waiting.clear();
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
      // The process group no longer exists.
    }
  }
}

/** @returns the object, or a description of the error in the line. */
export function readObject(line: string): Said | string {
  let said: unknown;
  try {
    // A serializer may write null for a missing member.
    said = JSON.parse(line, (_, value: unknown) => (value === null ? undefined : value));
  } catch {
    return 'is not JSON';
  }
  return typeof said === 'object' && !Array.isArray(said) ? { ...said } : 'is not a JSON object';
}

/**
 * Starts a guard that reads from this process. When this process ends for any reason, the guard's input ends; the guard
 * then waits for one second, so that the program can exit, and kills the program's process group.
 */
function guardOf(pid: number): ChildProcess | undefined {
  if (IS_WINDOWS) return undefined;
  const script = 'read -r line; sleep 1; kill -s KILL -- "-$0"';
  const guard = spawn('/bin/sh', ['-c', script, String(pid)], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
  // Without a shell, the program runs without a guard.
  guard.on('error', () => undefined);
  guard.stdin.on('error', () => undefined);
  return guard;
}
