import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { type CheckedRequirement, expectThat, must, NotApplicable } from '../requirement.ts';
import { scriptBeside } from '../target-module.ts';
import { readFirstTokens } from './first-tokens.ts';
import { LEAST_BYTES, sharedStream } from './shared-stream.ts';
import { KIT } from './sources.ts';
import type { CodecTrial } from './trial.ts';
import type { WorkerAnswer } from './worker.ts';

const THREADS = 3;

/** Codecs in threads of one process. */
export const WORKER_CHECKS: readonly CheckedRequirement<CodecTrial>[] = [
  must(
    'CODEC-WORKERS',
    'Codecs in worker threads of one process do not get into one another’s way.',
    KIT,
    async ({ subject: { module, supports }, random }) => {
      if (module === undefined) throw new NotApplicable('the target was not given as a module');
      const threads = Array.from({ length: THREADS }, () => new Thread(module, random.below(2 ** 31)));
      // At once, or they might come one after the other.
      await Promise.all(threads.map((thread) => thread.ready));
      const answers = await Promise.all(threads.map((thread) => thread.work()));
      const finding = answers.find((answer) => answer.finding !== undefined)?.finding;
      expectThat(finding === undefined, `in one of ${THREADS} worker threads: ${finding}`);
      if (!supports.confidentiality || supports.maxPayloadBytes < LEAST_BYTES) return;
      const sealed = answers.flatMap(({ tokens = [] }) => readFirstTokens(tokens));
      expectThat(!sharedStream(sealed), `the first tokens of ${THREADS} worker threads share a key stream`);
    },
  ),
];

class Thread {
  readonly #worker: Worker;
  readonly #answer: Promise<WorkerAnswer>;
  /** Resolves when the codec is there, or will not be. */
  readonly ready: Promise<unknown>;

  constructor(module: string, seed: number) {
    const worker = new Worker(scriptBeside(import.meta.url, 'worker'), { workerData: { module, seed }, execArgv: [] });
    // A thread that ends before tells so in its answer.
    const ready = once(worker, 'message').catch(() => undefined);
    this.#answer = new Promise<WorkerAnswer>((answer) => {
      worker.on('message', (message: WorkerAnswer | 'ready') => {
        if (message !== 'ready') answer(message);
      });
      worker.on('error', (error: Error) => answer({ finding: `${error.name} ended the thread` }));
      worker.on('exit', (code) => answer({ finding: `the thread ended with code ${code}` }));
    });
    this.ready = Promise.race([ready, this.#answer]);
    this.#worker = worker;
  }

  async work(): Promise<WorkerAnswer> {
    this.#worker.postMessage('begin', []);
    try {
      return await this.#answer;
    } finally {
      await this.#worker.terminate();
    }
  }
}
