import { checkRead, checkWatcher, checkWrite } from '../adapter/ring-store-arguments.ts';
import { RingConflictError, type RingStore, type StoredRing } from '../contracts/ring-store.ts';

const OWNER = 'memoryRing';

/**
 * A ring store in this process's memory, for tests, development and a single process: pass the same store to every
 * codec that shares the ring. The ring is lost when the process ends, and no other process sees it.
 *
 * Revisions count up from 1. A document may be up to 262 144 bytes long.
 *
 * @example
 * ```ts
 * const ring = memoryRing();
 * const codec = await createKmsCodec({ keyWrapper, ring });
 * ```
 */
export function memoryRing(): RingStore {
  let current: StoredRing | undefined;
  let writes = 0;
  const watchers = new Set<{ readonly changed: () => void }>();

  return Object.freeze<RingStore>({
    kind: 'memory',

    async read(options) {
      checkRead(OWNER, options);
      return current;
    },

    async write(document, options) {
      checkWrite(OWNER, document, options);
      if (options.expected !== current?.revision) throw new RingConflictError();
      const revision = String(++writes);
      current = Object.freeze({ document, revision });
      for (const watcher of watchers) {
        queueMicrotask(() => {
          if (watchers.has(watcher)) watcher.changed();
        });
      }
      return { revision };
    },

    watch(changed) {
      checkWatcher(OWNER, changed);
      // Each watcher is a separate object, so that a function that was subscribed twice must be unsubscribed twice.
      const watcher = { changed };
      watchers.add(watcher);
      return () => {
        watchers.delete(watcher);
      };
    },
  });
}
