import { AsyncLocalStorage, createHook } from 'node:async_hooks';
import { randomBytes } from 'node:crypto';
import { getEventListeners } from 'node:events';
import { expect, test, vi } from 'vitest';
import { createKmsCodec } from '../../src/codec/kms-codec.ts';
import { localKeyWrapper } from '../../src/kms/local-key-wrapper.ts';
import { memoryRing } from '../../src/stores/memory-ring.ts';

test('an aborted signal ends a start with its reason, and does not affect a codec that has started', async () => {
  const ring = memoryRing();
  const close = vi.fn<() => Promise<void>>();
  const keyWrapper = { ...localKeyWrapper({ masterKey: randomBytes(32) }), close };
  const hanging = { ...ring, location: 's3://ring', read: () => new Promise<never>(() => undefined) };
  const controller = new AbortController();
  const { signal } = controller;
  const starting = createKmsCodec({ keyWrapper, ring: hanging, signal, closeKeyWrappers: true });
  const codec = await createKmsCodec({ keyWrapper, ring, signal });
  controller.abort(new Error('the process ends'));
  await expect(starting).rejects.toThrow('the process ends');
  expect(getEventListeners(signal, 'abort')).toEqual([]);
  expect(close).toHaveBeenCalledTimes(1);
  await codec.refresh();
  await codec.close();
  expect(close).toHaveBeenCalledTimes(1);
  await expect(createKmsCodec({ keyWrapper, ring, signal })).rejects.toThrow('the process ends');
});

test('a call that is awaited keeps the process alive until it ends, and close accepts a key wrapper without close', async () => {
  // The test runner has timers of its own: only those of the call count.
  const started: NodeJS.Timeout[] = [];
  const call = new AsyncLocalStorage<true>();
  const hook = createHook({
    init(_id, type, _trigger, resource) {
      if (type === 'Timeout' && call.getStore() === true) started.push(resource as NodeJS.Timeout);
    },
  });
  // A timer that has ended may still have a reference.
  const hasEnded = (timer: object): boolean => Reflect.get(timer, '_destroyed') === true;
  const keepingAlive = (): number => started.filter((timer) => timer.hasRef() && !hasEnded(timer)).length;
  const keyWrapper = localKeyWrapper({ masterKey: randomBytes(32) });
  const codec = await createKmsCodec({ keyWrapper, ring: memoryRing(), closeKeyWrappers: true });
  hook.enable();
  const refreshed = call.run(true, () => codec.refresh());
  expect(keepingAlive()).toBe(1);
  await refreshed;
  expect(keepingAlive()).toBe(0);
  hook.disable();
  await codec.close();
});
