import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import type { RequestStateCodec } from '@sealring/core';
import { expectThat, NotApplicable } from '../requirement.ts';
import { scriptBeside } from '../target-module.ts';
import { damagedForms } from './damage.ts';
import { LEAST_BYTES, sharedStream } from './key-stream.ts';
import { readFirstTokens, type WorkerAnswer } from './processes.ts';
import type { CodecChecks, CodecTrial } from './trial.ts';

/** Lengths from empty to long, since a long payload may take another path. */
const LENGTHS: readonly number[] = [0, 1, 5, 16, 39, 100, 1_000, 5_000, 60_000];

const TURNS = 6;
const TURN_BYTES = 32;

export const ISOLATION_CHECKS: CodecChecks = {
  'CODEC-CLOSE-ALONE': async (trial) => {
    const [codec, peer, closed] = [await trial.create(), await trial.createPeerOrSelf(), await trial.create()];
    const payload = trial.text('state');
    const before = [codec, peer].map((one) => ({ one, token: trial.seal(one, payload) }));
    const last = trial.seal(closed, payload);
    await trial.closeEarly(closed);
    for (const { one, token } of before) {
      trial.expectPayload(one, token, payload, 'a token of one instance, after another one was closed,');
    }
    for (const one of [codec, peer, await trial.create()]) {
      comesBack(trial, one, one, 'a token sealed after another instance was closed');
      if (trial.supports.crossInstance) trial.expectPayload(one, last, payload, 'a token of a closed instance');
    }
  },
  'CODEC-STRANGER': async (trial) => {
    const [codec, stranger] = [await trial.create(), await trial.createStranger()];
    // Gives asynchronous changes to the keys time to happen.
    await pause(1);
    for (const length of LENGTHS) {
      const payload = trial.bytes(length);
      trial.refused(codec, trial.seal(stranger, payload), 'a stranger’s token');
      trial.refused(stranger, trial.seal(codec, payload), 'its token, unsealed by a stranger,');
    }
    // The codecs alternate, and the owner unseals each token first, so that shared caches and state show.
    for (let turn = 0; turn < TURNS; turn++) {
      const [owner, other] = turn % 2 === 0 ? [codec, stranger] : [stranger, codec];
      const [payload, others] = [trial.bytes(TURN_BYTES), trial.bytes(TURN_BYTES)];
      const [token, otherToken] = [trial.seal(owner, payload), trial.seal(other, others)];
      for (let again = 0; again < 2; again++) {
        trial.expectPayload(owner, token, payload, 'its own token, with a stranger in the same process,');
        trial.refused(other, token, 'a stranger’s token, which the stranger has just unsealed,');
        trial.expectPayload(other, otherToken, others, 'its own token, after a stranger’s,');
      }
    }
  },
  'CODEC-PEER': async (trial) => {
    const [codec, peer] = [await trial.create(), await trial.createPeer()];
    comesBack(trial, codec, peer, 'its token, unsealed by a peer,');
    comesBack(trial, peer, codec, 'a peer’s token');
  },
  'CODEC-ROTATED-OPENS': async (trial) => {
    const [before, after] = [await trial.create(), await trial.createRotated()];
    const twin = trial.supports.crossInstance ? await trial.createRotated() : after;
    for (let again = 0; again < 2; again++) {
      comesBack(trial, twin, after, 'a token that another instance sealed after the rotation');
      comesBack(trial, before, after, 'a token sealed before the rotation');
      comesBack(trial, after, after, 'a token sealed after the rotation');
    }
    // A token sealed with the old key must be checked as strictly as one sealed with the new key.
    const [token, other] = [trial.seal(before, trial.text('state of a tool')), trial.seal(before, trial.text('other'))];
    const damaged = [...damagedForms(token, other)];
    for (const [variant, what] of trial.sample(damaged, () => trial.outcome(after, trial.random.pick(damaged)[0]))) {
      trial.refused(after, variant, `a token sealed before the rotation, ${what},`);
    }
  },
  'CODEC-ROTATED-SEALS': async (trial) => {
    const [before, after] = [await trial.create(), await trial.createRotated()];
    const sealsWithNewKey = (when: string): void => {
      for (const length of LENGTHS) {
        const token = trial.seal(after, trial.bytes(length));
        trial.refused(before, token, `a token sealed after the rotation${when}, unsealed with only the old key,`);
      }
    };
    sealsWithNewKey('');
    // Unsealing a token must not make its key the one that seals.
    const [old, other] = [trial.seal(before, trial.text('state')), trial.seal(before, trial.text('other'))];
    trial.outcome(after, old);
    sealsWithNewKey(' and the unsealing of an old token');
    const damaged = [...damagedForms(old, other)];
    for (const [variant] of trial.sample(damaged, () => trial.outcome(after, old))) trial.outcome(after, variant);
    sealsWithNewKey(' and the refusal of damaged old tokens');
  },
};

/** Checks that one codec unseals the tokens of another. */
function comesBack(trial: CodecTrial, one: RequestStateCodec, other: RequestStateCodec, what: string): void {
  for (const length of LENGTHS) {
    const payload = trial.bytes(length);
    trial.expectPayload(other, trial.seal(one, payload), payload, what);
  }
}

const THREADS = 3;

export const WORKER_CHECKS: CodecChecks = {
  'CODEC-WORKERS': async ({ module, supports, random }) => {
    if (module === undefined) throw new NotApplicable('the target was not given as a module');
    const threads = Array.from({ length: THREADS }, () => startThread(module, random.below(2 ** 31)));
    // They start together, so that they run concurrently.
    await Promise.all(threads.map((thread) => thread.ready));
    const answers = await Promise.all(threads.map((thread) => thread.work()));
    const finding = answers.find((answer) => answer.finding !== undefined)?.finding;
    expectThat(finding === undefined, `in one of ${THREADS} worker threads: ${finding}`);
    if (!supports.confidentiality || supports.maxPayloadBytes < LEAST_BYTES) return;
    const sealed = answers.flatMap(({ tokens = [] }) => readFirstTokens(tokens));
    expectThat(!sharedStream(sealed), `the first tokens of ${THREADS} worker threads share a key stream`);
  },
};

interface Thread {
  /** Resolves when the codec is ready or has failed. */
  readonly ready: Promise<unknown>;
  work(): Promise<WorkerAnswer>;
}

function startThread(module: string, seed: number): Thread {
  const worker = new Worker(scriptBeside(import.meta.url, 'scripts/worker'), {
    workerData: { module, seed },
    execArgv: [],
  });
  const answer = new Promise<WorkerAnswer>((resolve) => {
    worker.on('message', (message: WorkerAnswer | 'ready') => {
      if (message !== 'ready') resolve(message);
    });
    worker.on('error', (error: Error) => resolve({ finding: `${error.name} ended the thread` }));
    worker.on('exit', (code) => resolve({ finding: `the thread ended with code ${code}` }));
  });
  return {
    // The answer reports a thread that ends early.
    ready: Promise.race([once(worker, 'message').catch(() => undefined), answer]),
    async work() {
      worker.postMessage('begin', []);
      const answered = await answer;
      await worker.terminate();
      return answered;
    },
  };
}
