import type { ConformanceResult, SuiteName } from '../report.ts';
import type { Requirement } from '../requirement.ts';
import type { Request, TargetSource, TrialOptions } from './messages.ts';
import { type Outcome, TargetProcess } from './target-process.ts';
import { UsageError } from './usage-error.ts';

/** What loading a target, and closing its instances, may take beside a requirement's own time, milliseconds. */
const SLACK_MS = 5_000;

/** Requirements tried on a target in a process of its own: a fresh one after a requirement that ended the last. */
export class Trials {
  readonly #suite: SuiteName;
  readonly #source: TargetSource;
  readonly #options: TrialOptions;
  readonly #signal: AbortSignal;
  #process: TargetProcess | undefined;
  /** The target's own name, once it is there. */
  name = '';

  constructor(suite: SuiteName, source: TargetSource, options: TrialOptions, signal: AbortSignal) {
    this.#suite = suite;
    this.#source = source;
    this.#options = options;
    this.#signal = signal;
  }

  /** @throws {UsageError} when the target cannot be used. */
  async start(): Promise<void> {
    const outcome = await this.#open();
    if (outcome.kind === 'opened' || outcome.kind === 'interrupted') return;
    await this.#end();
    if (outcome.kind === 'refused') throw new UsageError(outcome.message);
    throw new UsageError(`the target could not be loaded: ${wordsOf(outcome)}`);
  }

  /**
   * @returns nothing when the run was interrupted.
   * @throws {UsageError} when the suite refuses the target or an option.
   */
  async try({ id, level }: Requirement): Promise<ConformanceResult | undefined> {
    const began = performance.now();
    const outcome = this.#process === undefined ? await this.#open() : undefined;
    const answer = outcome === undefined || outcome.kind === 'opened' ? await this.#ask({ kind: 'try', id }) : outcome;
    if (answer.kind === 'tried') return answer.result;
    if (answer.kind === 'interrupted') return undefined;
    await this.#end();
    // A target that was there before is a finding where it does not come back.
    if (answer.kind === 'refused' && outcome === undefined) throw new UsageError(answer.message);
    const status = level === 'MUST' ? 'fail' : 'warn';
    const detail = `${wordsOf(answer)} (seed ${this.#options.seed})`;
    return { id, level, status, detail, durationMs: Math.round(performance.now() - began) };
  }

  /** Lets the target close what it started, or ends it. @returns what went wrong about that, if anything. */
  async close(): Promise<string | undefined> {
    const outcome = await this.#process?.ask({ kind: 'close' }, SLACK_MS);
    await this.#end();
    if (outcome === undefined || outcome.kind === 'closed') return undefined;
    return outcome.kind === 'crashed' ? `${outcome.name} was thrown` : wordsOf(outcome);
  }

  /** At once, whatever the target is doing. */
  async kill(): Promise<void> {
    await this.#end();
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

  async #end(): Promise<void> {
    const last = this.#process;
    this.#process = undefined;
    await last?.kill();
  }
}

function wordsOf(outcome: Outcome): string {
  switch (outcome.kind) {
    case 'ended':
      return `the target’s process ended ${outcome.how}`;
    case 'late':
      return `no end within ${outcome.afterMs} ms: the target’s process was ended`;
    case 'crashed':
      return `thrown where no call was there to catch it: ${outcome.name}`;
    case 'refused':
      return outcome.message;
    case 'opened':
    case 'tried':
    case 'closed':
    case 'interrupted':
      return `an answer out of turn: ${outcome.kind}`;
  }
}
