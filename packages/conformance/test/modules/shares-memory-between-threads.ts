import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads';
import { around } from './around.ts';

// All threads of a process share memory with the last payload.
const shared = (getEnvironmentData('last') as SharedArrayBuffer | undefined) ?? new SharedArrayBuffer(32);
setEnvironmentData('last', shared);
const last = new Uint8Array(shared);

export const target = around(
  'shares memory between threads',
  (payload) => last.set(payload.subarray(0, 32)),
  (payload) => Uint8Array.from(payload.length === 32 ? last : payload),
);
