/* Runs in a worker thread: creates the codec of a module and uses it, while other threads do the same. */
import { once } from 'node:events';
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { sameBytes } from '../../bytes.ts';
import { loadTarget } from '../../target-module.ts';
import { firstTokens, type WorkerAnswer } from '../processes.ts';
import { checkCodecTarget } from '../target.ts';
import { CodecTrial } from '../trial.ts';

const ROUNDS = 300;
/** Longer than a scheduler time slice, in milliseconds, so that other threads run in between. */
const LEAST_MS = 300;
const port = parentPort as MessagePort;
const { module, seed } = workerData as { readonly module: string; readonly seed: number };

async function work(): Promise<WorkerAnswer> {
  const target = await loadTarget(module);
  checkCodecTarget('runCodecConformance', target);
  const trial = new CodecTrial(target, seed);
  const codec = await trial.create();
  const length = Math.min(32, trial.supports.maxPayloadBytes);
  const tokens = firstTokens(trial, codec);
  const begin = once(port, 'message');
  port.postMessage('ready', []);
  await begin;
  const began = performance.now();
  for (let round = 0; round < ROUNDS || performance.now() - began < LEAST_MS; round++) {
    const payload = trial.random.bytes(length);
    const token = trial.seal(codec, payload);
    // Lets other threads run between seal and unseal.
    await new Promise((resolve) => setImmediate(resolve));
    if (!sameBytes(trial.unseal(codec, token), payload)) return { finding: 'a token unsealed to a different payload' };
  }
  await trial.close();
  return { tokens };
}

work().then(
  (answer) => port.postMessage(answer, []),
  (error: unknown) => port.postMessage({ finding: error instanceof Error ? error.message : 'it threw' }, []),
);
