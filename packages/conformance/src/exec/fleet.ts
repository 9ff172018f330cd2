import * as v from 'valibot';
import { anObject, aText, aWholeNumber, checkArgument } from '../options.ts';
import { DidNotStart, Finding, type SuiteName } from '../requirement.ts';
import { describeThrown, ProgramError } from '../thrown.ts';
import {
  type Answer,
  type Description,
  type Failure,
  type ResultKind,
  readAnswer,
  readDates,
  WrongAnswer,
} from './answer.ts';
import { PipedProgram } from './piped-program.ts';
import type { Outcome } from './program.ts';
import { asciiJson, shownRequest, shownText } from './shown.ts';

/** Options for running a program that speaks the exec protocol. */
export interface ExecOptions {
  /** The name in the report. Default: the name from the program, or else the command. */
  readonly name?: string;
  /**
   * Time limit for one answer, in milliseconds; 100 to 3 600 000. The time for the first answer includes the start of
   * the program. Default 10 000 for codecs, and 30 000 for key wrappers and ring stores.
   */
  readonly timeoutMs?: number;
  /** The program's working directory. Default: that of this process. */
  readonly cwd?: string;
  /** Environment variables for the program, in addition to those of this process. */
  readonly env?: Readonly<Record<string, string>>;
}

const WORDS = v.array(v.string(), 'must be an array of strings');
const COMMAND = v.union(
  [aText, v.pipe(WORDS, v.minLength(1, 'must not be empty'))],
  'must be a string or an array of strings',
);
const OPTIONS = {
  name: v.optional(aText),
  timeoutMs: v.optional(aWholeNumber(100, 3_600_000)),
  cwd: v.optional(aText),
  env: v.optional(v.record(v.string(), v.string('must be a string'), 'must be an object')),
};

export type Request = { readonly op: string } & Readonly<Record<string, unknown>>;

/** One run of the program, from its start to its end. */
export interface Run {
  failure?: Finding;
}

/** Options of a call to an instance. */
export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  readonly onServiceDate?: ((date: Date) => void) | undefined;
}

/** A program and its instances, across restarts of the program. */
export class Fleet {
  readonly #owner: string;
  readonly #program: PipedProgram;
  readonly #watchers = new Map<string, () => void>();
  readonly commandLine: string;
  #run: Run = {};
  #lastId = 0;
  #instances = 0;
  #isClosed = false;
  /** Whether the program has ever given a valid answer. */
  #hasAnswered = false;

