import { setTimeout as pause } from 'node:timers/promises';

/** Aborted by Ctrl-C: the ring is closed then, and its keys are overwritten. */
export function stopSignal(): AbortSignal {
  const controller = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => controller.abort());
  return controller.signal;
}

/** Waits, and says whether to go on: not once the signal is aborted. */
export async function waits(ms: number, signal: AbortSignal): Promise<boolean> {
  try {
    await pause(ms, undefined, { signal });
    return true;
  } catch (error) {
    if (signal.aborted) return false;
    throw error;
  }
}
