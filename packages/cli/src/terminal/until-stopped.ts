import { setTimeout as pause } from 'node:timers/promises';

/** Whether the command of this process is a server, which runs until it is stopped. */
export function isServer(): boolean {
  return ['keeper', 'proxy'].includes(process.argv[2] ?? '');
}

let stop: AbortSignal | undefined;

/**
 * The signal that Ctrl-C and SIGTERM abort, so that the command can close the ring and overwrite its keys. A second
 * Ctrl-C or SIGTERM ends the process at once.
 */
export function stopSignal(): AbortSignal {
  stop ??= newStopSignal();
  return stop;
}

function newStopSignal(): AbortSignal {
  const controller = new AbortController();
  const names = ['SIGINT', 'SIGTERM'] as const;
  const abort = (): void => {
    for (const name of names) process.off(name, abort);
    controller.abort();
  };
  for (const name of names) process.on(name, abort);
  return controller.signal;
}

/** Waits for the given time. @returns false if the signal was aborted. */
export async function waits(ms: number, signal: AbortSignal): Promise<boolean> {
  try {
    await pause(ms, undefined, { signal });
    return true;
  } catch (error) {
    if (signal.aborted) return false;
    throw error;
  }
}
