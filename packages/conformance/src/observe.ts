import childProcess from 'node:child_process';
import dgram from 'node:dgram';
import dns from 'node:dns';
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import net from 'node:net';
import { expectThat } from './requirement.ts';
import { watchTimers } from './watch.ts';

/** Traces that a codec leaves in its process. */
export interface LeftBehind {
  readonly resources: readonly string[];
  /**
   * Names of globals, members of built-ins, environment variables, listeners and settings of the process that
   * changed.
   */
  readonly globals: readonly string[];
  /** Names of the functions that it called to access files, programs or services. */
  readonly calls: readonly string[];
}

/** Environment variables that a codec may set, with values that no codec would choose. */
const ENVIRONMENT: Readonly<Record<string, string>> = { TZ: 'Etc/GMT+7', LANG: 'tlh', LC_ALL: 'tlh' };
const EXIT_CODE = 3;

/** Objects with many functions, of which only the one named here is observed. */
const ONLY: ReadonlyMap<object, string> = new Map<object, string>([
  [globalThis, 'fetch'],
  [process, 'emitWarning'],
]);

/** Runs `use` twice and compares the process before and after. @param since - Globals before the module was loaded. */
export function observe(use: () => void, since: ReadonlyMap<string, unknown> = globalsNow()): LeftBehind {
  const before = process.getActiveResourcesInfo();
  const watched = watchTimers();
  let seen: Spied = { calls: [], replaced: [] };
  try {
    watched.run(() => (seen = spied(use)));
  } finally {
    watched.stop();
  }
  const timers = watched.left('all');
  return {
    // An unreferenced timer does not keep the process alive, but it also counts.
    resources: [...timers, ...leftOver(before, process.getActiveResourcesInfo(), timers)],
    globals: [...new Set([...changes(since, globals()), ...seen.replaced, ...overwritten(use)])],
    calls: seen.calls,
  };
}

/** Everything that a codec can change in its process, by name. */
export function globalsNow(): ReadonlyMap<string, unknown> {
  loadGlobals();
  return globals();
}

interface Spied {
  readonly calls: readonly string[];
  readonly replaced: readonly string[];
}

/** Names of the Node functions that `use` calls to affect anything outside the process, or that it replaces. */
function spied(use: () => void): Spied {
  const called = new Set<string>();
  const replaced: string[] = [];
  const restore: (() => void)[] = [];
  const holders = { fs, 'fs.promises': fs.promises, child_process: childProcess, dgram, dns, net, process, globalThis };
  for (const [holder, object] of Object.entries(holders)) {
    for (const [name, descriptor] of Object.entries(Object.getOwnPropertyDescriptors(object))) {
      const original: unknown = descriptor.value;
      const isOne = typeof original === 'function' && /^[a-z]/.test(name) && descriptor.configurable === true;
      const only = ONLY.get(object);
      if (!isOne || (only !== undefined && name !== only)) continue;
      const value = function (this: unknown, ...given: unknown[]): unknown {
        called.add(`${holder}.${name}`);
        return Reflect.apply(original, this, given);
      };
      Object.defineProperty(object, name, { ...descriptor, value: Object.assign(value, original) });
      restore.push(() => {
        if (ownValue(object, name) !== value) replaced.push(`${holder}.${name}`);
        Object.defineProperty(object, name, descriptor);
      });
    }
  }
  syncBuiltinESMExports();
  try {
    use();
  } finally {
    for (const undo of restore) undo();
    syncBuiltinESMExports();
  }
  return { calls: [...called], replaced };
}

/** Names of variables that `use` sets to the value they already have, which a comparison does not show. */
function overwritten(use: () => void): readonly string[] {
  const { exitCode } = process;
  const before = Object.keys(ENVIRONMENT).map((name) => [name, process.env[name]] as const);
  Object.assign(process.env, ENVIRONMENT);
  process.exitCode = EXIT_CODE;
  try {
    use();
    const variables = Object.entries(ENVIRONMENT).filter(([name, value]) => process.env[name] !== value);
    const names = variables.map(([name]) => `process.env.${name}`);
    return process.exitCode === EXIT_CODE ? names : [...names, 'process.exitCode'];
  } finally {
    process.exitCode = exitCode;
    for (const [name, value] of before) {
      if (value === undefined) Reflect.deleteProperty(process.env, name);
      else process.env[name] = value;
    }
  }
}

function leftOver(before: readonly string[], after: readonly string[], told: readonly string[]): readonly string[] {
  const rest = [...before, ...told];
  return after.filter((resource) => {
    const at = rest.indexOf(resource);
    if (at < 0) return true;
    rest.splice(at, 1);
    return false;
  });
}

