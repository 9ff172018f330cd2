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

/** How a program that speaks the exec protocol is run. */
export interface ExecOptions {
  /** What the report calls it. Default: what the program says, or else the command. */
  readonly name?: string;
  /**
   * The longest wait for one answer, milliseconds; 100 to 3 600 000. The first includes the start. Default 10 000 for
   * codecs, and 30 000 for key wrappers and ring stores.
   */
  readonly timeoutMs?: number;
  /** The folder it runs in. Default: this process's. */
  readonly cwd?: string;
  /** Variables added to this process's environment. */
  readonly env?: Readonly<Record<string, string>>;
}

const WORDS = v.array(v.string(), 'must be an array of strings');
const COMMAND = v.union(
  [aText, v.pipe(WORDS, v.minLength(1, 'must not be empty'))],
  'must be text or an array of texts',
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

/** What a call to an instance may be given besides its arguments. */
export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  readonly onServiceDate?: ((date: Date) => void) | undefined;
}

/** A program, through its restarts, and the instances in it. */
export class Fleet {
  readonly #owner: string;
  readonly #program: PipedProgram;
  readonly #watchers = new Map<string, () => void>();
  readonly commandLine: string;
  #run: Run = {};
  #lastId = 0;
  #instances = 0;
  #isClosed = false;
  /** Whether the program ever gave an answer as the protocol says. */
  #hasAnswered = false;

  /** @throws {TypeError | RangeError} for a command or an option that is wrong, naming it. */
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

  /** The run that new instances belong to: another one after a failure. */
  run(): Run {
    if (this.#isClosed) throw new Error(`${this.#owner}: the target is closed`);
    if (this.#run.failure !== undefined) {
      this.#run = {};
      this.#watchers.clear();
    }
    return this.#run;
  }

  /** @throws {Finding} for anything that the protocol does not say; the run of the program is over then. */
  askNow<Kind extends ResultKind>(run: Run, request: Request, kinds: readonly Kind[]): Answer<Kind> {
    const { id, line, shown } = this.#sent(run, request);
    return this.#read(run, this.#program.askNow(id, line, shown), shown, kinds);
  }

  /** The same asynchronously. A signal that aborts is passed on, and the answer waited for. */
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

  /** What the program says of its target. @throws {DidNotStart} where it says nothing that the protocol knows. */
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

  /** Asks for an instance, in a run that has not failed. */
  async create<Kind extends 'keyWrapper' | 'store'>(
    kind: Kind,
    which: object,
  ): Promise<{ readonly run: Run; readonly instance: string; readonly answer: Answer<Kind | 'failure'> }> {
    const run = this.run();
    const instance = `i${++this.#instances}`;
    const answer = await this.ask(run, { op: 'create', instance, ...which }, [kind, 'failure']);
    return { run, instance, answer };
  }

  /** Looks what went wrong that no call was there to report, and then closes what can be closed. */
  async closeInstance(run: Run, made: { close?(): Promise<void> }): Promise<void> {
    this.look(run);
    await made.close?.();
  }

  /** Asks for what has no result. */
  async act(run: Run, request: Request, error: (failure: Failure) => Error = otherFailure): Promise<void> {
    const answer = await this.ask(run, request, ['failure']);
    if (answer.kind !== 'nothing') throw failed(answer, error);
  }

  /** What a target can do besides what every target can, each asked for by its name. */
  able<Name extends string>(
    can: readonly string[],
    ...names: readonly Name[]
  ): { [Each in Name]?: () => Promise<void> } {
    const able = names.filter((name) => can.includes(name));
    return Object.fromEntries(able.map((name) => [name, () => this.act(this.run(), { op: name })])) as never;
  }

  /** @returns the name of a new watcher. The program may notify it from now on, and after its end too. */
  watch(changed: () => void): string {
    const watcher = `w${++this.#instances}`;
    this.#watchers.set(watcher, changed);
    return watcher;
  }

  /** @throws {Finding} if the run of an instance ended wrongly, be it that a check took no notice. */
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

  /** Ends a run, because of what no request is there to report. */
  fail(run: Run, failure: unknown): void {
    this.#over(run, typeof failure === 'string' ? failure : describeThrown(failure));
    this.#program.kill();
  }

  /** The first failure of a run: the others follow from it. */
  #over(run: Run, failure: string): Finding {
    run.failure ??= this.#hasAnswered ? new Finding(failure) : new DidNotStart(failure);
    return run.failure;
  }
}

/** The finding where the program answers an error to what must succeed. */
export function refused(request: Request, text: string): Finding {
  return new Finding(`${shownRequest(request)} was answered by the error ${quoted(text)}`);
}

/** The error that a call ends with where its answer is not a result. */
export function failed(answer: Answer<ResultKind>, error: (failure: Failure) => Error): Error {
  if (answer.kind !== 'failure') return programError(answer.kind === 'error' ? answer.value : '');
  const failure = answer.value;
  return failure.kind === 'argument' ? named('TypeError', failure.message) : error(failure);
}

function otherFailure({ kind, message }: Failure): Error {
  return programError(`${kind}: ${message}`);
}

/** An error that the program answers where it has no other word for it. */
export function programError(text: string): Error {
  return new ProgramError(quoted(text));
}

/** An error as its name and its members say: no class of another package. */
export function named(name: string, message: string, members: object = {}): Error {
  // Where it was made is no place of the author's.
  return Object.assign(new Error(message), { name, stack: `${name}: ${message}`, ...members });
}

function quoted(text: string): string {
  return JSON.stringify(shownText(text.slice(0, 1_000)).slice(0, 100));
}
