import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { type CheckedRequirement, expectThat, must, NotApplicable, should } from '../requirement.ts';
import { scriptBeside } from '../target-module.ts';
import { readFirstTokens } from './processes.ts';
import { LEAST_BYTES, sharedStream } from './secrecy.ts';
import { CONTRACT, type CodecTrial, KIT, SPEC } from './trial.ts';
import type { WorkerAnswer } from './worker.ts';

/** From nothing to long: what is longer may take another way. */
const LENGTHS: readonly number[] = [0, 1, 5, 16, 39, 100, 1_000, 5_000, 60_000];

const TURNS = 6;
const TURN_BYTES = 32;

/** Which codec unseals which tokens. */
export const ISOLATION_CHECKS: readonly CheckedRequirement<CodecTrial>[] = [
  must('CODEC-STRANGER', 'A token of another service, with other keys, is refused.', SPEC, async (trial) => {
    const [codec, stranger] = [await trial.create(), await trial.createStranger()];
    for (const length of LENGTHS) {
      const payload = trial.bytes(length);
      trial.refused(codec, trial.seal(stranger, payload), 'a stranger’s token');
      trial.refused(stranger, trial.seal(codec, payload), 'its token, at a stranger,');
    }
    // Alternately, and after the owner has unsealed it: what one of them remembers, or has in hand, is not the other's.
    for (let turn = 0; turn < TURNS; turn++) {
      const [owner, other] = turn % 2 === 0 ? [codec, stranger] : [stranger, codec];
      const [payload, others] = [trial.bytes(TURN_BYTES), trial.bytes(TURN_BYTES)];
      const [token, otherToken] = [trial.seal(owner, payload), trial.seal(other, others)];
      for (let again = 0; again < 2; again++) {
        trial.expectPayload(owner, token, payload, 'its own token, beside a stranger,');
        trial.refused(other, token, 'a stranger’s token, which the stranger has just unsealed,');
        trial.expectPayload(other, otherToken, others, 'its own token, after a stranger’s,');
      }
    }
  }),
  must('CODEC-PEER', 'Another process with the same keys unseals the token.', CONTRACT, async (trial) => {
    const [codec, peer] = [await trial.create(), await trial.createPeer()];
    for (const length of LENGTHS) {
      const payload = trial.bytes(length);
      trial.expectPayload(peer, trial.seal(codec, payload), payload, 'its token, at a peer,');
      trial.expectPayload(codec, trial.seal(peer, payload), payload, 'a peer’s token');
    }
  }),
  must(
    'CODEC-ROTATED-OPENS',
    'After a rotation, what was sealed before is still unsealed.',
    CONTRACT,
    async (trial) => {
      const [before, after] = [await trial.create(), await trial.createRotated()];
      for (const length of LENGTHS) {
        const payload = trial.bytes(length);
        trial.expectPayload(after, trial.seal(before, payload), payload, 'a token from before the rotation');
        trial.expectPayload(after, trial.seal(after, payload), payload, 'a token from after the rotation');
      }
    },
  ),
  should(
    'CODEC-ROTATED-SEALS',
    'After a rotation, new tokens are sealed with the new key.',
    CONTRACT,
    async (trial) => {
      const [before, after] = [await trial.create(), await trial.createRotated()];
      trial.refused(
        before,
        trial.seal(after, trial.text('state')),
        'a token sealed after the rotation, by who knows only the old key,',
      );
    },
  ),
];

const THREADS = 3;

/** Codecs in threads of one process. */
export const WORKER_CHECKS: readonly CheckedRequirement<CodecTrial>[] = [
  must(
    'CODEC-WORKERS',
    'Codecs in worker threads of one process do not get into one another’s way.',
    KIT,
    async ({ module, supports, random }) => {
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
    // A thread that ends early reports that in its answer.
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