/** Reads every built-in once, since Node creates some of them on first access. */
function loadGlobals(): void {
  for (const name of Object.getOwnPropertyNames(globalThis)) if (/^[A-Z]/.test(name)) Reflect.get(globalThis, name);
}

/** Built-ins by name, with the properties that a patch changes. */
function globals(): Map<string, unknown> {
  const seen = new Map<string, unknown>();
  for (const name of Reflect.ownKeys(globalThis)) {
    // Skips the symbols of Node's own fetch, which may initialize itself at any time.
    if (String(name).startsWith('Symbol(undici.')) continue;
    const isBuiltIn = typeof name === 'string' && /^[A-Z]/.test(name);
    const value: unknown = isBuiltIn ? Reflect.get(globalThis, name) : ownValue(globalThis, name);
    seen.set(String(name), value);
    if (typeof name !== 'string' || !/^(?:[A-Z]|console$|crypto$|performance$)/.test(name)) continue;
    addMembers(seen, name, value);
    addMembers(seen, `${name}.prototype`, typeof value === 'function' ? ownValue(value, 'prototype') : undefined);
  }
  for (const [name, value] of Object.entries(INTRINSICS)) addMembers(seen, `${name}.prototype`, value);
  for (const [name, value] of Object.entries(process.env)) seen.set(`process.env.${name}`, value);
  for (const name of Object.keys(process).filter((one) => !one.startsWith('_'))) {
    seen.set(`process.${name}`, ownValue(process, name));
  }
  const { exitCode, title } = process;
  const settings = {
    exitCode,
    title,
    umask: process.umask(),
    cwd: folder(),
    maxListeners: process.getMaxListeners(),
    marks: performance.getEntriesByType('mark').length,
  };
  for (const [name, value] of Object.entries(settings)) seen.set(`process.${name}`, value);
  for (const event of process.eventNames()) seen.set(`process.on ${String(event)}`, process.listenerCount(event));
  return seen;
}

function folder(): string {
  try {
    return process.cwd();
  } catch {
    return 'removed';
  }
}

function addMembers(seen: Map<string, unknown>, name: string, holder: unknown): void {
  if ((typeof holder !== 'object' && typeof holder !== 'function') || holder === null) return;
  for (const member of Reflect.ownKeys(holder)) seen.set(`${name}.${String(member)}`, ownValue(holder, member));
}

/** Reads a member without running a getter, which may create the value: returns the getter instead. */
function ownValue(holder: object, name: PropertyKey): unknown {
  const descriptor = Object.getOwnPropertyDescriptor(holder, name) ?? {};
  return Reflect.get(descriptor, 'get' in descriptor ? 'get' : 'value');
}

/** Built-ins that many others inherit from, and that have no global name. */
const INTRINSICS: Readonly<Record<string, object>> = {
  TypedArray: Reflect.getPrototypeOf(Uint8Array.prototype) ?? {},
  Iterator: Reflect.getPrototypeOf(Reflect.getPrototypeOf([].values()) ?? {}) ?? {},
  AsyncFunction: Reflect.getPrototypeOf(async () => undefined) ?? {},
  Generator: Reflect.getPrototypeOf(function* () {}) ?? {},
};

/** The members of built-ins and their prototypes, for a later comparison with {@link patches}. */
export function builtIns(): ReadonlyMap<string, unknown> {
  loadGlobals();
  return new Map([...globals()].filter(([name]) => /^(?:[A-Z]\w*\.|[a-z]\w*$)/.test(name)));
}

/** The names of the members of built-ins that changed. */
export function patches(before: ReadonlyMap<string, unknown>): readonly string[] {
  return changes(before, builtIns());
}

/** The built-ins when the first requirement of a target began: a call may change them only once. */
const atFirst = new WeakMap<object, ReadonlyMap<string, unknown>>();

/** Records the built-ins for {@link expectNoPatches}, unless they were recorded for this target before. */
export function noteBuiltIns(target: object): void {
  if (!atFirst.has(target)) atFirst.set(target, builtIns());
}

/** @throws {Finding} if `work` or an earlier requirement of the target has changed a member of a built-in object. */
export async function expectNoPatches(target: object, work: () => Promise<void>): Promise<void> {
  await work();
  const changed = patches(atFirst.get(target) ?? builtIns());
  expectThat(changed.length === 0, `changed: ${changed.slice(0, 5).join(', ')}`);
}

function changes(before: ReadonlyMap<string, unknown>, after: ReadonlyMap<string, unknown>): readonly string[] {
  const names = new Set([...before.keys(), ...after.keys()]);
  return [...names].filter(
    (name) => before.has(name) !== after.has(name) || !Object.is(before.get(name), after.get(name)),
  );
}
