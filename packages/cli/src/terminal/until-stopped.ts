import { setTimeout as pause } from 'node:timers/promises';

/** A signal that Ctrl-C and SIGTERM abort, so that the command can close the ring and overwrite its keys. */
export function stopSignal(): AbortSignal {
  const controller = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => controller.abort());
  return controller.signal;
}

/** Waits. @returns false if the signal was aborted. */
export async function waits(ms: number, signal: AbortSignal): Promise<boolean> {
  try {
    await pause(ms, undefined, { signal });
    return true;
  } catch (error) {
    if (signal.aborted) return false;
    throw error;
  }
}
