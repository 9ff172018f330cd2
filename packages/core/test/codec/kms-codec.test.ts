import { randomBytes } from 'node:crypto';
import { getEventListeners } from 'node:events';
import { expect, test, vi } from 'vitest';
import { createKmsCodec } from '../../src/codec/kms-codec.ts';
import { localKeyWrapper } from '../../src/kms/local-key-wrapper.ts';
import { memoryRing } from '../../src/stores/memory-ring.ts';

test('the signal ends a start with its reason, and leaves a codec that has started alone', async () => {
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

test('a call that is awaited keeps the process alive until it ends, and close needs no close of a key wrapper', async () => {
  const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  const keyWrapper = localKeyWrapper({ masterKey: randomBytes(32) });
  const codec = await createKmsCodec({ keyWrapper, ring: memoryRing(), closeKeyWrappers: true });
  const before = timers();
  const refreshed = codec.refresh();
  expect(timers()).toBe(before + 1);
  await refreshed;
  // The test runner's own timers may have ended meanwhile.
  expect(timers()).toBeLessThanOrEqual(before);
  await codec.close();
});
