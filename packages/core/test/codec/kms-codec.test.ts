import { AsyncLocalStorage, createHook } from 'node:async_hooks';
import { randomBytes } from 'node:crypto';
import { getEventListeners } from 'node:events';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createKmsCodec } from '../../src/codec/kms-codec.ts';
import { RingStoreError } from '../../src/contracts/ring-store.ts';
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

test('a key wrapper that does not close delays the error of a failed start, and close, by two seconds', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const close = vi.fn<() => Promise<void>>(() => new Promise(() => undefined));
  const keyWrapper = { ...localKeyWrapper({ masterKey: randomBytes(32) }), close };
  const options = { keyWrapper, closeKeyWrappers: true, create: 'now' } as const;
  const read = (): Promise<never> => Promise.reject(new RingStoreError('denied', 'no permission'));
  const starting = createKmsCodec({ ...options, ring: { ...memoryRing(), read } });
  const failed = starting.catch((error: unknown) => error);
  await expect.poll(() => close.mock.calls.length).toBe(1);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(await failed).toMatchObject({ kind: 'denied' });
  const codec = await createKmsCodec({ ...options, ring: memoryRing() });
  const closed = codec.close();
  await expect.poll(() => close.mock.calls.length).toBe(2);
  await vi.advanceTimersByTimeAsync(2_000);
  await closed;
});

test('a call that is awaited keeps the process alive until it ends, and close accepts a key wrapper without close', async () => {
  // The test runner has its own timers: only those of the call count.
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
