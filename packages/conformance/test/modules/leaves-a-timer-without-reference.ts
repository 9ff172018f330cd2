import { around } from './around.ts';

export const target = around('leaves an unreferenced timer', () => void setInterval(() => undefined, 60_000).unref());
