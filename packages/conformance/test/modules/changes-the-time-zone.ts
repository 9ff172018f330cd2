import { around } from './around.ts';

export const target = around('changes the time zone', () => {
  process.env['TZ'] = 'Asia/Tokyo';
});
