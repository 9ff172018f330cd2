import { around } from './around.ts';

export const target = around('changes the environment', () => {
  process.env['LAST_SEAL'] = 'now';
});
