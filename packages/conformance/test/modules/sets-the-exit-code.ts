import { around } from './around.ts';

export const target = around('sets the exit code', () => {
  process.exitCode = 0;
});
