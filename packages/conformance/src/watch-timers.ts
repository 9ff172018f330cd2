import { AsyncLocalStorage, createHook } from 'node:async_hooks';

/** Notes the timers that some work starts, and nobody else’s: a test runner has its own. */
export function watchTimers(): { run<T>(work: () => T): T; left(): number; stop(): void } {
  const mark = new AsyncLocalStorage<true>();
  const started: object[] = [];
  const hook = createHook({
    init(_id, type, _trigger, resource) {
      if ((type === 'Timeout' || type === 'Immediate') && mark.getStore() === true) started.push(resource);
    },
  });
  hook.enable();
  return {
    run: (work) => mark.run(true, work),
    /** Those that keep the process alive. */
    left: () => started.filter(isAlive).length,
    stop: () => void hook.disable(),
  };
}

function isAlive(timer: object): boolean {
  const hasRef: unknown = Reflect.get(timer, 'hasRef');
  const keepsAlive = typeof hasRef !== 'function' || Reflect.apply(hasRef, timer, []) === true;
  return keepsAlive && Reflect.get(timer, '_destroyed') !== true;
}
