import { setTimeout as pause } from 'node:timers/promises';

/**
 * Waits for a condition. `expect.poll` cannot replace it, because it belongs to one test at a time.
 *
 * @param seconds - Longest wait. Default 10.
 * @throws {Error} with the text of the condition, if it is still false then.
 */
export async function until(condition: () => boolean | Promise<boolean>, seconds = 10): Promise<void> {
  const end = performance.now() + seconds * 1_000;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`not within ${seconds} s: ${String(condition)}`);
    await pause(20);
  }
}
