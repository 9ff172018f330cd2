import { counted } from './counted.ts';

// Threads of one process have the same number.
export const target = counted('counts nonces, by process', process.pid);
