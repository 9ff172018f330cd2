import { around } from './around.ts';

export const target = around('ends the process', () => process.exit(0));
