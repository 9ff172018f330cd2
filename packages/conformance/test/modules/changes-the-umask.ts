import { around } from './around.ts';

export const target = around('changes the umask', () => {
  process.umask(0o77);
});
