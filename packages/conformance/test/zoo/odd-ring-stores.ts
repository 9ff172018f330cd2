import { createHash, randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { RingConflictError, type RingStoreCallOptions, RingStoreError, type StoredRing } from '@sealring/core';
import type { RingStoreTarget } from '../../src/index.ts';
import { type Item, type Service, VendorStore, vendorTarget, type WriteOptions } from './vendor-ring-stores.ts';

const targets: RingStoreTarget[] = [];

/** Adds an unusual store that fulfils the contract. */
function odd(
  name: string,
  Store: new (service: Service, name: string) => VendorStore,
  more: Partial<RingStoreTarget> = {},
): void {
  targets.push(vendorTarget(name, (service, ringName) => new Store(service, ringName), more));
}

odd(
  'with 50 ms latency to the service',
  class extends VendorStore {
    constructor(service: Service, name: string) {
      super(service, name);
      service.tripMs = 25;
    }
  },
);

{
  const listed = new WeakMap<Service, string[]>();
  odd(
    'with a delayed listing and immediate reads',
    class extends VendorStore {
      override swap(document: string, expected: string | undefined): Item | undefined {
        const item = super.swap(document, expected) as Item | undefined;
        const list = listed.get(this.service) ?? [];
        listed.set(this.service, list);
        if (item !== undefined) setTimeout(() => list.push(this.key), 500).unref();
        return item;
      }
    },
  );
}

odd(
  'with a time and a nonce as revision',
  class extends VendorStore {
    override swap(document: string, expected: string | undefined): Item | undefined {
      if (!this.matches(expected, this.service.items.get(this.key))) return undefined;
      return this.service.set(this.key, { text: document, version: `${new Date().toISOString()}/${randomUUID()}` });
    }
  },
);

odd(
  'with a hash as revision',
  class extends VendorStore {
    override revisionOf({ text, version }: Item): string {
      return version.startsWith('planted') ? version : createHash('sha256').update(text).digest('base64');
    }
  },
  { supports: { push: true, serviceDate: true } },
);

odd(
  'with a long revision of many kinds of characters',
  class extends VendorStore {
    override revisionOf({ version }: Item): string {
      return version.startsWith('planted') ? version : `W/"${version}" {é€😀}\t=+/&%41;-- ${'x'.repeat(1_000)}`;
    }
  },
);

{
  const turns = new WeakMap<Service, number>();
  odd(
    'with weak and compressed entity tags, normalized',
    class extends VendorStore {
      /** The form that the service returns. */
      #tag({ version }: Item): string {
        const turn = (turns.get(this.service) ?? 0) + 1;
        turns.set(this.service, turn);
        return [`"${version}"`, `W/"${version}"`, `"${version}-gzip"`][turn % 3] ?? '';
      }
      override revisionOf(item: Item): string {
        return this.#tag(item).replaceAll(/^W\/|"|-gzip"$/g, '');
      }
    },
  );
}

odd(
  'with a watch that polls four times a second',
  class extends VendorStore {
    override watch(changed: () => void): () => void {
      if (typeof changed !== 'function') throw new TypeError('changed');
      let last = this.service.items.get(this.key)?.version;
      const timer = setInterval(() => {
        if (this.service.isDown) return;
        const now = this.service.items.get(this.key)?.version;
        if (now !== last) changed();
        last = now;
      }, 250);
      timer.unref();
      const end = (): void => clearInterval(timer);
      this.watching.add(end);
      return end;
    }
  },
);

odd(
  'with a watch that calls three times, and sometimes without a change',
  class extends VendorStore {
    override watch(changed: () => void): () => void {
      if (typeof changed !== 'function') throw new TypeError('changed');
      let isOn = true;
      const say = (): void => {
        if (isOn) changed();
      };
      const end = super.watch(() => {
        say();
        setTimeout(say, 20).unref();
        setTimeout(say, 60).unref();
      });
      const timer = setInterval(say, 100);
      timer.unref();
      const all = (): void => {
        isOn = false;
        clearInterval(timer);
        end();
      };
      this.watching.add(all);
      return all;
    }
  },
);

