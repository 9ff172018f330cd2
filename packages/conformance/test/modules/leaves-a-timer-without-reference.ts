import { around } from './around.ts';

export const target = around(
  'leaves a timer without reference',
  () => void setInterval(() => undefined, 60_000).unref(),
);
