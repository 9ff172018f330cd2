import { counted } from './counted.ts';

export const target = counted('counts nonces', 0);
