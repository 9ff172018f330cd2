import type { RequestStateCodec } from '@sealring/core';
import * as v from 'valibot';
import {
  CODEC_SUPPORT,
  type CodecInstance,
  type CodecSupport,
  type CodecTarget,
  THROUGH_PIPE,
} from '../codec/target.ts';
import { aFlag, anObject, aText, aWholeNumber, checkArgument } from '../options.ts';
import { DidNotStart, Finding } from '../requirement.ts';
import { ProgramError } from '../thrown.ts';
import { type Answer, type Request, type Role, readAnswer, WrongAnswer } from './answer.ts';
import { asciiJson, shownRequest, shownText } from './shown.ts';
import { SyncProgram } from './sync-program.ts';

/** How a program that speaks the exec protocol is run. */
export interface ExecOptions {
  /** What the report calls it. Default: the command. */
  readonly name?: string;
  /** The longest wait for one answer, milliseconds; 100 to 3 600 000. The first includes the start. Default 10 000. */
  readonly timeoutMs?: number;
  /** The folder it runs in. Default: this process's. */
  readonly cwd?: string;
  /** Variables added to this process's environment. */
  readonly env?: Readonly<Record<string, string>>;
  readonly supports?: CodecSupport;
  /** The name of the error that an `invalid` answer becomes. Default `InvalidRequestState`. */
  readonly refusal?: string;
  /** Whether it knows the role `rotated`. Default true. */
  readonly rotated?: boolean;
}

/** A target that has to be closed. */
export interface ExecCodecTarget extends CodecTarget {
  /** Ends the program: first its input ends, then it is asked to exit, then it is killed. */
  close(): Promise<void>;
}

const OWNER = 'execCodecTarget';
const TIMEOUT_MS = 10_000;
const WORDS = v.array(v.string(), 'must be an array of strings');

const ARGUMENTS = anObject({
  command: v.union([aText, v.pipe(WORDS, v.minLength(1, 'must not be empty'))], 'must be text or an array of texts'),
  options: anObject({
    name: v.optional(aText),
    timeoutMs: v.optional(aWholeNumber(100, 3_600_000)),
    cwd: v.optional(aText),
    env: v.optional(v.record(v.string(), v.string('must be a string'), 'must be an object')),
    supports: v.optional(CODEC_SUPPORT),
    refusal: v.optional(aText),
    rotated: v.optional(aFlag),
  }),
});

/**
 * A codec in any language: a program that reads requests from its standard input and writes answers to its standard
 * output, JSON in lines. It is started by the first request, and again after it hung, crashed or answered wrongly, each
 * of which is a finding that shows the request. Where it does not answer the first request the run ends with that
 * finding.
 *
 * @param command - A command line for the shell, as in an npm script; or a program and its arguments, for none.
 * @throws {TypeError | RangeError} for a command or an option that is wrong, naming it.
 *
 * @example
 * ```ts no-run
 * import { execCodecTarget, runCodecConformance } from '@sealring/conformance';
 *
 * const target = execCodecTarget('python my_codec.py');
 * const report = await runCodecConformance(target).finally(() => target.close());
 * console.log(report.passed);
 * ```
 */
export function execCodecTarget(command: string | readonly string[], options: ExecOptions = {}): ExecCodecTarget {
  checkArgument(OWNER, ARGUMENTS, { command, options });
  const { name, timeoutMs = TIMEOUT_MS, cwd, env, supports, refusal = 'InvalidRequestState', rotated = true } = options;
  const given = typeof command === 'string' ? command : [...command];
  const fleet = new PipedFleet(
    new SyncProgram({ command: given, timeoutMs, cwd, env: { ...process.env, ...env } }),
    refusal,
  );
  const target: ExecCodecTarget = {
    name: name ?? [given].flat().join(' '),
    create: () => fleet.open('self'),
    createPeer: () => fleet.open('peer'),
    createStranger: () => fleet.open('stranger'),
    ...(rotated && { createRotated: () => fleet.open('rotated') }),
    ...(supports !== undefined && { supports }),
    refusal,
    close: () => fleet.close(),
  };
  return Object.assign(target, { [THROUGH_PIPE]: true });
}

