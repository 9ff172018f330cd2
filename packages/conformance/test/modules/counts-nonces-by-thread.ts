import { threadId } from 'node:worker_threads';
import { counted } from './counted.ts';

// Processes have threads of the same numbers.
export const target = counted('counts nonces, by thread', threadId);
