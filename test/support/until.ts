import { setTimeout as pause } from 'node:timers/promises';

/** Waits for a condition, 10 s at most. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  for (let waited = 0; waited < 10_000 && !(await condition()); waited += 20) await pause(20);
}
