import { Worker } from 'node:worker_threads';
import { type Check, expectThat, NotApplicable } from '../requirement.ts';
import { scriptBeside } from '../target-module.ts';
import type { CodecTrial } from './trial.ts';
import type { WorkerAnswer } from './worker.ts';

const THREADS = 3;

/** Codecs in threads of one process. */
export const WORKER_CHECKS: readonly Check<CodecTrial>[] = [
  {
    id: 'CODEC-WORKERS',
    async run({ subject: { module }, random }) {
      if (module === undefined) throw new NotApplicable('the target was not given as a module');
      const answers = await Promise.all(Array.from({ length: THREADS }, () => workIn(module, random.below(2 ** 31))));
      const finding = answers.find((answer) => answer.finding !== undefined)?.finding;
      expectThat(finding === undefined, `in one of ${THREADS} worker threads: ${finding}`);
    },
  },
];

async function workIn(module: string, seed: number): Promise<WorkerAnswer> {
  const worker = new Worker(scriptBeside(import.meta.url, 'worker'), { workerData: { module, seed }, execArgv: [] });
  try {
    return await new Promise<WorkerAnswer>((resolve) => {
      worker.on('message', resolve);
      worker.on('error', (error: Error) => resolve({ finding: `${error.name} ended the thread` }));
      worker.on('exit', (code) => resolve({ finding: `the thread ended with code ${code}` }));
    });
  } finally {
    await worker.terminate();
  }
}
