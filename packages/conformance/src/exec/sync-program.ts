import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads';
import { scriptBeside } from '../target-module.ts';
import type { Order, Outcome, ProgramOptions, ThreadData } from './program.ts';

/** What ending a program may take beyond the wait for its answer. */
const SLACK_MS = 30_000;

/** A program that is asked synchronously: a thread talks to it, and this one sleeps until the answer is there. */
export class SyncProgram {
  readonly #options: ProgramOptions;
  #thread: { readonly worker: Worker; readonly port: MessagePort; readonly bell: Int32Array } | undefined;

  constructor(options: ProgramOptions) {
    this.#options = options;
  }

  /** The next line of the program, or what went wrong. The program is started where it does not run. */
  ask(line: string, shown: string): Outcome {
    return this.#order({ do: 'ask', line, shown });
  }

  /** What went wrong since the last answer. */
  look(): Outcome {
    return this.#thread === undefined ? {} : this.#order({ do: 'look' });
  }

  /** Ends the program at once. */
  kill(): void {
    if (this.#thread !== undefined) this.#order({ do: 'kill' });
  }

  /** Ends the program and the thread. */
  async close(): Promise<void> {
    if (this.#thread === undefined) return;
    this.#order({ do: 'end' });
    const { worker, port } = this.#thread;
    this.#thread = undefined;
    port.close();
    await worker.terminate();
  }

  #order(order: Order): Outcome {
    this.#thread ??= this.#start();
    const { worker, port, bell } = this.#thread;
    Atomics.store(bell, 0, 0);
    port.postMessage(order);
    waitForBell(bell, this.#options.timeoutMs + SLACK_MS);
    const answer: { readonly message: Outcome } | undefined = receiveMessageOnPort(port);
    if (answer !== undefined) return answer.message;
    this.#thread = undefined;
    port.close();
    void worker.terminate();
    return { failure: 'the thread that talks to the program gave no answer' };
  }

  #start(): { readonly worker: Worker; readonly port: MessagePort; readonly bell: Int32Array } {
    const { port1: port, port2 } = new MessageChannel();
    const bell = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
    const workerData: ThreadData = { program: this.#options, port: port2, bell };
    const thread = scriptBeside(import.meta.url, 'thread');
    const worker = new Worker(thread, { workerData, transferList: [port2], execArgv: [] });
    // It then gives no answer, which is reported.
    worker.on('error', () => undefined);
    // Who forgets to close ends all the same.
    worker.unref();
    return { worker, port, bell };
  }
}

/**
 * The thread stores, then notifies: the notification for the previous answer may arrive during this wait, so only the
 * stored value counts.
 */
function waitForBell(bell: Int32Array, longestMs: number): void {
  const until = performance.now() + longestMs;
  while (Atomics.load(bell, 0) === 0) {
    const left = until - performance.now();
    if (left <= 0) return;
    Atomics.wait(bell, 0, 0, left);
  }
}