/** One run of the program, from its start to its end. */
interface Run {
  failure?: Finding;
}

/** The codecs of one program. */
class PipedFleet {
  readonly #program: SyncProgram;
  readonly #refusal: string;
  #run: Run = {};
  #lastId = 0;
  #instances = 0;
  #isClosed = false;
  /** Whether the program ever gave an answer as the protocol says. */
  #hasAnswered = false;

  constructor(program: SyncProgram, refusal: string) {
    this.#program = program;
    this.#refusal = refusal;
  }

  /** @throws {Finding} where the program does not make one. */
  open(role: Role): CodecInstance {
    if (this.#isClosed) throw new Error(`${OWNER}: the target is closed`);
    if (this.#run.failure !== undefined) this.#run = {};
    const run = this.#run;
    this.#instances += 1;
    const instance = `i${this.#instances}`;
    const request: Request = { op: 'create', instance, role };
    const answer = this.#ask(run, request);
    if (answer.kind === 'error') {
      throw new Finding(`${shownRequest(request)} was answered by the error ${quoted(answer.text)}`);
    }
    return { codec: this.#codec(run, instance), close: () => this.#look(run) };
  }

  close(): Promise<void> {
    this.#isClosed = true;
    return this.#program.close();
  }

  #codec(run: Run, instance: string): RequestStateCodec {
    return {
      seal: (payload) => {
        const answer = this.#ask(run, { op: 'seal', instance, payload: Buffer.from(payload).toString('base64') });
        if (answer.kind === 'token') return answer.token;
        throw this.#thrown(answer);
      },
      unseal: (token) => {
        // Half a surrogate pair is no text that every language can hold.
        const answer = this.#ask(run, { op: 'unseal', instance, token: token.toWellFormed() });
        if (answer.kind === 'payload') return answer.payload;
        throw this.#thrown(answer);
      },
    };
  }

  #thrown(answer: Answer): Error {
    if (answer.kind === 'invalid') return named(this.#refusal, answer.reason);
    const text = answer.kind === 'error' ? answer.text : '';
    return new ProgramError(quoted(text));
  }

  /** @throws {Finding} for anything that the protocol does not say; the run of the program is over then. */
  #ask(run: Run, request: Request): Answer {
    if (run.failure !== undefined) throw run.failure;
    this.#lastId += 1;
    const id = this.#lastId;
    const sent = { id, ...request };
    const shown = shownRequest(sent);
    const { line, failure } = this.#program.ask(asciiJson(sent), shown);
    if (line === undefined) throw this.#over(run, failure ?? `no answer to ${shown}`);
    try {
      const answer = readAnswer(line, request.op, id);
      this.#hasAnswered = true;
      return answer;
    } catch (error) {
      if (!(error instanceof WrongAnswer)) throw error;
      this.#program.kill();
      throw this.#over(run, `the answer to ${shown} ${error.message}`);
    }
  }

  /** @throws {Finding} if the run of an instance ended wrongly, be it that a check took no notice. */
  #look(run: Run): void {
    if (run.failure !== undefined) throw run.failure;
    if (run !== this.#run || this.#isClosed) return;
    const { failure } = this.#program.look();
    if (failure !== undefined) throw this.#over(run, failure);
  }

  #over(run: Run, failure: string): Finding {
    run.failure = this.#hasAnswered ? new Finding(failure) : new DidNotStart(failure);
    return run.failure;
  }
}

function named(name: string, message: string): Error {
  return Object.assign(new Error(message), { name });
}

function quoted(text: string): string {
  return JSON.stringify(shownText(text.slice(0, 1_000)).slice(0, 100));
}
