import { AsyncLocalStorage, createHook } from 'node:async_hooks';
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { setTimeout as pause } from 'node:timers/promises';
import { inspect } from 'node:util';
import { expectThat } from './requirement.ts';

const CONSOLE = ['log', 'info', 'warn', 'error', 'debug', 'trace', 'dir', 'table'];
/** What writes to a descriptor, past the streams. */
const WRITERS = ['write', 'writev', 'writeFile', 'appendFile'].flatMap((name) => [name, `${name}Sync`]);

/** What was written while it was watched. */
export interface Output {
  printed(): string;
  bytes(): readonly Uint8Array[];
  stop(): void;
}

/**
 * Notes what the process prints, by its streams, its console or its descriptors, and what it writes to files.
 *
 * @param isShown - Whether it is printed all the same: others may be printing, too.
 */
export function watchOutput(isShown: boolean): Output {
  const texts: string[] = [];
  const bytes: Uint8Array[] = [];
  const restore: (() => void)[] = [];
  const note = (word: unknown): void => {
    if (ArrayBuffer.isView(word)) bytes.push(new Uint8Array(word.buffer, word.byteOffset, word.byteLength).slice());
    else if (Array.isArray(word)) word.forEach(note);
    else texts.push(typeof word === 'string' ? word : inspect(word, { maxArrayLength: 1_000 }));
  };
  const watch = (holder: object, name: string, wordsOf = (given: readonly unknown[]) => given): void => {
    const own = Object.getOwnPropertyDescriptor(holder, name);
    const original: unknown = Reflect.get(holder, name);
    if (typeof original !== 'function') return;
    const value = (...given: unknown[]): unknown => {
      wordsOf(given).forEach(note);
      return isShown || holder === fs ? Reflect.apply(original, holder, given) : true;
    };
    Object.defineProperty(holder, name, { value, configurable: true, writable: true });
    restore.push(() => {
      if (own === undefined) Reflect.deleteProperty(holder, name);
      else Object.defineProperty(holder, name, own);
    });
  };
  for (const stream of [process.stdout, process.stderr]) watch(stream, 'write', ([word]) => [word]);
  // A console may have a stream of its own, as under a test runner.
  for (const name of CONSOLE) watch(console, name);
  watch(process, '_rawDebug');
  for (const name of WRITERS) watch(fs, name, ([, word]) => [word]);
  syncBuiltinESMExports();
  return {
    printed: () => texts.join('\n'),
    bytes: () => bytes,
    stop: () => {
      for (const undo of restore) undo();
      syncBuiltinESMExports();
    },
  };
}

/** What ends soon is not left behind: it is looked at again and again. */
const LOOKS = 10;
const PAUSE_MS = 100;

/** Notes the timers that some work starts, and nobody else’s: a test runner has its own. */
export function watchTimers(): {
  run<T>(work: () => T): T;
  left(which?: 'alive' | 'all'): readonly string[];
  stop(): void;
} {
  const mark = new AsyncLocalStorage<true>();
  const started: { readonly type: string; readonly timer: object }[] = [];
  const hook = createHook({
    init(_id, type, _trigger, resource) {
      if ((type === 'Timeout' || type === 'Immediate') && mark.getStore() === true)
        started.push({ type, timer: resource });
    },
  });
  hook.enable();
  return {
    run: (work) => mark.run(true, work),
    /** The types of those that have not ended: the ones that keep the process alive, unless all are wanted. */
    left: (which = 'alive') =>
      started.flatMap(({ type, timer }) => (hasEnded(timer) || (which === 'alive' && !isAlive(timer)) ? [] : [type])),
    stop: () => void hook.disable(),
  };
}

function hasEnded(timer: object): boolean {
  return Reflect.get(timer, '_destroyed') === true;
}

function isAlive(timer: object): boolean {
  const hasRef: unknown = Reflect.get(timer, 'hasRef');
  return typeof hasRef !== 'function' || Reflect.apply(hasRef, timer, []) === true;
}

/** @throws {Finding} where timers that keep the process alive are left for longer than what ends soon takes. */
export async function expectNoTimers(work: () => Promise<void>): Promise<void> {
  const watched = watchTimers();
  try {
    await watched.run(work);
    for (let look = 1; watched.left().length > 0 && look < LOOKS; look++) await pause(PAUSE_MS);
    const { length } = watched.left();
    expectThat(length === 0, `${length} timers keep the process alive after close`);
  } finally {
    watched.stop();
  }
}
