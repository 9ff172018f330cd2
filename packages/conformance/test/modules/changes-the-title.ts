import { around } from './around.ts';

export const target = around('changes the title', () => {
  process.title = 'sealing';
});
