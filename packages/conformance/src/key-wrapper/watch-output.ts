import { inspect } from 'node:util';

const CONSOLE = ['log', 'info', 'warn', 'error', 'debug'] as const;

/** Notes what the process prints, and prints it: others may be printing, too. */
export function watchOutput(): { printed(): string; stop(): void } {
  const seen: string[] = [];
  const restore: (() => void)[] = [];
  const watch = (holder: object, name: string): void => {
    const own = Object.getOwnPropertyDescriptor(holder, name);
    const original: unknown = Reflect.get(holder, name);
    if (typeof original !== 'function') return;
    const value = (...words: unknown[]): unknown => {
      seen.push(...words.map((word) => (typeof word === 'string' ? word : inspect(word, { maxArrayLength: 1_000 }))));
      return Reflect.apply(original, holder, words);
    };
    Object.defineProperty(holder, name, { value, configurable: true, writable: true });
    restore.push(() => {
      if (own === undefined) Reflect.deleteProperty(holder, name);
      else Object.defineProperty(holder, name, own);
    });
  };
  watch(process.stdout, 'write');
  watch(process.stderr, 'write');
  // A console may have a stream of its own, as under a test runner.
  for (const name of CONSOLE) watch(console, name);
  return {
    printed: () => seen.join('\n'),
    stop: () => {
      for (const undo of restore) undo();
    },
  };
}
