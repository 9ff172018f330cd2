import { AsyncLocalStorage, createHook } from 'node:async_hooks';
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { setTimeout as pause } from 'node:timers/promises';
import { inspect } from 'node:util';
import { expectThat } from './requirement.ts';

const CONSOLE = ['log', 'info', 'warn', 'error', 'debug', 'trace', 'dir', 'table'];
/** Functions that write directly to a file descriptor or to a file, bypassing the streams. */
const WRITERS = ['write', 'writev', 'writeFile', 'appendFile'].flatMap((name) => [name, `${name}Sync`]);

/** The output of the process during the watch. */
export interface Output {
  printed(): string;
  bytes(): readonly Uint8Array[];
  stop(): void;
}

/**
 * Records what the process writes to its streams, its console, its file descriptors, and files.
 *
 * @param isShown - Whether the output is also printed. Set it if other code may be printing at the same time.
 */
export function watchOutput(isShown: boolean): Output {
  const texts: string[] = [];
  const bytes: Uint8Array[] = [];
  const { replace, restore } = replacing();
  const note = (word: unknown): void => {
    if (ArrayBuffer.isView(word)) bytes.push(new Uint8Array(word.buffer, word.byteOffset, word.byteLength).slice());
    else if (Array.isArray(word)) word.forEach(note);
    else texts.push(typeof word === 'string' ? word : inspect(word, { maxArrayLength: 1_000 }));
  };
  const watch = (holder: object, name: string, wordsOf = (given: readonly unknown[]) => given): void =>
    replace(holder, name, (given, original) => {
      wordsOf(given).forEach(note);
      return isShown || holder === fs ? original() : true;
    });
  for (const stream of [process.stdout, process.stderr]) watch(stream, 'write', ([word]) => [word]);
  // Under a test runner, the console may have its own stream.
  for (const name of CONSOLE) watch(console, name);
  watch(process, '_rawDebug');
  // With --no-warnings, a process does not print warnings, but its listeners still receive them.
  if (isShown) watch(process, 'emitWarning');
  for (const name of WRITERS) watch(fs, name, ([, word]) => [word]);
  syncBuiltinESMExports();
  return {
    printed: () => texts.join('\n'),
    bytes: () => bytes,
    stop: restore,
  };
}

/** What runs instead of a function; `original` calls the function with the same arguments. */
type Replacement = (given: readonly unknown[], original: () => unknown) => unknown;

/** Replaces functions of built-in modules and objects until `restore` is called. */
function replacing(): {
  readonly replace: (holder: object, name: string, call: Replacement) => void;
  readonly restore: () => void;
} {
  const undo: (() => void)[] = [];
  return {
    replace(holder, name, call) {
      const own = Object.getOwnPropertyDescriptor(holder, name);
      const original: unknown = Reflect.get(holder, name);
      if (typeof original !== 'function') return;
      const value = (...given: unknown[]): unknown => call(given, () => Reflect.apply(original, holder, given));
      Object.defineProperty(holder, name, { value, configurable: true, writable: true });
      undo.push(() => {
        if (own === undefined) Reflect.deleteProperty(holder, name);
        else Object.defineProperty(holder, name, own);
      });
    },
    restore() {
      for (const one of undo) one();
      syncBuiltinESMExports();
    },
  };
}

/** Number of instances after which listeners count as left behind by each of them. */
const INSTANCES = 3;

/** @throws {Finding} if every run of `work` leaves listeners on the process. */
export async function expectNoListeners(work: () => Promise<unknown>): Promise<void> {
  const counts: number[] = [];
  for (let i = 0; i < INSTANCES; i++) {
    await work();
    counts.push(process.eventNames().reduce((sum, name) => sum + process.listenerCount(name), 0));
  }
  const isGrowing = counts.every((count, i) => i === 0 || count > (counts[i - 1] ?? 0));
  expectThat(!isGrowing, 'every instance leaves listeners on the process');
}

/** The file descriptors of standard output and standard error. */
const STREAMS: readonly unknown[] = [1, 2];

/**
 * Expects that `work` prints nothing. Warnings of the process do not count, nor does the output of other code that runs
 * at the same time, such as a test runner.
 */
export async function expectQuiet(work: () => Promise<void>): Promise<void> {
  const mark = new AsyncLocalStorage<true>();
  const { replace, restore } = replacing();
  let count = 0;
  const watch = (holder: object, name: string, isOutput: (where: unknown) => boolean = () => true): void =>
    replace(holder, name, (given, original) => {
      if (mark.getStore() === true && isOutput(given[0])) count++;
      return original();
    });
  for (const stream of [process.stdout, process.stderr]) watch(stream, 'write');
  for (const name of CONSOLE) watch(console, name);
  replace(process, 'emitWarning', (_, original) => mark.exit(original));
  for (const name of WRITERS) watch(fs, name, (where) => STREAMS.includes(where));
  syncBuiltinESMExports();
  try {
    await mark.run(true, work);
    await pause(PAUSE_MS);
  } finally {
    restore();
  }
  expectThat(count === 0, `the calls wrote to the output ${count} times`);
}

/** Timers may still end, so they are checked up to this many times, with pauses in milliseconds. */
const LOOKS = 10;
const PAUSE_MS = 100;

const TIMERS: ReadonlySet<string> = new Set(['Timeout', 'Immediate']);
/**
 * Types of handles that keep the process alive until they are closed. Sockets are left out, because an agent may reuse
 * them.
 */
const HANDLES: ReadonlySet<string> = new Set(
  'MESSAGEPORT FSEVENTWRAP STATWATCHER PROCESSWRAP TCPSERVERWRAP UDPWRAP'.split(' '),
);

/** Records only the timers and handles that `work` starts, since a test runner has its own. */
export function watchTimers(): {
  run<T>(work: () => T): T;
  left(which?: 'alive' | 'all'): readonly string[];
  stop(): void;
} {
  const mark = new AsyncLocalStorage<true>();
  const started: { readonly type: string; readonly resource: object }[] = [];
  const hook = createHook({
    init(_id, type, _trigger, resource) {
      if ((TIMERS.has(type) || HANDLES.has(type)) && mark.getStore() === true) started.push({ type, resource });
    },
  });
  hook.enable();
  return {
    run: (work) => mark.run(true, work),
    /**
     * The types of the timers and handles that have not ended: by default, only those that keep the process alive;
     * otherwise, all timers.
     */
    left: (which = 'alive') =>
      started.flatMap(({ type, resource }) => {
        const isLeft = which === 'all' ? TIMERS.has(type) : isAlive(resource);
        return isLeft && !hasEnded(resource) ? [type] : [];
      }),
    stop: () => void hook.disable(),
  };
}

function hasEnded(resource: object): boolean {
  return Reflect.get(resource, '_destroyed') === true;
}

/** Whether a timer or a handle keeps the process alive. A closed handle does not. */
function isAlive(resource: object): boolean {
  const hasRef: unknown = Reflect.get(resource, 'hasRef');
  return typeof hasRef !== 'function' || Reflect.apply(hasRef, resource, []) === true;
}

/** @throws {Finding} if timers or handles that keep the process alive do not end soon. */
export async function expectNoTimers(work: () => Promise<void>): Promise<void> {
  const watched = watchTimers();
  try {
    await watched.run(work);
    for (let look = 1; watched.left().length > 0 && look < LOOKS; look++) await pause(PAUSE_MS);
    const left = watched.left();
    const types = [...new Set(left)].join(', ');
    expectThat(left.length === 0, `${left.length} timers or handles keep the process alive after close: ${types}`);
  } finally {
    watched.stop();
  }
}