odd(
  'with many alternating connections',
  class extends VendorStore {
    readonly #connections = Array.from({ length: 8 }, () => new VendorStore(this.service, this.name));
    #turn = 0;
    override async read(options?: RingStoreCallOptions): Promise<StoredRing | undefined> {
      return (this.#connections[this.#turn++ % 8] as VendorStore).read(options);
    }
    override async put(document: string, options: WriteOptions): Promise<{ readonly revision: string }> {
      return (this.#connections[this.#turn++ % 8] as VendorStore).put(document, options);
    }
  },
);

/** Stops waiting when a signal aborts, while the operation continues. */
async function unlessAborted<T>(signal: AbortSignal | undefined, work: Promise<T>): Promise<T> {
  let leave = (): void => undefined;
  const aborted = new Promise<never>((_, reject) => {
    leave = () => reject(new RingStoreError('unavailable', 'the call is no longer awaited'));
  });
  aborted.catch(() => undefined);
  work.catch(() => undefined);
  if (signal?.aborted === true) leave();
  signal?.addEventListener('abort', leave);
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal?.removeEventListener('abort', leave);
  }
}

{
  const ends = new WeakMap<Service, Promise<unknown>>();
  const queued = async <T>(service: Service, signal: AbortSignal | undefined, act: () => Promise<T>): Promise<T> => {
    const before = ends.get(service);
    let done: () => void = () => undefined;
    const mine = new Promise<void>((resolve) => (done = resolve));
    ends.set(
      service,
      Promise.allSettled([before, mine]).then(() => undefined),
    );
    try {
      await unlessAborted(signal, Promise.resolve(before));
      return await act();
    } finally {
      done();
    }
  };
  odd(
    'with one connection and a queue for all stores',
    class extends VendorStore {
      override async read(options?: RingStoreCallOptions): Promise<StoredRing | undefined> {
        if (typeof options !== 'object') return super.read(options);
        return queued(this.service, options?.signal, () => super.read(options));
      }
      override async put(document: string, options: WriteOptions): Promise<{ readonly revision: string }> {
        return queued(this.service, options.signal, () => super.put(document, options));
      }
    },
  );
}

{
  const calls = new WeakMap<Service, number>();
  odd(
    'with retries after every third call, which recognize their own writes',
    class extends VendorStore {
      #fails(): boolean {
        const count = (calls.get(this.service) ?? 0) + 1;
        calls.set(this.service, count);
        return count % 3 === 0;
      }
      override async put(document: string, { expected, signal }: WriteOptions): Promise<{ readonly revision: string }> {
        const request: { item?: Item | undefined } = {};
        for (;;) {
          // The service recognizes a repeated request and returns the same response.
          await this.service.ask(signal, async () => {
            if (!Object.hasOwn(request, 'item')) request.item = await this.swap(document, expected);
          });
          if (this.#fails()) continue;
          if (request.item === undefined) throw new RingConflictError();
          return { revision: request.item.version };
        }
      }
      override async find(): Promise<Item | undefined> {
        if (this.#fails()) await this.service.trip(undefined);
        return this.service.items.get(this.key);
      }
    },
  );
}

odd(
  'with aborted calls that take effect slightly later',
  class extends VendorStore {
    override async put(document: string, options: WriteOptions): Promise<{ readonly revision: string }> {
      if (options.signal?.aborted === true) throw new RingStoreError('unavailable', 'aborted');
      const done = pause(5).then(() => super.put(document, { expected: options.expected }));
      return unlessAborted(options.signal, done);
    }
  },
);

{
  const parts = new WeakMap<Service, Map<string, readonly Buffer[]>>();
  odd(
    'with parts of 1000 bytes under the name of their version, and an atomic pointer',
    class extends VendorStore {
      get #parts(): Map<string, readonly Buffer[]> {
        const all = parts.get(this.service) ?? new Map<string, readonly Buffer[]>();
        parts.set(this.service, all);
        return all;
      }
      override async put(document: string, { expected, signal }: WriteOptions): Promise<{ readonly revision: string }> {
        const version = randomUUID();
        const bytes = Buffer.from(document);
        const chunks = Array.from({ length: Math.ceil(bytes.length / 1_000) }, (_, i) =>
          bytes.subarray(i * 1_000, (i + 1) * 1_000),
        );
        await this.service.ask(signal, () => void this.#parts.set(version, chunks));
        const hasWon = await this.service.ask(signal, () => {
          if (!this.matches(expected, this.service.items.get(this.key))) return false;
          this.service.set(this.key, { text: `->${version}`, version });
          return true;
        });
        if (!hasWon) throw new RingConflictError();
        return { revision: version };
      }
      override decode(text: string): string {
        const found = text.startsWith('->') ? this.#parts.get(text.slice(2)) : undefined;
        return found === undefined ? text : Buffer.concat(found).toString();
      }
    },
  );
}

{
  const held = new WeakMap<Service, Map<string, Promise<unknown>>>();
  odd(
    'with a lock for every ring',
    class extends VendorStore {
      override async swap(document: string, expected: string | undefined): Promise<Item | undefined> {
        const locks = held.get(this.service) ?? new Map<string, Promise<unknown>>();
        held.set(this.service, locks);
        const before = locks.get(this.key);
        const mine = (async () => {
          await before;
          const current = this.service.items.get(this.key);
          const isMine = this.matches(expected, current);
          await pause(1);
          return isMine ? this.service.set(this.key, { text: document, version: this.service.next() }) : undefined;
        })();
        locks.set(this.key, mine);
        return mine;
      }
    },
    { remove: undefined as never },
  );
}

odd(
  'with a circuit breaker that fails for 300 ms after an outage',
  class extends VendorStore {
    #until = 0;
    override async read(options?: RingStoreCallOptions): Promise<StoredRing | undefined> {
      if (performance.now() < this.#until) throw new RingStoreError('unavailable', 'the circuit is open');
      return super.read(options).catch((error: unknown) => this.#open(error));
    }
    override async put(document: string, options: WriteOptions): Promise<{ readonly revision: string }> {
      if (performance.now() < this.#until) throw new RingStoreError('unavailable', 'the circuit is open');
      return super.put(document, options).catch((error: unknown) => this.#open(error));
    }
    #open(error: unknown): never {
      if (this.service.isDown) this.#until = performance.now() + 300;
      throw error;
    }
  },
);

odd(
  'with a cache that is revalidated at every read',
  class extends VendorStore {
    #kept: StoredRing | undefined;
    override answer(item: Item | undefined): StoredRing | undefined {
      if (item !== undefined && item.version === this.#kept?.revision) return this.#kept;
      const found = super.answer(item);
      this.#kept = found === undefined ? undefined : Object.freeze(found);
      return this.#kept;
    }
  },
);

odd(
  'with extra members in results, and dates reported twice in whole seconds',
  class extends VendorStore {
    override answer(item: Item | undefined): StoredRing | undefined {
      const found = super.answer(item);
      return found === undefined
        ? undefined
        : Object.assign(Object.create(null), found, { size: found.document.length });
    }
    override async read(options?: RingStoreCallOptions): Promise<StoredRing | undefined> {
      if (typeof options !== 'object' || options === null) return super.read(options);
      const { onServiceDate } = options;
      const tell = (date: Date): void => {
        onServiceDate?.(new Date(Math.floor(date.getTime() / 1_000) * 1_000));
        onServiceDate?.(new Date(Math.floor(date.getTime() / 1_000) * 1_000));
      };
      return super.read({ ...options, onServiceDate: tell });
    }
  },
);

odd(
  'with a limit of 64 KiB and without NUL',
  class extends VendorStore {
    override checkSize(document: string): void {
      if (Buffer.byteLength(document) > 65_536) throw new RingStoreError('too-large', 'over 64 KiB');
      if (document.includes('\0')) throw new RingStoreError('corrupt', 'a NUL');
    }
  },
  { supports: { push: true, serviceDate: true, maxDocumentBytes: 65_536 } },
);

odd(
  'with retries after an outage that keep their condition',
  class extends VendorStore {
    override async put(document: string, options: WriteOptions): Promise<{ readonly revision: string }> {
      const wasDown = this.service.isDown;
      try {
        return await super.put(document, options);
      } catch (error) {
        if (wasDown) this.#sendAgain(document, options.expected);
        throw error;
      }
    }
    #sendAgain(document: string, expected: string | undefined): void {
      const timer = setInterval(() => {
        if (this.service.isDown) return;
        clearInterval(timer);
        void this.swap(document, expected);
      }, 50);
      timer.unref();
    }
  },
);

odd(
  'with late notifications',
  class extends VendorStore {
    override watch(changed: () => void): () => void {
      if (typeof changed !== 'function') throw new TypeError('changed');
      let isOn = true;
      const end = super.watch(() => {
        setTimeout(() => {
          if (isOn) changed();
        }, 400).unref();
      });
      const both = (): void => {
        isOn = false;
        end();
      };
      this.watching.add(both);
      return both;
    }
  },
);

odd(
  'with a queue of writes, ten milliseconds each',
  class extends VendorStore {
    override async put(document: string, options: WriteOptions): Promise<{ readonly revision: string }> {
      if (options.signal?.aborted === true) throw new RingStoreError('unavailable', 'aborted');
      await this.service.trip(options.signal);
      await this.service.trip(options.signal);
      await this.service.trip(options.signal);
      return super.put(document, options);
    }
  },
);

export const ODD_RING_STORES: readonly RingStoreTarget[] = targets;
