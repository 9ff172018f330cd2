import { setTimeout as pause } from 'node:timers/promises';
import { type KeyWrapper, localKeyWrapper, memoryRing, type RingStore } from '@sealring/core';

/** Calls to the KMS and to the store, by name. */
export interface Calls {
  generate: number;
  wrap: number;
  unwrap: number;
  read: number;
  write: number;
}

/** A KMS and a ring store in this process that count their calls. */
export interface CountedServices {
  readonly calls: Calls;
  readonly keyWrapper: KeyWrapper;
  readonly ring: RingStore;
}

export const kmsCalls = ({ generate, wrap, unwrap }: Calls): number => generate + wrap + unwrap;
export const storeCalls = ({ read, write }: Calls): number => read + write;

/** @param latencyMs - Duration of every call; other requests arrive while it is in progress. Default 0. */
export function countedServices(latencyMs = 0): CountedServices {
  const calls: Calls = { generate: 0, wrap: 0, unwrap: 0, read: 0, write: 0 };
  const inner = localKeyWrapper({ masterKey: Buffer.alloc(32, 'ÿ a fixed key') });
  const store = memoryRing();
  const counted = async <T>(name: keyof Calls, call: () => Promise<T>): Promise<T> => {
    calls[name] += 1;
    if (latencyMs > 0) await pause(latencyMs);
    return call();
  };
  return {
    calls,
    keyWrapper: {
      provider: inner.provider,
      keyId: inner.keyId,
      supports: inner.supports,
      wrap: (dataKey, options) => counted('wrap', () => inner.wrap(dataKey, options)),
      unwrap: (wrapped, options) => counted('unwrap', () => inner.unwrap(wrapped, options)),
      generate: (options) =>
        counted('generate', async () => {
          const made = await inner.generate?.(options);
          if (made === undefined) throw new Error('the local key wrapper makes no data keys');
          return made;
        }),
    },
    ring: {
      // It keeps its kind: a memory ring is created at once.
      kind: store.kind,
      read: (options) => counted('read', () => store.read(options)),
      write: (document, options) => counted('write', () => store.write(document, options)),
    },
  };
}
