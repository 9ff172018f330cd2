import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { ConformanceResult, Requirement, SuiteName } from '../requirement.ts';
import { scriptBeside } from '../target-module.ts';
import {
  type Answer,
  type Numbered,
  type Request,
  type TargetSource,
  type TrialOptions,
  UsageError,
} from './messages.ts';

/** The outcome of a request: its answer, or the reason why it has no answer. */
export type Outcome =
  | Answer
  | { readonly kind: 'ended'; readonly how: string }
  | { readonly kind: 'late'; readonly afterMs: number }
  | { readonly kind: 'interrupted' };

const CHILD = fileURLToPath(scriptBeside(import.meta.url, 'child'));
/**
 * Whether the process of a target gets its own process group: child processes then end with it, and Ctrl-C reaches only
 * the command line.
 */
const OWN_GROUP = process.platform !== 'win32';

/** The process of a target. Its output goes to standard error, since standard output is for the report. */
export class TargetProcess {
  readonly #child: ChildProcess;
  #hasEnded = false;
  #asked = 0;

  constructor() {
    this.#child = fork(CHILD, [], { stdio: ['ignore', 2, 2, 'ipc'], detached: OWN_GROUP });
    this.#child.once('exit', () => {
      this.#hasEnded = true;
    });
    // The process may have just ended; its `exit` event reports that.
    this.#child.on('error', () => undefined);
  }

  ask(request: Request, timeoutMs: number, signal?: AbortSignal): Promise<Outcome> {
    const child = this.#child;
    const number = ++this.#asked;
    return new Promise((resolve) => {
      const settle = (outcome: Outcome): void => {
        clearTimeout(timer);
        child.off('message', onMessage);
        child.off('exit', onExit);
        signal?.removeEventListener('abort', onAbort);
        resolve(outcome);
      };
      const onMessage = (message: unknown): void => {
        const { request: to, body } = Object(message) as Partial<Numbered<Answer>>;
        if (to === number && body !== undefined) settle(body);
      };
      const onExit = (code: number | null, name: string | null): void =>
        settle({ kind: 'ended', how: name === null ? `ended with code ${code}` : `was ended by ${name}` });
      const onAbort = (): void => settle({ kind: 'interrupted' });
      const timer = setTimeout(() => settle({ kind: 'late', afterMs: timeoutMs }), timeoutMs);
      child.on('message', onMessage);
      child.on('exit', onExit);
      signal?.addEventListener('abort', onAbort);
      if (signal?.aborted === true) onAbort();
      else if (this.#hasEnded) onExit(child.exitCode, child.signalCode);
      else child.send({ request: number, body: request } satisfies Numbered<Request>, () => undefined);
    });
  }

  async kill(): Promise<void> {
    if (this.#hasEnded) return;
    const ended = new Promise((resolve) => this.#child.once('exit', resolve));
    const { pid } = this.#child;
    if (OWN_GROUP && pid !== undefined) killGroup(pid);
    this.#child.kill('SIGKILL');
    await ended;
  }
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch (error) {
    // The process has already ended.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** Extra time for loading a target and closing its instances, in milliseconds. */
const SLACK_MS = 5_000;

/** Checks the requirements of a suite in a separate process. If a check ends that process, a new one replaces it. */
export class Trials {
  readonly #suite: SuiteName;
  readonly #source: TargetSource;
  readonly #options: TrialOptions;
  readonly #signal: AbortSignal;
  #process: TargetProcess | undefined;
  name = '';

  constructor(suite: SuiteName, source: TargetSource, options: TrialOptions, signal: AbortSignal) {
    this.#suite = suite;
    this.#source = source;
    this.#options = options;
    this.#signal = signal;
  }

  /** @throws {UsageError} if the target cannot be used. */
  async start(): Promise<void> {
    const outcome = await this.#open();
    if (outcome.kind === 'opened' || outcome.kind === 'interrupted') return;
    await this.kill();
    if (outcome.kind === 'refused') throw new UsageError(outcome.message);
    throw new UsageError(`the target could not be loaded: ${wordsOf(outcome)}`);
  }

  /**
   * @returns nothing if the run was interrupted.
   * @throws {UsageError} if the suite refuses the target or an option.
   */
  async try({ id, level }: Requirement): Promise<ConformanceResult | undefined> {
    const began = performance.now();
    const outcome = this.#process === undefined ? await this.#open() : undefined;
    const answer = outcome === undefined || outcome.kind === 'opened' ? await this.#ask({ kind: 'try', id }) : outcome;
    if (answer.kind === 'tried') return answer.result;
    if (answer.kind === 'interrupted') return undefined;
    await this.kill();
    // If the target loaded before but does not load again, that is a finding.
    if (answer.kind === 'refused' && outcome === undefined) throw new UsageError(answer.message);
    const status = level === 'MUST' ? 'fail' : 'warn';
    const detail = `${wordsOf(answer)} (seed ${this.#options.seed})`;
    return { id, level, status, detail, durationMs: Math.round(performance.now() - began) };
  }

  /**
   * Lets the target close everything that it started, then ends its process. @returns a description of the failure, if
   * any.
   */
  async close(): Promise<string | undefined> {
    const outcome = await this.#process?.ask({ kind: 'close' }, SLACK_MS);
    await this.kill();
    if (outcome === undefined || outcome.kind === 'closed') return undefined;
    return outcome.kind === 'crashed' ? `${outcome.thrown} was thrown` : wordsOf(outcome);
  }

  async #open(): Promise<Outcome> {
    this.#process = new TargetProcess();
    const [suite, source, options] = [this.#suite, this.#source, this.#options];
    const outcome = await this.#ask({ kind: 'open', suite, source, options });
    if (outcome.kind === 'opened') this.name = outcome.name;
    return outcome;
  }

  #ask(request: Request): Promise<Outcome> {
    if (this.#process === undefined) throw new Error('there is no process to ask');
    return this.#process.ask(request, this.#options.timeoutMs + SLACK_MS, this.#signal);
  }

  async kill(): Promise<void> {
    const last = this.#process;
    this.#process = undefined;
    await last?.kill();
  }
}

function wordsOf(outcome: Outcome): string {
  switch (outcome.kind) {
    case 'ended':
      return `the target’s process ${outcome.how}`;
    case 'late':
      return `did not end within ${outcome.afterMs} ms, so the target’s process was killed`;
    case 'crashed':
      return `uncaught error: ${outcome.thrown}`;
    case 'refused':
      return outcome.message;
    case 'opened':
    case 'tried':
    case 'closed':
    case 'interrupted':
      return `unexpected answer: ${outcome.kind}`;
  }
}
