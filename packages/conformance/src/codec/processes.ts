import { fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import type { RequestStateCodec } from '@sealring/core';
import type { LeftBehind } from '../observe.ts';
import { Finding } from '../requirement.ts';
import { scriptBeside } from '../target-module.ts';
import type { Sealed } from './key-stream.ts';
import type { CodecTrial } from './trial.ts';

/** Time limit for a process to start, load the module and do its task, in milliseconds. */
const PROCESS_MS = 30_000;
/** Number of first tokens to compare. One is not enough, since a process may have sealed others before. */
const TOKENS = 16;
const LENGTH = 24;

/** The task of a process: use the codec between two marks in its output, or seal payloads and unseal `token`. */
export type Task =
  | { readonly mark: string }
  | { readonly mark?: undefined; readonly seed: number; readonly token: string };

/** The first payloads and tokens of a codec, in the form sent between processes or threads. */
export type FirstTokens = readonly { readonly payload: string; readonly token: string }[];

/** The first tokens of a codec in a new process, and whether it unsealed a given one. */
export interface FirstSeals {
  readonly tokens: FirstTokens;
  readonly opened: boolean;
}

/** The result of a thread. Before that, the thread posts `ready` and waits for a message. */
export interface WorkerAnswer {
  readonly finding?: string;
  readonly tokens?: FirstTokens;
}

/** Traces of a codec in a separate process, and the number of characters it printed there. */
export interface ProbedCodec extends LeftBehind {
  readonly printed: number;
}

export function firstTokens(trial: CodecTrial, codec: RequestStateCodec): FirstTokens {
  return Array.from({ length: TOKENS }, () => {
    const payload = trial.bytes(LENGTH);
    return { payload: Buffer.from(payload).toString('base64'), token: trial.seal(codec, payload) };
  });
}

export function readFirstTokens(tokens: FirstTokens): readonly Sealed[] {
  return tokens.map(({ payload, token }) => ({ payload: Buffer.from(payload, 'base64'), token }));
}

/** Uses the codec of a module once, in a separate process. @throws {Finding} as {@link inProcess} does. */
export async function probeModule(module: string): Promise<ProbedCodec> {
  const mark = `\n${randomUUID()}\n`;
  const { answer, printed } = await inProcess(module, { mark }, 'used the codec once');
  return {
    ...(answer as LeftBehind),
    printed: printed.reduce((sum, text) => sum + (text.split(mark)[1] ?? '').length, 0),
  };
}

/**
 * Seals in a separate process that loads only the module.
 *
 * @param seed - Seed of the payloads.
 * @param token - Token that the process unseals.
 * @throws {Finding} as {@link inProcess} does.
 */
export async function firstSeals(module: string, seed: number, token = ''): Promise<FirstSeals> {
  return (await inProcess(module, { seed, token }, 'sealed')).answer as FirstSeals;
}

/** @throws {Finding} if the process ends before its report, or does not end. */
async function inProcess(
  module: string,
  task: Task,
  what: string,
): Promise<{ readonly answer: object; readonly printed: readonly string[] }> {
  const child = fork(scriptBeside(import.meta.url, 'scripts/child'), [module, JSON.stringify(task)], {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    // The child runs without the options of a test runner.
    execArgv: [],
  });
  const printed: [string, string] = ['', ''];
  child.stdout?.setEncoding('utf8').on('data', (text: string) => (printed[0] += text));
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (printed[1] += text));
  let answer: object | undefined;
  child.on('message', (message) => (answer = message as object));
  const timer = setTimeout(() => child.kill('SIGKILL'), PROCESS_MS);
  const ended = await new Promise<string>((resolve) => {
    child.on('error', (error) => resolve(error.name));
    child.on('close', (code, signal) => resolve(signal === null ? `code ${code}` : signal));
  });
  clearTimeout(timer);
  if (answer === undefined) throw new Finding(`a process that ${what} ended with ${ended}`);
  if ('failed' in answer) throw new Finding(`a process that ${what} failed: ${String(answer.failed)}`);
  return { answer, printed };
}
