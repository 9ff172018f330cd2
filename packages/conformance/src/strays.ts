import { Finding } from './requirement.ts';
import { describeThrown } from './thrown.ts';

/** Where strays are collected: one list for each requirement that is being tried. */
const listeners = new Set<string[]>();
let stopListening: (() => void) | undefined;

/**
 * What a target does besides answering: rejections that nobody handles (an asynchronous codec makes them by the
 * thousand), errors thrown out of timers, and attempts to end the process. Each would be the end of the kit.
 */
export function catchStrays(): { settle(): Promise<void>; first(): unknown; stop(): void } {
  const seen: string[] = [];
  listeners.add(seen);
  stopListening ??= listen();
  return {
    settle: () => new Promise((resolve) => setImmediate(resolve)),
    first: () => (seen[0] === undefined ? undefined : new Finding(seen[0])),
    stop() {
      listeners.delete(seen);
      if (listeners.size > 0) return;
      stopListening?.();
      stopListening = undefined;
    },
  };
}

function tell(what: string): void {
  for (const seen of listeners) seen.push(what);
}

const rejected = (error: unknown): void => tell(`a promise was rejected without a handler: ${describeThrown(error)}`);
const thrown = (error: unknown): void => tell(`an error was thrown outside any call: ${describeThrown(error)}`);

function refuseToEnd(): never {
  tell('process.exit was called');
  throw new Finding('process.exit was called');
}

function listen(): () => void {
  const exit = Object.getOwnPropertyDescriptor(process, 'exit') ?? {};
  process.on('unhandledRejection', rejected);
  process.on('uncaughtException', thrown);
  Object.defineProperty(process, 'exit', { ...exit, value: refuseToEnd });
  return () => {
    process.off('unhandledRejection', rejected);
    process.off('uncaughtException', thrown);
    Object.defineProperty(process, 'exit', exit);
  };
}
