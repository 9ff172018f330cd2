import { createHook } from 'node:async_hooks';

/** What using a codec left behind in the process. */
export interface LeftBehind {
  /** Timers, immediates, sockets and other handles, by their names. */
  readonly resources: readonly string[];
  /** Globals, members of built-ins, environment variables and listeners that are others than before, by their names. */
  readonly globals: readonly string[];
}

/** Runs `use` and looks at the process before and after. */
export function observe(use: () => void): LeftBehind {
  loadGlobals();
  const before = { resources: process.getActiveResourcesInfo(), globals: globals() };
  const timers = watchTimers(use);
  return {
    // A timer without a reference keeps no process alive, and is left behind all the same.
    resources: [...timers, ...leftOver(before.resources, process.getActiveResourcesInfo(), timers)],
    globals: changes(before.globals, globals()),
  };
}

/** The timers and immediates that `use` started and did not take back. */
function watchTimers(use: () => void): readonly string[] {
  const started: { readonly type: string; readonly resource: object }[] = [];
  const hook = createHook({
    init(_id, type, _trigger, resource) {
      if (type === 'Timeout' || type === 'Immediate') started.push({ type, resource });
    },
  });
  hook.enable();
  try {
    use();
  } finally {
    hook.disable();
  }
  return started.filter(({ resource }) => Reflect.get(resource, '_destroyed') !== true).map(({ type }) => type);
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

/** Asks for every built-in once: Node makes some of them when they are first asked for. */
function loadGlobals(): void {
  for (const name of Object.getOwnPropertyNames(globalThis)) if (/^[A-Z]/.test(name)) Reflect.get(globalThis, name);
}

/** Built-ins by name, and what of each is changed when somebody patches it. */
function globals(): Map<string, unknown> {
  const seen = new Map<string, unknown>();
  for (const name of Reflect.ownKeys(globalThis)) {
    // Node's own fetch, which makes itself ready when it likes.
    if (String(name).startsWith('Symbol(undici.')) continue;
    const isBuiltIn = typeof name === 'string' && /^[A-Z]/.test(name);
    const value: unknown = isBuiltIn ? Reflect.get(globalThis, name) : ownValue(globalThis, name);
    seen.set(String(name), value);
    if (typeof name !== 'string' || !/^(?:[A-Z]|console$|crypto$|performance$)/.test(name)) continue;
    addMembers(seen, name, value);
    addMembers(seen, `${name}.prototype`, typeof value === 'function' ? ownValue(value, 'prototype') : undefined);
  }
  for (const [name, value] of Object.entries(process.env)) seen.set(`process.env.${name}`, value);
  seen.set('process.exitCode', process.exitCode);
  for (const event of process.eventNames()) seen.set(`process.on ${String(event)}`, process.listenerCount(event));
  return seen;
}

function addMembers(seen: Map<string, unknown>, name: string, holder: unknown): void {
  if ((typeof holder !== 'object' && typeof holder !== 'function') || holder === null) return;
  for (const member of Reflect.ownKeys(holder)) seen.set(`${name}.${String(member)}`, ownValue(holder, member));
}

/** Without running a getter: some are made when they are first asked for. */
function ownValue(holder: object, name: PropertyKey): unknown {
  return Object.getOwnPropertyDescriptor(holder, name)?.value;
}

function changes(before: ReadonlyMap<string, unknown>, after: ReadonlyMap<string, unknown>): readonly string[] {
  const names = new Set([...before.keys(), ...after.keys()]);
  return [...names].filter(
    (name) => before.has(name) !== after.has(name) || !Object.is(before.get(name), after.get(name)),
  );
}
