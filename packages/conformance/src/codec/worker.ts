/* Runs in a worker thread: makes the codec of a module and uses it, while others do the same. */
import { parentPort, workerData } from 'node:worker_threads';
import { loadTarget } from '../target-module.ts';
import { readCodecTarget } from './target.ts';
import { CodecTrial, sameBytes } from './trial.ts';

/** What a thread found. */
export interface WorkerAnswer {
  /** What went wrong, if anything did. */
  readonly finding?: string;
}

const ROUNDS = 300;
const { module, seed } = workerData as { readonly module: string; readonly seed: number };

async function work(): Promise<WorkerAnswer> {
  const trial = new CodecTrial(readCodecTarget('runCodecConformance', (await loadTarget(module)) as never), seed);
  const codec = await trial.create();
  const length = Math.min(32, trial.subject.supports.maxPayloadBytes);
  for (let round = 0; round < ROUNDS; round++) {
    const payload = trial.random.bytes(length);
    const token = trial.seal(codec, payload);
    // Others have their turn between the two.
    await new Promise((resolve) => setImmediate(resolve));
    if (!sameBytes(trial.unseal(codec, token), payload)) return { finding: 'a token opened to another payload' };
  }
  await trial.close();
  return {};
}

work().then(
  (answer) => parentPort?.postMessage(answer, []),
  (error: unknown) => parentPort?.postMessage({ finding: error instanceof Error ? error.message : 'it threw' }, []),
);
