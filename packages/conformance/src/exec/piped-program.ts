import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads';
import { scriptBeside } from '../target-module.ts';
import type { Order, Outcome, Post, ProgramOptions, ThreadData } from './program.ts';

/** Extra time for ending a program, beyond the wait for its answer, in milliseconds. */
const SLACK_MS = 30_000;
const NO_ANSWER: Outcome = { failure: 'the thread that talks to the program gave no answer' };

interface Thread {
  readonly worker: Worker;
  readonly port: MessagePort;
  readonly bell: Int32Array;
  /** Orders whose outcome has not arrived yet. */
  readonly waiting: Map<number, (outcome: Outcome) => void>;
}

/**
 * A program that a worker thread drives: synchronously, while this thread blocks until the answer arrives, or
 * asynchronously, with many requests at a time. The first request starts it.
 */
export class PipedProgram {
  readonly #options: ProgramOptions;
  readonly #notified: (watcher: string) => void;
  #thread: Thread | undefined;
  #orders = 0;

  constructor(options: ProgramOptions, notified: (watcher: string) => void) {
    this.#options = options;
    this.#notified = notified;
  }

  /** The answer of the program, or the failure. */
  ask(id: number, line: string, shown: string): Promise<Outcome> {
    return this.#send({ do: 'ask', id, line, shown });
  }

  askNow(id: number, line: string, shown: string): Outcome {
    return this.#sendNow({ do: 'ask', id, line, shown });
  }

  tell(line: string): void {
    if (this.#thread !== undefined) void this.#send({ do: 'tell', line });
  }

  look(): Outcome {
    return this.#thread === undefined ? {} : this.#sendNow({ do: 'look' });
  }

  kill(): void {
    if (this.#thread !== undefined) this.#sendNow({ do: 'kill' });
  }

  async close(): Promise<void> {
    const thread = this.#thread;
    if (thread === undefined) return;
    const ended = this.#send({ do: 'end' });
    this.#thread = undefined;
    await ended;
    thread.port.close();
    await thread.worker.terminate();
  }

  async #send(order: Order): Promise<Outcome> {
    const thread = this.#running();
    const { port, waiting } = thread;
    // Keeps the process alive until the outcome arrives.
    port.ref();
    try {
      return await new Promise<Outcome>((resolve) => this.#post(thread, order, resolve));
    } finally {
      if (waiting.size === 0) port.unref();
    }
  }

  #sendNow(order: Order): Outcome {
    const thread = this.#running();
    let outcome: Outcome | undefined;
    this.#post(thread, order, (given) => {
      outcome = given;
    });
    const until = performance.now() + this.#options.timeoutMs + SLACK_MS;
    for (;;) {
      const rung = Atomics.load(thread.bell, 0);
      for (;;) {
        const post: { readonly message: Post } | undefined = receiveMessageOnPort(thread.port);
        if (post === undefined) break;
        this.#take(thread, post.message);
      }
      if (outcome !== undefined) return outcome;
      const left = until - performance.now();
      if (left <= 0) break;
      Atomics.wait(thread.bell, 0, rung, left);
    }
    this.#lose(thread);
    thread.port.close();
    void thread.worker.terminate();
    return NO_ANSWER;
  }

  #post({ port, waiting }: Thread, order: Order, settle: (outcome: Outcome) => void): void {
    const number = ++this.#orders;
    waiting.set(number, settle);
    port.postMessage({ number, order });
  }

  #take({ waiting }: Thread, post: Post): void {
    if ('changed' in post) return this.#notified(post.changed);
    waiting.get(post.number)?.(post.outcome);
    waiting.delete(post.number);
  }

  #lose(thread: Thread): void {
    if (this.#thread === thread) this.#thread = undefined;
    for (const settle of thread.waiting.values()) settle(NO_ANSWER);
    thread.waiting.clear();
  }

  #running(): Thread {
    this.#thread ??= this.#start();
    return this.#thread;
  }

  #start(): Thread {
    const { port1: port, port2 } = new MessageChannel();
    const bell = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
    const workerData: ThreadData = { program: this.#options, port: port2, bell };
    const script = scriptBeside(import.meta.url, 'thread');
    const worker = new Worker(script, { workerData, transferList: [port2], execArgv: [] });
    const thread: Thread = { worker, port, bell, waiting: new Map() };
    port.on('message', (post: Post) => this.#take(thread, post));
    // This error is ignored, since the missing answer is reported.
    worker.on('error', () => undefined);
    worker.on('exit', () => this.#lose(thread));
    // The process can exit even if the caller forgets to close the target.
    worker.unref();
    port.unref();
    return thread;
  }
}
