import { writeSync } from 'node:fs';
import { around } from './around.ts';

export const target = around('prints past the console', () => void writeSync(2, 'sealing'));
