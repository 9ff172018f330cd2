import { around } from './around.ts';

export const target = around('patches the process', () => {
  process.emitWarning = () => undefined;
});