  /** @throws {TypeError | RangeError} for an invalid command or option; the message names it. */
  constructor(
    owner: string,
    command: string | readonly string[],
    options: ExecOptions,
    kind: { readonly timeoutMs: number; readonly notifies?: boolean; readonly options?: v.ObjectEntries },
  ) {
    checkArgument(owner, anObject({ command: COMMAND, options: anObject({ ...OPTIONS, ...kind.options }) }), {
      command,
      options,
    });
    const { timeoutMs = kind.timeoutMs, cwd, env } = options;
    const given = typeof command === 'string' ? command : [...command];
    this.#owner = owner;
    this.commandLine = [given].flat().join(' ');
    this.#program = new PipedProgram(
      { command: given, timeoutMs, cwd, env: { ...process.env, ...env }, notifies: kind.notifies ?? false },
      (watcher) => this.#notified(watcher),
    );
  }

  /** The run for new instances. After a failure, this is a new run. */
  run(): Run {
    if (this.#isClosed) throw new Error(`${this.#owner}: the target is closed`);
    if (this.#run.failure !== undefined) {
      this.#run = {};
      this.#watchers.clear();
    }
    return this.#run;
  }

  /** @throws {Finding} for a violation of the protocol, which ends the run of the program. */
  askNow<Kind extends ResultKind>(run: Run, request: Request, kinds: readonly Kind[]): Answer<Kind> {
    const { id, line, shown } = this.#sent(run, request);
    return this.#read(run, this.#program.askNow(id, line, shown), shown, kinds);
  }

  /** Like {@link askNow}, but asynchronous. Forwards an abort to the program, and still waits for its answer. */
  async ask<Kind extends ResultKind>(
    run: Run,
    request: Request,
    kinds: readonly Kind[],
    { signal, onServiceDate }: CallOptions = {},
  ): Promise<Answer<Kind>> {
    const isAborted = signal?.aborted === true;
    const { id, line, shown } = this.#sent(run, isAborted ? { ...request, aborted: true } : request);
    const abort = (): void => this.#program.tell(asciiJson({ abort: id }));
    if (!isAborted) signal?.addEventListener('abort', abort, { once: true });
    try {
      return this.#read(run, await this.#program.ask(id, line, shown), shown, kinds, onServiceDate);
    } finally {
      signal?.removeEventListener('abort', abort);
    }
  }

  /** Asks the program to describe its target. @throws {DidNotStart} if there is no valid answer. */
  async describe(contract: SuiteName): Promise<Description> {
    const request = { op: 'describe', contract };
    try {
      const answer = await this.ask(this.run(), request, ['target']);
      if (answer.kind === 'target') return answer.value;
      throw refused(request, answer.kind === 'error' ? answer.value : '');
    } catch (error) {
      await this.close();
      throw error instanceof Finding && !(error instanceof DidNotStart) ? new DidNotStart(error.message) : error;
    }
  }

  /** Creates an instance, in a run that has not failed. */
  async create<Kind extends 'keyWrapper' | 'store'>(
    kind: Kind,
    which: object,
  ): Promise<{ readonly run: Run; readonly instance: string; readonly answer: Answer<Kind | 'failure'> }> {
    const run = this.run();
    const instance = `i${++this.#instances}`;
    const answer = await this.ask(run, { op: 'create', instance, ...which }, [kind, 'failure']);
    return { run, instance, answer };
  }

  /** Throws a failure that no call has reported, and otherwise closes the instance. */
  async closeInstance(run: Run, made: { close?(): Promise<void> }): Promise<void> {
    this.look(run);
    await made.close?.();
  }

  /** Makes a request that has no result. */
  async act(run: Run, request: Request, error: (failure: Failure) => Error = otherFailure): Promise<void> {
    const answer = await this.ask(run, request, ['failure']);
    if (answer.kind !== 'nothing') throw failed(answer, error);
  }

  /** The optional functions of a target that the program declares, by name. */
  able<Name extends string>(
    can: readonly string[],
    ...names: readonly Name[]
  ): { [Each in Name]?: () => Promise<void> } {
    const able = names.filter((name) => can.includes(name));
    return Object.fromEntries(able.map((name) => [name, () => this.act(this.run(), { op: name })])) as never;
  }

  /** @returns the name of a new watcher. The program may notify it from now on, even after the watch has ended. */
  watch(changed: () => void): string {
    const watcher = `w${++this.#instances}`;
    this.#watchers.set(watcher, changed);
    return watcher;
  }

  /** @throws {Finding} if the run of an instance failed, even if the check ignored the failure. */
  look(run: Run): void {
    if (run.failure !== undefined) throw run.failure;
    if (run !== this.#run || this.#isClosed) return;
    const { failure } = this.#program.look();
    if (failure !== undefined) throw this.#over(run, failure);
  }

  close(): Promise<void> {
    this.#isClosed = true;
    return this.#program.close();
  }

  #sent(run: Run, request: Request): { readonly id: number; readonly line: string; readonly shown: string } {
    if (run.failure !== undefined) throw run.failure;
    this.#lastId += 1;
    const sent = { id: this.#lastId, ...request };
    return { id: this.#lastId, line: asciiJson(sent), shown: shownRequest(sent) };
  }

  #read<Kind extends ResultKind>(
    run: Run,
    { answer, failure }: Outcome,
    shown: string,
    kinds: readonly Kind[],
    onServiceDate?: (date: Date) => void,
  ): Answer<Kind> {
    if (answer === undefined) throw this.#over(run, failure ?? `no answer to ${shown}`);
    try {
      const read = readAnswer(answer, kinds, () => shownText(JSON.stringify(answer)));
      for (const date of onServiceDate === undefined ? [] : readDates(answer)) onServiceDate?.(new Date(date));
      this.#hasAnswered = true;
      return read;
    } catch (error) {
      if (!(error instanceof WrongAnswer)) throw error;
      const finding = this.#over(run, `the answer to ${shown} ${error.message}`);
      this.#program.kill();
      throw finding;
    }
  }

  #notified(watcher: string): void {
    const changed = this.#watchers.get(watcher);
    if (changed !== undefined) return changed();
    this.fail(this.#run, `the program notified the unknown watcher ${quoted(watcher)}`);
  }

  /** Ends a run because of a failure outside any request. */
  fail(run: Run, failure: unknown): void {
    this.#over(run, typeof failure === 'string' ? failure : describeThrown(failure));
    this.#program.kill();
  }

  /** Records the failure of a run. @returns the first failure of the run, which has caused the others. */
  #over(run: Run, failure: string): Finding {
    run.failure ??= this.#hasAnswered ? new Finding(failure) : new DidNotStart(failure);
    return run.failure;
  }
}

/** The finding for an error in answer to a request that must succeed. */
export function refused(request: Request, text: string): Finding {
  return new Finding(`${shownRequest(request)} was answered with the error ${quoted(text)}`);
}

/** The error for an answer that is not a result. */
export function failed(answer: Answer<ResultKind>, error: (failure: Failure) => Error): Error {
  if (answer.kind !== 'failure') return programError(answer.kind === 'error' ? answer.value : '');
  const failure = answer.value;
  return failure.kind === 'argument' ? named('TypeError', failure.message) : error(failure);
}

function otherFailure({ kind, message }: Failure): Error {
  return programError(`${kind}: ${message}`);
}

/** An error that the program reports as `error`. */
export function programError(text: string): Error {
  return new ProgramError(quoted(text));
}

/** An error with this name and these members, without importing its class. */
export function named(name: string, message: string, members: object = {}): Error {
  // The original stack would point into the kit.
  return Object.assign(new Error(message), { name, stack: `${name}: ${message}`, ...members });
}

function quoted(text: string): string {
  return JSON.stringify(shownText(text.slice(0, 1_000)).slice(0, 100));
}
