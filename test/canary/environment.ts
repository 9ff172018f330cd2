import { delimiter } from 'node:path';
import { fileURLToPath } from 'node:url';

const PLANT = new URL('plant.mjs', import.meta.url).href;
const PYTHON = fileURLToPath(new URL('python', import.meta.url));

const EVENTS = [
  'refresh',
  'rotation',
  'rotation-failed',
  'key-version',
  'kms-call',
  'store-call',
  'wrap',
  'unwrap',
  'conflict',
  'healed',
  'stale',
  'rejected',
  'state',
].map((name) => `sealring:${name}`);

/** The environment in which every process draws keys that begin with the mark. */
export function canaryEnvironment(mark: Uint8Array): NodeJS.ProcessEnv {
  const { NODE_OPTIONS = '', PYTHONPATH = '' } = process.env;
  return {
    ...process.env,
    SEALRING_CANARY: Buffer.from(mark).toString('hex'),
    SEALRING_CANARY_EVENTS: EVENTS.join(' '),
    NODE_OPTIONS: `${NODE_OPTIONS} --import=${PLANT}`.trim(),
    PYTHONPATH: [PYTHON, PYTHONPATH].filter(Boolean).join(delimiter),
  };
}
