import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { scriptBeside } from '../target-module.ts';
import type { Answer, Numbered, Request } from './messages.ts';

/** What became of a request: its answer, or why there is none. */
export type Outcome =
  | Answer
  | { readonly kind: 'ended'; readonly how: string }
  | { readonly kind: 'late'; readonly afterMs: number }
  | { readonly kind: 'interrupted' };

const CHILD = fileURLToPath(scriptBeside(import.meta.url, 'child'));
/** A group of its own, so that what a target started ends with it, and a terminal's Ctrl-C is left to the command line. */
const OWN_GROUP = process.platform !== 'win32';

/** A process that holds a target. What it prints goes to standard error: standard output is for the report. */
export class TargetProcess {
  readonly #child: ChildProcess;
  #hasEnded = false;
  #asked = 0;

  constructor() {
    this.#child = fork(CHILD, [], { stdio: ['ignore', 2, 2, 'ipc'], detached: OWN_GROUP });
    this.#child.once('exit', () => {
      this.#hasEnded = true;
    });
    // A message to a process that has just ended: `exit` reports its end.
    this.#child.on('error', () => undefined);
  }

  /** Asks one thing. Never rejects. */
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
        settle({ kind: 'ended', how: name === null ? `with code ${code}` : `by ${name}` });
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

  /** Ends the process, and what it started. Resolves when it has ended. */
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
    // It ended by itself.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
