import { Finding } from './requirement.ts';
import { describeThrown } from './thrown.ts';

/** Lists of stray errors, one for each requirement in progress. */
const listeners = new Set<string[]>();
let stopListening: (() => void) | undefined;

/**
 * Catches the stray errors of a target: unhandled rejections (an asynchronous codec causes thousands of them), errors
 * that are thrown in timers, and attempts to end the process. Without this, each of them would end the kit.
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

const rejected = (error: unknown): void => tell(`unhandled rejection: ${describeThrown(error)}`);
const thrown = (error: unknown): void => tell(`uncaught error: ${describeThrown(error)}`);

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
