import { around } from './around.ts';

export const target = around('changes the folder', () => {
  process.chdir('/');
});
