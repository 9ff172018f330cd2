import { counted } from './counted.ts';

// Threads of one process share the process id.
export const target = counted('counts nonces, by process', process.pid);
