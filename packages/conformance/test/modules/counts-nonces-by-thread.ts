import { threadId } from 'node:worker_threads';
import { counted } from './counted.ts';

// Thread ids repeat in every process.
export const target = counted('counts nonces, by thread', threadId);
