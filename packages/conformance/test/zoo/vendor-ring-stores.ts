import { createHash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { gunzipSync, gzipSync } from 'node:zlib';
import {
  RingConflictError,
  type RingStore,
  type RingStoreCallOptions,
  RingStoreError,
  type StoredRing,
} from '@sealring/core';
import type { RingStoreTarget } from '../../src/index.ts';
import type { BrokenRingStore } from './broken-ring-stores.ts';

export type WriteOptions = RingStoreCallOptions & { readonly expected: string | undefined };

/** The item of a service under a key. */
export interface Item {
  readonly text: string;
  readonly version: string;
}

const MOST = 262_144;

/** A database in this process. Requests and responses take a millisecond each. */
export class Service {
  readonly items = new Map<string, Item>();
  readonly #watchers = new Map<string, Set<() => void>>();
  isDown = false;
  sequence = 0;
  tripMs = 1;

  async trip(signal: AbortSignal | undefined): Promise<void> {
    if (signal?.aborted === true) throw new RingStoreError('unavailable', 'aborted');
    try {
      await pause(this.isDown ? 1_000 : this.tripMs, undefined, { signal });
    } catch {
      throw new RingStoreError('unavailable', 'aborted');
    }
    if (this.isDown) throw new RingStoreError('unavailable', 'no answer');
  }

  async ask<T>(signal: AbortSignal | undefined, act: () => T | Promise<T>): Promise<T> {
    await this.trip(signal);
    const answer = await act();
    await this.trip(signal);
    return answer;
  }

  set(key: string, item: Item): Item {
    this.items.set(key, item);
    for (const changed of this.#watchers.get(key) ?? []) setImmediate(changed);
    return item;
  }

  next(): string {
    return String(++this.sequence);
  }

  on(key: string, changed: () => void): () => void {
    const watchers = this.#watchers.get(key) ?? new Set();
    this.#watchers.set(key, watchers);
    const watcher = (): void => {
      if (watchers.has(watcher)) changed();
    };
    watchers.add(watcher);
    return () => void watchers.delete(watcher);
  }
}

/** A store that fulfils the contract, in steps that broken ones replace. */
export class VendorStore implements RingStore {
  readonly kind: string = 'vendor';
  readonly service: Service;
  readonly name: string;

  constructor(service: Service, name: string) {
    this.service = service;
    this.name = name;
  }

  get key(): string {
    return this.name;
  }

  async read(options?: RingStoreCallOptions): Promise<StoredRing | undefined> {
    if (options !== undefined && (typeof options !== 'object' || options === null)) throw new TypeError('options');
    const item = await this.service.ask(options?.signal, () => this.find());
    options?.onServiceDate?.(this.dateOf(item));
    return this.answer(item);
  }

  dateOf(_item: Item | undefined): Date {
    return new Date();
  }

  find(): Item | undefined | Promise<Item | undefined> {
    return this.service.items.get(this.key);
  }

  answer(item: Item | undefined): StoredRing | undefined {
    if (item === undefined) return undefined;
    const revision = this.revisionOf(item);
    const document = this.decode(item.text);
    if (document === '') throw new RingStoreError('corrupt', 'it is empty', { revision });
    if (Buffer.byteLength(document) > MOST) throw new RingStoreError('too-large', 'over the bound', { revision });
    return { document, revision };
  }

  async write(document: string, options: WriteOptions): Promise<{ readonly revision: string }> {
    if (typeof document !== 'string' || document === '' || !document.isWellFormed()) throw new TypeError('document');
    if (typeof options !== 'object' || !Object.hasOwn(options, 'expected')) throw new TypeError('expected');
    if (options.expected !== undefined && typeof options.expected !== 'string') throw new TypeError('expected');
    this.checkSize(document);
    return this.put(document, options);
  }

  checkSize(document: string): void {
    if (Buffer.byteLength(document) > MOST) throw new RingStoreError('too-large', 'over the bound');
  }

  async put(document: string, { expected, signal }: WriteOptions): Promise<{ readonly revision: string }> {
    const item = await this.service.ask(signal, () => this.swap(document, expected));
    if (item === undefined) throw new RingConflictError();
    return { revision: this.revisionOf(item) };
  }

  /** Compares and swaps atomically. */
  swap(document: string, expected: string | undefined): Item | undefined | Promise<Item | undefined> {
    const current = this.service.items.get(this.key);
    if (!this.matches(expected, current)) return undefined;
    return this.service.set(this.key, { text: this.encode(document), version: this.service.next() });
  }

  matches(expected: string | undefined, current: Item | undefined): boolean {
    return expected === (current === undefined ? undefined : this.revisionOf(current));
  }

  revisionOf(item: Item): string {
    return item.version;
  }

  encode(document: string): string {
    return document;
  }

  decode(text: string): string {
    return text;
  }

  watch(changed: () => void): () => void {
    if (typeof changed !== 'function') throw new TypeError('changed');
    const end = this.service.on(this.key, changed);
    this.watching.add(end);
    return end;
  }

  readonly watching: Set<() => void> = new Set();

  async close(): Promise<void> {
    for (const end of this.watching) end();
  }
}

function isAborted(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true;
}

type Make = (service: Service, name: string) => VendorStore;

/** A target on a separate service. */
export function vendorTarget(name: string, make: Make, more: Partial<RingStoreTarget> = {}): RingStoreTarget {
  const service = new Service();
  const keyOf = (ringName: string): string => make(service, ringName).key;
  return {
    name,
    create: (ringName) => ({ store: make(service, ringName) }),
    remove: (ringName) => void service.items.delete(keyOf(ringName)),
    plant(ringName, document) {
      service.items.set(keyOf(ringName), { text: document, version: `planted ${service.next()}` });
    },
    async breakConnection() {
      service.isDown = true;
      return () => {
        service.isDown = false;
      };
    },
    supports: { push: true, serviceDate: true, uniqueRevisions: true },
    ...more,
  };
}

const broken: BrokenRingStore[] = [];

/** Adds a broken store and the requirement that must catch it. */
function vendor(
  name: string,
  caughtBy: string,
  Store: new (service: Service, name: string) => VendorStore,
  more: Partial<RingStoreTarget> = {},
): void {
  broken.push({ target: vendorTarget(name, (service, ringName) => new Store(service, ringName), more), caughtBy });
}

const hash = (text: string): string => createHash('sha256').update(text).digest('hex');
const chunksOf = (bytes: Buffer, size: number): Buffer[] =>
  Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) => bytes.subarray(i * size, (i + 1) * size));

// --- Consul -------------------------------------------------------------------------------------------------------

vendor(
  'Consul: reads the index after the write',
  'RING-WRITE-REVISION',
  class extends VendorStore {
    override async put(document: string, options: WriteOptions): Promise<{ readonly revision: string }> {
      await super.put(document, options);
      const item = await this.service.ask(options.signal, () => this.service.items.get(this.key));
      return { revision: item?.version ?? '' };
    }
  },
);

vendor(
  'Consul: reads from a lagging follower',
  'RING-READ-AFTER-WRITE',
  class extends VendorStore {
    #behind: Item | undefined;
    #left = 2;
    override find(): Item | undefined {
      const now = this.service.items.get(this.key);
      if (now === this.#behind || this.#behind === undefined || now === undefined || this.#left-- === 0) {
        this.#behind = now;
        this.#left = 2;
      }
      return this.#behind;
    }
  },
);

vendor(
  'Consul: uses the index of the response instead of that of the key',
  'RING-REVISION-STABLE',
  class extends VendorStore {
    override revisionOf(): string {
      return String(this.service.sequence);
    }
  },
);

{
  const locks = new WeakMap<Service, Map<string, number>>();
  vendor(
    'Consul: a losing write keeps its lock',
    'RING-REVISION-UNIQUE',
    class extends VendorStore {
      override swap(document: string, expected: string | undefined): Item | undefined {
        const held = locks.get(this.service) ?? new Map<string, number>();
        locks.set(this.service, held);
        const left = held.get(this.key) ?? 0;
        held.set(this.key, Math.max(0, left - 1));
        if (left > 0) throw new RingStoreError('unavailable', 'locked');
        const item = super.swap(document, expected) as Item | undefined;
        if (item === undefined) held.set(this.key, 3);
        return item;
      }
    },
  );
}

vendor(
  'Consul: recurse returns the first key with the prefix',
  'RING-NAMES-SEPARATE',
  class extends VendorStore {
    override find(): Item | undefined {
      const key = [...this.service.items.keys()].toSorted().find((one) => one.startsWith(this.key));
      return key === undefined ? undefined : this.service.items.get(key);
    }
  },
);

vendor(
  'Consul: a blocking query ends at the first error',
  'RING-WATCH-RECOVERS',
  class extends VendorStore {
    override watch(changed: () => void): () => void {
      const end = super.watch(changed);
      const timer = setInterval(() => {
        if (!this.service.isDown) return;
        clearInterval(timer);
        end();
      }, 10);
      timer.unref();
      return () => {
        clearInterval(timer);
        end();
      };
    }
  },
);

// --- etcd ---------------------------------------------------------------------------------------------------------

vendor(
  'etcd: uses a lease of one second',
  'RING-DURABLE',
  class extends VendorStore {
    override swap(document: string, expected: string | undefined): Item | undefined {
      const item = super.swap(document, expected) as Item | undefined;
      const expire = (): void => {
        if (this.service.items.get(this.key) === item) this.service.items.delete(this.key);
      };
      if (item !== undefined) setTimeout(expire, 1_000).unref();
      return item;
    }
  },
);

vendor(
  'etcd: reads from its own member until it has written',
  'RING-READ-AFTER-WRITE',
  class extends VendorStore {
    #copy: Item | undefined;
    #left = 2;
    override async put(document: string, options: WriteOptions): Promise<{ readonly revision: string }> {
      this.#left = 0;
      return super.put(document, options);
    }
    override find(): Item | undefined {
      const now = this.service.items.get(this.key);
      if (now === undefined) return undefined;
      this.#copy ??= now;
      return this.#left-- > 0 ? this.#copy : now;
    }
  },
);

// --- Firestore ----------------------------------------------------------------------------------------------------

vendor(
  'Firestore: updateTime changes only after three writes',
  'RING-REVISION-OF-ONE',
  class extends VendorStore {
    override swap(document: string, expected: string | undefined): Item | undefined {
      if (!this.matches(expected, this.service.items.get(this.key))) return undefined;
      const version = new Date(Math.floor(Number(this.service.next()) / 3)).toISOString();
      return this.service.set(this.key, { text: document, version });
    }
  },
);

vendor(
  'Firestore: a repeated transaction uses the current revision',
  'RING-STALE-LOSES',
  class extends VendorStore {
    override async put(document: string, options: WriteOptions): Promise<{ readonly revision: string }> {
      let { expected } = options;
      for (let attempt = 0; attempt < 50; attempt++) {
        try {
          return await super.put(document, { ...options, expected });
        } catch (error) {
          if (!(error instanceof RingConflictError) || options.expected === undefined) throw error;
          expected = this.service.items.get(this.key)?.version;
          if (expected === undefined) throw error;
        }
      }
      throw new RingConflictError();
    }
  },
);

vendor(
  'Firestore: an empty cache of a new process reads as absent',
  'RING-UNREACHABLE',
  class extends VendorStore {
    #isUsed = false;
    override async read(options?: RingStoreCallOptions): Promise<StoredRing | undefined> {
      try {
        const found = await super.read(options);
        this.#isUsed = true;
        return found;
      } catch (error) {
        if (this.service.isDown && !this.#isUsed && !isAborted(options?.signal)) return undefined;
        throw error;
      }
    }
    override async put(document: string, options: WriteOptions): Promise<{ readonly revision: string }> {
      this.#isUsed = true;
      return super.put(document, options);
    }
  },
);

vendor(
  'Firestore: a listener receives only writes of its own store',
  'RING-WATCH-HEARS',
  class extends VendorStore {
    readonly #listeners = new Set<() => void>();
    override async put(document: string, options: WriteOptions): Promise<{ readonly revision: string }> {
      const done = await super.put(document, options);
      for (const one of this.#listeners) one();
      return done;
    }
    override watch(changed: () => void): () => void {
      if (typeof changed !== 'function') throw new TypeError('changed');
      this.#listeners.add(changed);
      return () => void this.#listeners.delete(changed);
    }
  },
);

// --- MongoDB ------------------------------------------------------------------------------------------------------

{
  const waiting = new WeakMap<Service, Map<string, { readonly item: Item; left: number }>>();
  vendor(
    'MongoDB: uses write concern 0',
    'RING-READ-AFTER-WRITE',
    class extends VendorStore {
      #arrive(reads: number): void {
        const late = waiting.get(this.service)?.get(this.key);
        if (late === undefined || (late.left -= reads) > 0) return;
        waiting.get(this.service)?.delete(this.key);
        this.service.set(this.key, late.item);
      }
      override swap(document: string, expected: string | undefined): Item | undefined {
        this.#arrive(9);
        const current = this.service.items.get(this.key);
        if (current === undefined) return super.swap(document, expected) as Item | undefined;
        if (!this.matches(expected, current)) return undefined;
        const item = { text: document, version: this.service.next() };
        const all = waiting.get(this.service) ?? new Map<string, { readonly item: Item; left: number }>();
        waiting.set(this.service, all.set(this.key, { item, left: 3 }));
        return item;
      }
      override find(): Item | undefined {
        this.#arrive(1);
        return this.service.items.get(this.key);
      }
    },
  );
}

{
  const counts = new WeakMap<Service, number>();
  vendor(
    'MongoDB: a retried write conflicts with itself',
    'RING-ROUNDTRIP',
    class extends VendorStore {
      override swap(document: string, expected: string | undefined): Item | undefined {
        const item = super.swap(document, expected) as Item | undefined;
        const count = (counts.get(this.service) ?? 0) + (item === undefined ? 0 : 1);
        counts.set(this.service, count);
        return item !== undefined && count % 7 === 0 ? (super.swap(document, expected) as undefined) : item;
      }
    },
  );
}

// --- SQL ----------------------------------------------------------------------------------------------------------

vendor(
  'SQL Server: compares revisions without regard to case',
  'RING-FOREIGN-CONFLICT',
  class extends VendorStore {
    override revisionOf({ version }: Item): string {
      return version.startsWith('planted') ? version : `v${version}a`;
    }
    override matches(expected: string | undefined, current: Item | undefined): boolean {
      return super.matches(expected?.toLowerCase(), current);
    }
  },
);

vendor(
  'SQL Server: compares revisions without trailing spaces',
  'RING-FOREIGN-CONFLICT',
  class extends VendorStore {
    override matches(expected: string | undefined, current: Item | undefined): boolean {
      return super.matches(expected?.replace(/ +$/, ''), current);
    }
  },
);

vendor(
  'SQL Server: MERGE without HOLDLOCK',
  'RING-CREATE-ONE-WINNER',
  class extends VendorStore {
    override async swap(document: string, expected: string | undefined): Promise<Item | undefined> {
      if (expected !== undefined) return super.swap(document, expected);
      if (this.service.items.has(this.key)) return undefined;
      await pause(1);
      return this.service.set(this.key, { text: document, version: this.service.next() });
    }
  },
);

{
  const dirty = new WeakMap<Service, Map<string, Item>>();
  vendor(
    'SQL Server: READ UNCOMMITTED',
    'RING-LOSER-NEVER-APPEARS',
    class extends VendorStore {
      get #dirty(): Map<string, Item> {
        const items = dirty.get(this.service) ?? new Map<string, Item>();
        dirty.set(this.service, items);
        return items;
      }
      override async swap(document: string, expected: string | undefined): Promise<Item | undefined> {
        const pending = { text: document, version: this.service.next() };
        if (this.service.items.has(this.key)) this.#dirty.set(this.key, pending);
        const current = this.service.items.get(this.key);
        const hasWon = this.matches(expected, current);
        if (hasWon) this.service.set(this.key, pending);
        await pause(5);
        if (this.#dirty.get(this.key) === pending) this.#dirty.delete(this.key);
        return hasWon ? pending : undefined;
      }
      override find(): Item | undefined {
        const item = this.service.items.get(this.key);
        return item === undefined ? undefined : (this.#dirty.get(this.key) ?? item);
      }
    },
  );
}

vendor(
  'SQL Server: NVARCHAR(4000), row by row in UTF-8',
  'RING-BOUNDARIES',
  class extends VendorStore {
    override encode(document: string): string {
      const rows = document.match(/[^]{1,4000}/g) ?? [];
      return rows.map((row) => Buffer.from(row).toString()).join('');
    }
  },
);

vendor(
  'SQL Server: rows of 4000 characters, ordered as text',
  'RING-LENGTHS',
  class extends VendorStore {
    override decode(text: string): string {
      const rows = text.match(/[^]{1,4000}/g) ?? [];
      const order = [...rows.keys()].map(String).toSorted();
      return order.map((i) => rows[Number(i)]).join('');
    }
  },
);

{
  const leftovers = new WeakMap<Service, Map<string, string>>();
  vendor(
    'SQL Server: keeps rows of a longer version',
    'RING-LENGTHS',
    class extends VendorStore {
      override encode(document: string): string {
        const before = leftovers.get(this.service) ?? new Map<string, string>();
        leftovers.set(this.service, before);
        const rows = Math.ceil(document.length / 4_000);
        const text = document + (document.length % 4_000 === 0 ? (before.get(this.key) ?? '').slice(rows * 4_000) : '');
        before.set(this.key, text);
        return text;
      }
    },
  );
}

vendor(
  'PostgreSQL: writes rows of 8000 bytes without a transaction',
  'RING-READ-WHOLE',
  class extends VendorStore {
    override async swap(document: string, expected: string | undefined): Promise<Item | undefined> {
      const current = this.service.items.get(this.key);
      if (document.length <= 8_000 || current === undefined) return super.swap(document, expected);
      if (!this.matches(expected, current)) return undefined;
      const version = this.service.next();
      this.service.set(this.key, { text: document.slice(0, 8_000) + current.text.slice(8_000), version });
      await pause(5);
      return this.service.set(this.key, { text: document, version });
    }
  },
);

vendor(
  'MySQL: a read changes the revision of the row',
  'RING-REVISION-STABLE',
  class extends VendorStore {
    override find(): Item | undefined {
      const item = this.service.items.get(this.key);
      if (item === undefined || item.version.startsWith('planted')) return item;
      const touched = { text: item.text, version: this.service.next() };
      this.service.items.set(this.key, touched);
      return touched;
    }
  },
);

// --- Git ----------------------------------------------------------------------------------------------------------

{
  const pushing = new WeakMap<Service, number>();
  vendor(
    'Git: reports a push of another ring as a conflict',
    'RING-NAMES-AT-ONCE',
    class extends VendorStore {
      override async put(document: string, options: WriteOptions): Promise<{ readonly revision: string }> {
        const head = pushing.get(this.service) ?? 0;
        await this.service.trip(options.signal);
        await this.service.trip(options.signal);
        if ((pushing.get(this.service) ?? 0) !== head) throw new RingConflictError();
        const item = this.swap(document, options.expected) as Item | undefined;
        if (item === undefined) throw new RingConflictError();
        pushing.set(this.service, head + 1);
        await this.service.trip(options.signal);
        return { revision: item.version };
      }
    },
  );
}

{
  const checkedOut = new WeakMap<Service, string>();
  vendor(
    'Git: uses one working copy for all rings',
    'RING-NAMES-AT-ONCE',
    class extends VendorStore {
      override async find(): Promise<Item | undefined> {
        checkedOut.set(this.service, this.key);
        await pause(1);
        return this.service.items.get(checkedOut.get(this.service) ?? '');
      }
    },
  );
}

{
  const locked = new WeakMap<Service, Set<string>>();
  vendor(
    'Git: leaves index.lock after an aborted write',
    'RING-ABORT-WRITE',
    class extends VendorStore {
      override async put(document: string, options: WriteOptions): Promise<{ readonly revision: string }> {
        const locks = locked.get(this.service) ?? new Set();
        locked.set(this.service, locks);
        await this.service.trip(options.signal);
        if (locks.has(this.key)) throw new RingStoreError('unavailable', 'index.lock');
        const item = this.swap(document, options.expected) as Item | undefined;
        if (item === undefined) throw new RingConflictError();
        try {
          await this.service.trip(options.signal);
        } catch (error) {
          locks.add(this.key);
          throw error;
        }
        return { revision: item.version };
      }
    },
  );
}

// --- REST and files -----------------------------------------------------------------------------------------------

const suffixed = (name: string, suffix: string, swap: (store: VendorStore, before: Item | undefined) => void): void =>
  vendor(
    name,
    'RING-NAMES-SEPARATE',
    class extends VendorStore {
      override swap(document: string, expected: string | undefined): Item | undefined {
        const before = this.service.items.get(this.key);
        const item = super.swap(document, expected) as Item | undefined;
        if (item !== undefined) swap(this, before);
        return item;
      }
      readonly suffix: string = suffix;
    },
  );

suffixed(
  'a file: deletes a name as its lock file',
  '.lock',
  ({ service, key }) => void service.items.delete(`${key}.lock`),
);
suffixed('a file: overwrites a name with its backup', '.bak', ({ service, key }, before) => {
  if (before !== undefined) service.items.set(`${key}.bak`, before);
});
suffixed('a file: deletes a name as its draft', '.tmp', ({ service, key }) => void service.items.delete(`${key}.tmp`));

vendor(
  'a file: appends .json unless the name has it',
  'RING-NAMES-SEPARATE',
  class extends VendorStore {
    override get key(): string {
      return this.name.endsWith('.json') ? this.name : `${this.name}.json`;
    }
  },
);

vendor(
  'a file: removes the extension',
  'RING-NAMES-SEPARATE',
  class extends VendorStore {
    override get key(): string {
      return this.name.replace(/\.[a-z]+$/, '');
    }
  },
);

vendor(
  'a file: trims dots and dashes',
  'RING-NAMES-SEPARATE',
  class extends VendorStore {
    override get key(): string {
      return this.name.replaceAll(/^[-._]+|[-._]+$/g, '') || this.name;
    }
  },
);

vendor(
  'REST: merges consecutive dashes',
  'RING-NAMES-SEPARATE',
  class extends VendorStore {
    override get key(): string {
      return this.name.replaceAll(/[-._]{2,}/g, '-');
    }
  },
);

const coded = (
  name: string,
  encode: (document: string) => string,
  decode: (text: string) => string,
  caughtBy = 'RING-ROUNDTRIP',
): void =>
  vendor(
    name,
    caughtBy,
    class extends VendorStore {
      override encode(document: string): string {
        return encode(document);
      }
      override decode(text: string): string {
        return decode(text);
      }
    },
  );
const plain = (text: string): string => text;

coded('REST: decodes plus signs as in forms', plain, (text) => text.replaceAll('+', ' '));
coded('REST: decodes documents twice', plain, (text) => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
});
coded('REST: decodes single percent escapes', plain, (text) =>
  text.replaceAll(/%([2-7][0-9a-f])/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16))),
);
coded('REST: decodes XML entities', plain, (text) =>
  text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&quot;', '"').replaceAll('&amp;', '&'),
);
coded('REST: removes tags', (document) => document.replaceAll(/<\/?[a-z]+>/g, ''), plain);
coded('REST: inserts documents into a template', (document) => '[document]'.replace('[document]', document), plain);
coded('CSV: merges doubled quotes', plain, (text) => text.replaceAll('""', '"'));
coded('SQL: merges doubled quotes', plain, (text) => text.replaceAll("''", "'"));
coded('SQL: merges doubled backslashes', plain, (text) => text.replaceAll('\\\\', '\\'));
coded('YAML: reads a word as a boolean', (document) => (/^(yes|on|true)$/i.test(document) ? 'true' : document), plain);
coded('text: replaces no-break spaces', (document) => document.replaceAll('\u00a0', ' '), plain);
coded('text: replaces line separators', (document) => document.replaceAll(/[\u2028\u2029\u0085]/g, '\n'), plain);
coded('text: removes zero-width characters', (document) => document.replaceAll(/[\u200b-\u200d\u2060]/g, ''), plain);

for (const size of [1_000, 1_460, 10_000, 65_536]) {
  coded(
    `HTTP: decodes text in chunks of ${size} bytes`,
    (document) =>
      chunksOf(Buffer.from(document), size)
        .map((chunk) => chunk.toString())
        .join(''),
    plain,
    'RING-BOUNDARIES',
  );
}
for (const size of [3_000, 10_000, 65_536]) {
  coded(
    `HTTP: loses a last chunk of exactly ${size} bytes`,
    (document) => {
      const bytes = Buffer.from(document);
      return bytes.length > size && bytes.length % size === 0 ? bytes.subarray(0, -size).toString() : document;
    },
    plain,
    'RING-LENGTHS',
  );
}

vendor(
  'REST: retries without the condition',
  'RING-OUTAGE-LATER',
  class extends VendorStore {
    override async put(document: string, options: WriteOptions): Promise<{ readonly revision: string }> {
      const wasDown = this.service.isDown;
      try {
        return await super.put(document, options);
      } catch (error) {
        if (wasDown) this.#later(document);
        throw error;
      }
    }
    #later(document: string): void {
      const timer = setInterval(() => {
        if (this.service.isDown) return;
        clearInterval(timer);
        setTimeout(() => {
          this.service.set(this.key, { text: document, version: this.service.next() });
        }, 500).unref();
      }, 50);
      timer.unref();
    }
  },
);

vendor(
  'REST: returns the error page of a proxy as a document',
  'RING-UNREACHABLE',
  class extends VendorStore {
    override async read(options?: RingStoreCallOptions): Promise<StoredRing | undefined> {
      if (this.service.isDown) return { document: '<h1>502 Bad Gateway</h1>', revision: '' };
      return super.read(options);
    }
  },
);

// --- NFS ----------------------------------------------------------------------------------------------------------

vendor(
  'NFS: creates a file before filling it',
  'RING-READ-CREATED',
  class extends VendorStore {
    override async swap(document: string, expected: string | undefined): Promise<Item | undefined> {
      if (expected !== undefined || this.service.items.has(this.key)) return super.swap(document, expected);
      const version = this.service.next();
      this.service.items.set(this.key, { text: '', version });
      await pause(5);
      return this.service.set(this.key, { text: document, version });
    }
  },
);

vendor(
  'NFS: writes in place, 64 KiB at a time',
  'RING-READ-WHOLE',
  class extends VendorStore {
    override async swap(document: string, expected: string | undefined): Promise<Item | undefined> {
      if (document.length <= 65_536) return super.swap(document, expected);
      const current = this.service.items.get(this.key);
      if (!this.matches(expected, current)) return undefined;
      const version = this.service.next();
      this.service.set(this.key, { text: document.slice(0, 65_536), version });
      await pause(5);
      return this.service.set(this.key, { text: document, version });
    }
  },
);

// --- A cache in front ---------------------------------------------------------------------------------------------

vendor(
  'a cache: a read joins a read in progress',
  'RING-READ-OVERLAPPED',
  class extends VendorStore {
    #underWay: Promise<Item | undefined> | undefined;
    override async read(options?: RingStoreCallOptions): Promise<StoredRing | undefined> {
      if (options !== undefined && (typeof options !== 'object' || options === null)) throw new TypeError('options');
      if (options?.signal !== undefined) return super.read(options);
      // The response to a read takes longer than that to a write.
      this.#underWay ??= this.service
        .ask(undefined, () => this.service.items.get(this.key))
        .then((item) => pause(4, item))
        .finally(() => (this.#underWay = undefined));
      const item = await this.#underWay;
      options?.onServiceDate?.(new Date());
      return this.answer(item);
    }
  },
);

vendor(
  'a cache: an abort ends all joined reads',
  'RING-ABORT-READ',
  class extends VendorStore {
    #underWay: Promise<Item | undefined> | undefined;
    override async read(options?: RingStoreCallOptions): Promise<StoredRing | undefined> {
      if (options !== undefined && (typeof options !== 'object' || options === null)) throw new TypeError('options');
      if (isAborted(options?.signal)) throw new RingStoreError('unavailable', 'aborted');
      const asked = this.#underWay ?? this.service.ask(options?.signal, () => this.service.items.get(this.key));
      this.#underWay = asked;
      // Joins only reads that started in the same turn.
      setImmediate(() => (this.#underWay = undefined));
      const item = await asked;
      options?.onServiceDate?.(new Date());
      return this.answer(item);
    }
  },
);

vendor(
  'a cache: keeps absence for three reads',
  'RING-REMOVED',
  class extends VendorStore {
    #left = 0;
    override find(): Item | undefined {
      if (this.#left > 0) {
        this.#left--;
        return undefined;
      }
      const item = this.service.items.get(this.key);
      if (item === undefined) this.#left = 3;
      return item;
    }
    override async put(document: string, options: WriteOptions): Promise<{ readonly revision: string }> {
      this.#left = 0;
      return super.put(document, options);
    }
  },
);

vendor(
  'a cache: keeps the document of a losing write',
  'RING-CREATE-ONLY-ABSENT',
  class extends VendorStore {
    #kept: Item | undefined;
    override async put(document: string, options: WriteOptions): Promise<{ readonly revision: string }> {
      const current = this.service.items.get(this.key);
      this.#kept = current === undefined ? undefined : { text: document, version: current.version };
      const done = await super.put(document, options);
      this.#kept = undefined;
      return done;
    }
    override find(): Item | undefined {
      const kept = this.#kept;
      this.#kept = undefined;
      return this.service.items.has(this.key) ? (kept ?? this.service.items.get(this.key)) : undefined;
    }
  },
);

vendor(
  'a cache: is cleared only by its own writes and every tenth read',
  'RING-READ-AFTER-WRITE',
  class extends VendorStore {
    #kept: Item | undefined;
    #reads = 0;
    override find(): Item | undefined {
      if (!this.service.items.has(this.key) || this.#reads++ % 10 === 9) this.#kept = undefined;
      this.#kept ??= this.service.items.get(this.key);
      return this.#kept;
    }
    override async put(document: string, options: WriteOptions): Promise<{ readonly revision: string }> {
      const done = await super.put(document, options);
      this.#kept = undefined;
      return done;
    }
  },
);

{
  const reading = new WeakMap<Service, number>();
  const replicas = new WeakMap<Service, Map<string, Item>>();
  vendor(
    'a cache: sends more than ten concurrent reads to a replica',
    'RING-READ-OVERLAPPED',
    class extends VendorStore {
      override async find(): Promise<Item | undefined> {
        const count = (reading.get(this.service) ?? 0) + 1;
        reading.set(this.service, count);
        const replica = replicas.get(this.service) ?? new Map<string, Item>();
        replicas.set(this.service, replica);
        const now = this.service.items.get(this.key);
        const before = replica.get(this.key);
        await pause(1);
        if (now !== undefined && count <= 10) replica.set(this.key, now);
        reading.set(this.service, (reading.get(this.service) ?? 1) - 1);
        return count > 10 && now !== undefined ? (before ?? now) : now;
      }
    },
  );
}

// --- Connections --------------------------------------------------------------------------------------------------

vendor(
  'a connection: uses the answer to an aborted read for the next one',
  'RING-ABORT-READ',
  class extends VendorStore {
    readonly #answers: (Item | undefined)[] = [];
    override async read(options?: RingStoreCallOptions): Promise<StoredRing | undefined> {
      if (options !== undefined && (typeof options !== 'object' || options === null)) throw new TypeError('options');
      await this.service.trip(options?.signal);
      this.#answers.push(this.service.items.get(this.key));
      await this.service.trip(options?.signal);
      options?.onServiceDate?.(new Date());
      return this.answer(this.#answers.shift());
    }
  },
);

vendor(
  'a connection: fails after an aborted write',
  'RING-ABORT-WRITE',
  class extends VendorStore {
    #isDead = false;
    override async put(document: string, options: WriteOptions): Promise<{ readonly revision: string }> {
      if (this.#isDead) throw new RingStoreError('unavailable', 'the connection is closed');
      if (isAborted(options.signal)) throw new RingStoreError('unavailable', 'aborted');
      try {
        return await super.put(document, options);
      } catch (error) {
        this.#isDead ||= isAborted(options.signal);
        throw error;
      }
    }
    override find(): Item | undefined {
      if (this.#isDead) throw new RingStoreError('unavailable', 'the connection is closed');
      return this.service.items.get(this.key);
    }
  },
);

vendor(
  'a connection: keeps a transaction after an aborted write, so that reads are stale',
  'RING-ABORT-WRITE',
  class extends VendorStore {
    #snapshot: Item | undefined;
    override async put(document: string, options: WriteOptions): Promise<{ readonly revision: string }> {
      const before = this.service.items.get(this.key);
      try {
        const done = await super.put(document, options);
        this.#snapshot = undefined;
        return done;
      } catch (error) {
        if (isAborted(options.signal)) this.#snapshot = before;
        throw error;
      }
    }
    override find(): Item | undefined {
      const now = this.service.items.get(this.key);
      return now === undefined ? undefined : (this.#snapshot ?? now);
    }
  },
);

vendor(
  'a pool: loses one of five connections at every aborted read',
  'RING-ABORT-READ',
  class extends VendorStore {
    #lost = 0;
    override async read(options?: RingStoreCallOptions): Promise<StoredRing | undefined> {
      if (isAborted(options?.signal)) throw new RingStoreError('unavailable', 'aborted');
      if (this.#lost >= 5) throw new RingStoreError('unavailable', 'no connection is free');
      try {
        return await super.read(options);
      } catch (error) {
        if (isAborted(options?.signal)) this.#lost++;
        throw error;
      }
    }
  },
);

vendor(
  'fetch: rejects an aborted write with its own error',
  'RING-ABORT-WRITE',
  class extends VendorStore {
    override async put(document: string, options: WriteOptions): Promise<{ readonly revision: string }> {
      if (isAborted(options.signal)) throw new RingStoreError('unavailable', 'aborted');
      try {
        return await super.put(document, options);
      } catch (error) {
        throw isAborted(options.signal) ? options.signal?.reason : error;
      }
    }
  },
);

vendor(
  'Cassandra: reports a missing response as a conflict',
  'RING-ABORT-WRITE',
  class extends VendorStore {
    override async put(document: string, options: WriteOptions): Promise<{ readonly revision: string }> {
      if (isAborted(options.signal)) throw new RingStoreError('unavailable', 'aborted');
      try {
        return await super.put(document, options);
      } catch (error) {
        throw isAborted(options.signal) ? new RingConflictError() : error;
      }
    }
  },
);

vendor(
  'leaves the first half of an aborted large write',
  'RING-ABORT-WRITE',
  class extends VendorStore {
    override async put(document: string, options: WriteOptions): Promise<{ readonly revision: string }> {
      if (document.length <= 5_000) return super.put(document, options);
      await this.service.trip(options.signal);
      const current = this.service.items.get(this.key);
      if (!this.matches(options.expected, current)) throw new RingConflictError();
      const version = this.service.next();
      this.service.set(this.key, { text: document.slice(0, document.length / 2), version });
      await this.service.trip(options.signal);
      this.service.set(this.key, { text: document, version });
      return { revision: version };
    }
  },
);

// --- ZooKeeper, Vault, Kubernetes ---------------------------------------------------------------------------------

vendor(
  'ZooKeeper: accepts -1 as any version',
  'RING-FOREIGN-LOSES',
  class extends VendorStore {
    override matches(expected: string | undefined, current: Item | undefined): boolean {
      return (expected === '-1' && current !== undefined) || super.matches(expected, current);
    }
  },
);

vendor(
  'ZooKeeper: parses only the leading digits of a revision',
  'RING-FOREIGN-CONFLICT',
  class extends VendorStore {
    override matches(expected: string | undefined, current: Item | undefined): boolean {
      if (expected === undefined || current === undefined || current.version.startsWith('planted'))
        return super.matches(expected, current);
      return Number.parseInt(expected, 10) === Number(current.version);
    }
  },
);

vendor(
  'Vault: 0 creates',
  'RING-FOREIGN-LOSES',
  class extends VendorStore {
    override matches(expected: string | undefined, current: Item | undefined): boolean {
      return super.matches(expected === '0' ? undefined : expected, current);
    }
  },
);

vendor(
  'gzip: limits the compressed size',
  'RING-TOO-LARGE',
  class extends VendorStore {
    override checkSize(document: string): void {
      if (gzipSync(document).length > MOST) throw new RingStoreError('too-large', 'over the bound');
    }
    override encode(document: string): string {
      return `gz:${gzipSync(document).toString('base64')}`;
    }
    override decode(text: string): string {
      return text.startsWith('gz:') ? gunzipSync(Buffer.from(text.slice(3), 'base64')).toString() : text;
    }
  },
);

// --- Revisions ----------------------------------------------------------------------------------------------------

const hashed = (name: string, of: (document: string) => string): void =>
  vendor(
    name,
    'RING-REVISION-OF-ONE',
    class extends VendorStore {
      override revisionOf({ text, version }: Item): string {
        return version.startsWith('planted') ? version : of(text);
      }
    },
    { supports: { push: true, serviceDate: true } },
  );
hashed('hashes only the first 4 KiB', (document) => hash(document.slice(0, 4_096)));
hashed('hashes only the last 4 KiB', (document) => hash(document.slice(-4_096)));
hashed('hashes only both ends and the length', (document) =>
  hash(`${document.length} ${document.slice(0, 1_000)} ${document.slice(-1_000)}`),
);
hashed('hashes without white space', (document) => hash(document.replaceAll(/\s/g, '')));
hashed('hashes without regard to case', (document) => hash(document.toLowerCase()));
hashed('hashes composed characters', (document) => hash(document.normalize('NFC')));
hashed('hashes sorted characters', (document) => hash(document.split('').toSorted().join('')));

{
  const overflow = new WeakMap<Service, Map<string, string>>();
  vendor(
    'stores long documents separately under the name of the ring',
    'RING-CAS-LARGEST',
    class extends VendorStore {
      get #overflow(): Map<string, string> {
        const texts = overflow.get(this.service) ?? new Map<string, string>();
        overflow.set(this.service, texts);
        return texts;
      }
      override encode(document: string): string {
        return document.length <= 10_000 ? document : '\u0001overflow';
      }
      override decode(text: string): string {
        return text === '\u0001overflow' ? (this.#overflow.get(this.key) ?? '') : text;
      }
      override async put(document: string, options: WriteOptions): Promise<{ readonly revision: string }> {
        if (document.length <= 10_000) return super.put(document, options);
        const item = this.service.items.get(this.key);
        if (!this.matches(options.expected, item)) throw new RingConflictError();
        this.#overflow.set(this.key, document);
        return super.put(document, options);
      }
    },
  );
}

vendor(
  'etcd: accepts a later revision of the whole service',
  'RING-REVISION-FOREIGN',
  class extends VendorStore {
    override matches(expected: string | undefined, current: Item | undefined): boolean {
      if (expected === undefined || current === undefined || !/^[1-9]\d*$/.test(expected)) {
        return super.matches(expected, current);
      }
      return Number(expected) >= Number(current.version) && Number(expected) <= this.service.sequence;
    }
  },
);

{
  const reserved = new WeakMap<Service, Set<string>>();
  vendor(
    'a file: reserves a name after an aborted write',
    'RING-ABORT-CREATE',
    class extends VendorStore {
      override async put(document: string, options: WriteOptions): Promise<{ readonly revision: string }> {
        const names = reserved.get(this.service) ?? new Set();
        reserved.set(this.service, names);
        await this.service.trip(options.signal);
        if (options.expected !== undefined) return super.put(document, options);
        if (names.has(this.key)) throw new RingConflictError();
        names.add(this.key);
        await this.service.trip(options.signal);
        names.delete(this.key);
        return super.put(document, options);
      }
    },
  );
}

vendor(
  'a connection: an aborted write resets all calls in progress',
  'RING-ABORT-OTHERS',
  class extends VendorStore {
    #resets = 0;
    override async put(document: string, options: WriteOptions): Promise<{ readonly revision: string }> {
      try {
        return await super.put(document, options);
      } catch (error) {
        if (isAborted(options.signal)) this.#resets++;
        throw error;
      }
    }
    override async read(options?: RingStoreCallOptions): Promise<StoredRing | undefined> {
      const resets = this.#resets;
      const found = await super.read(options);
      if (resets !== this.#resets) throw new RingStoreError('unavailable', 'the connection was reset');
      return found;
    }
  },
);

vendor(
  'a connection: reads absent when it is reset',
  'RING-OUTAGE-UNDER-WAY',
  class extends VendorStore {
    override async read(options?: RingStoreCallOptions): Promise<StoredRing | undefined> {
      const wasDown = this.service.isDown;
      try {
        return await super.read(options);
      } catch (error) {
        if (!wasDown && this.service.isDown) return undefined;
        throw error;
      }
    }
  },
);

vendor(
  'a difference: its common beginning is counted in bytes and applied in characters',
  'RING-ROUNDTRIP',
  class extends VendorStore {
    override swap(document: string, expected: string | undefined): Item | undefined {
      const before = this.service.items.get(this.key)?.text ?? '';
      let common = 0;
      while (common < document.length && document[common] === before[common]) common += 1;
      const bytes = Buffer.byteLength(document.slice(0, common));
      return super.swap(before.slice(0, bytes) + document.slice(common), expected) as Item | undefined;
    }
  },
);

vendor(
  'equal documents: an update of one ring deletes that of another',
  'RING-NAMES-SEPARATE',
  class extends VendorStore {
    override swap(document: string, expected: string | undefined): Item | undefined {
      const { items } = this.service;
      const before = items.get(this.key)?.text;
      const item = super.swap(document, expected) as Item | undefined;
      if (item === undefined || before === undefined || before === document) return item;
      for (const [key, one] of items) if (key !== this.key && one.text === before) items.delete(key);
      return item;
    }
  },
);

vendor(
  'a read: loads its document on access',
  'RING-READ-WHOLE',
  class extends VendorStore {
    override answer(item: Item | undefined): StoredRing | undefined {
      const found = super.answer(item);
      const latest = (): string => this.service.items.get(this.key)?.text ?? '';
      return (
        found && {
          revision: found.revision,
          get document() {
            return latest();
          },
        }
      );
    }
  },
);

vendor(
  'a table: finds the members of every object in it',
  'RING-ABSENT',
  class extends VendorStore {
    override find(): Item | undefined {
      if (this.name in {}) throw new RingStoreError('corrupt', 'not a ring', { revision: 'none' });
      return super.find() as Item | undefined;
    }
  },
);

{
  const open = new Map<string, number>();
  const count = (key: string, by: number): number => {
    const now = (open.get(key) ?? 0) + by;
    open.set(key, now);
    return now;
  };
  vendor(
    'a connection: a second close counts it down again',
    'RING-CLOSE-OTHERS',
    class extends VendorStore {
      constructor(...given: ConstructorParameters<typeof VendorStore>) {
        super(...given);
        count(this.key, 1);
      }
      override async read(options?: RingStoreCallOptions): Promise<StoredRing | undefined> {
        if (count(this.key, 0) === 0) throw new RingStoreError('unavailable', 'the connection is closed');
        return super.read(options);
      }
      override async close(): Promise<void> {
        count(this.key, -1);
        await super.close();
      }
    },
  );
}

vendor(
  'after an outage: answers the first read from memory',
  'RING-OUTAGE-LATER',
  class extends VendorStore {
    #last: StoredRing | undefined;
    #wasDown = false;
    override async read(options?: RingStoreCallOptions): Promise<StoredRing | undefined> {
      if (this.service.isDown) this.#wasDown = true;
      else if (this.#wasDown && this.#last !== undefined) {
        this.#wasDown = false;
        return this.#last;
      }
      this.#last = await super.read(options);
      return this.#last;
    }
    override async put(document: string, options: WriteOptions): Promise<{ readonly revision: string }> {
      if (this.service.isDown) this.#wasDown = true;
      const written = await super.put(document, options);
      this.#last = { document, revision: written.revision };
      return written;
    }
  },
);

// --- Dates and watchers -------------------------------------------------------------------------------------------

vendor(
  'watchers: one that ends itself in its call makes the next miss it',
  'RING-WATCH-ENDS',
  class extends VendorStore {
    readonly #all: { readonly changed: () => void }[] = [];
    override watch(changed: () => void): () => void {
      const notify = (): void => {
        for (let i = 0; i < this.#all.length; i++) this.#all[i]?.changed();
      };
      if (this.watching.size === 0) super.watch(notify);
      const own = { changed };
      this.#all.push(own);
      return () => {
        const at = this.#all.indexOf(own);
        if (at >= 0) this.#all.splice(at, 1);
      };
    }
  },
);

const dated = (name: string, dateOf: (now: number, item: Item | undefined) => Date): void =>
  vendor(
    name,
    'RING-SERVICE-DATE-VALID',
    class extends VendorStore {
      override dateOf(item: Item | undefined): Date {
        return dateOf(Date.now(), item);
      }
    },
  );
dated('reports a date two hours off', (now) => new Date(now - 2 * 3_600_000));
{
  const written = new WeakMap<Item, Date>();
  const start = new Date();
  dated('reports the date of the write of the document', (now, item) => {
    if (item === undefined) return start;
    const date = written.get(item) ?? new Date(now);
    written.set(item, date);
    return date;
  });
  dated('reports the date of the connection', () => start);
}

vendor(
  'reports the date after the read resolved',
  'RING-SERVICE-DATE',
  class extends VendorStore {
    override async read(options?: RingStoreCallOptions): Promise<StoredRing | undefined> {
      if (options === null || (options !== undefined && typeof options !== 'object')) throw new TypeError('options');
      const { onServiceDate } = options ?? {};
      return super.read({
        ...options,
        onServiceDate: (date) => void setTimeout(() => onServiceDate?.(date), 5).unref(),
      });
    }
  },
);

vendor(
  'decrements its count of watchers twice',
  'RING-WATCH-ENDS-TWICE',
  class extends VendorStore {
    #count = 0;
    #end: (() => void) | undefined;
    readonly #listeners = new Set<() => void>();
    override watch(changed: () => void): () => void {
      if (typeof changed !== 'function') throw new TypeError('changed');
      const listener = (): void => changed();
      this.#listeners.add(listener);
      this.#count++;
      this.#end ??= super.watch(() => {
        for (const one of this.#listeners) one();
      });
      return () => {
        this.#listeners.delete(listener);
        if (--this.#count > 0) return;
        this.#end?.();
        this.#end = undefined;
      };
    }
  },
);

{
  const open = new WeakMap<Service, Set<() => void>>();
  vendor(
    'ends the watchers of all stores at the close of one',
    'RING-WATCH-ENDS',
    class extends VendorStore {
      override watch(changed: () => void): () => void {
        const ends = open.get(this.service) ?? new Set();
        open.set(this.service, ends);
        const end = super.watch(changed);
        ends.add(end);
        return end;
      }
      override async close(): Promise<void> {
        for (const end of open.get(this.service) ?? []) end();
      }
    },
  );
}

// --- Outages, damage and slow answers -----------------------------------------------------------------------------

function isUnavailable(error: unknown): boolean {
  return error instanceof RingStoreError && error.kind === 'unavailable';
}

/** Retries a write without a response. */
const retried = (name: string, next: (expected: string | undefined, now: Item | undefined) => string | undefined) =>
  vendor(
    name,
    'RING-OUTAGE-UNDER-WAY',
    class extends VendorStore {
      override async put(document: string, options: WriteOptions): Promise<{ readonly revision: string }> {
        let { expected } = options;
        for (let attempt = 0; ; attempt++) {
          try {
            return await super.put(document, { ...options, expected });
          } catch (error) {
            if (attempt === 20 || !isUnavailable(error) || isAborted(options.signal)) throw error;
            await pause(20);
            expected = next(expected, this.service.items.get(this.key));
          }
        }
      }
    },
  );
retried('retries: reports its own write as a conflict', (expected) => expected);
retried('retries: uses the current revision', (_, now) => now?.version);

vendor(
  'a driver: shows its message in the detail',
  'RING-ERROR-SECRET',
  class extends VendorStore {
    override async read(options?: RingStoreCallOptions): Promise<StoredRing | undefined> {
      try {
        return await super.read(options);
      } catch (error) {
        if (!isUnavailable(error)) throw error;
        throw new RingStoreError('unavailable', 'connect ECONNREFUSED redis://ring:hunter2@10.0.0.5:6379');
      }
    }
  },
);

vendor(
  'a circuit breaker: fails for a minute after three failures',
  'RING-RECOVERS',
  class extends VendorStore {
    #failures = 0;
    override async find(): Promise<Item | undefined> {
      if (this.#failures >= 3) throw new RingStoreError('unavailable', 'the circuit is open');
      return super.find();
    }
    override async read(options?: RingStoreCallOptions): Promise<StoredRing | undefined> {
      try {
        return await super.read(options);
      } catch (error) {
        this.#failures += 1;
        throw error;
      }
    }
  },
);

vendor(
  'a driver: reads absent after the third failure',
  'RING-RECOVERS',
  class extends VendorStore {
    #failures = 0;
    override async read(options?: RingStoreCallOptions): Promise<StoredRing | undefined> {
      try {
        return await super.read(options);
      } catch (error) {
        this.#failures += 1;
        if (this.#failures < 3 || !isUnavailable(error)) throw error;
        return undefined;
      }
    }
  },
);

vendor(
  'a driver: reads absent on its first read after an outage',
  'RING-RECOVERS',
  class extends VendorStore {
    #hasFailed = false;
    override async read(options?: RingStoreCallOptions): Promise<StoredRing | undefined> {
      const wasDown = this.service.isDown;
      this.#hasFailed ||= wasDown;
      const found = await super.read(options);
      if (!this.#hasFailed) return found;
      this.#hasFailed = false;
      return undefined;
    }
  },
);

vendor(
  'a driver: ignores a signal while it connects',
  'RING-ABORT-ENDS',
  class extends VendorStore {
    override async read(options?: RingStoreCallOptions): Promise<StoredRing | undefined> {
      if (!this.service.isDown || isAborted(options?.signal)) return super.read(options);
      return super.read();
    }
  },
);

vendor(
  'fetch: rejects with the error of a timeout',
  'RING-ABORTED',
  class extends VendorStore {
    override async read(options?: RingStoreCallOptions): Promise<StoredRing | undefined> {
      try {
        return await super.read(options);
      } catch (error) {
        const reason: unknown = options?.signal?.reason;
        throw reason instanceof DOMException && reason.name === 'TimeoutError' ? reason : error;
      }
    }
  },
);

{
  const replicas = new WeakMap<Service, Map<string, Item | undefined>>();
  vendor(
    'a replica: returns an old version in an outage',
    'RING-UNREACHABLE',
    class extends VendorStore {
      get #replica(): Map<string, Item | undefined> {
        const items = replicas.get(this.service) ?? new Map<string, Item | undefined>();
        replicas.set(this.service, items);
        return items;
      }
      override swap(document: string, expected: string | undefined): Item | undefined {
        const before = this.service.items.get(this.key);
        const item = super.swap(document, expected) as Item | undefined;
        if (item !== undefined) this.#replica.set(this.key, before);
        return item;
      }
      override async read(options?: RingStoreCallOptions): Promise<StoredRing | undefined> {
        const behind = this.service.isDown ? this.#replica.get(this.key) : undefined;
        return behind === undefined ? super.read(options) : this.answer(behind);
      }
    },
  );
}

vendor(
  'a cache: returns the last valid version for a damaged one',
  'RING-TOO-LARGE-THERE',
  class extends VendorStore {
    #last: StoredRing | undefined;
    override answer(item: Item | undefined): StoredRing | undefined {
      try {
        this.#last = super.answer(item);
      } catch (error) {
        if (this.#last === undefined) throw error;
      }
      return this.#last;
    }
  },
);

vendor(
  'a cache: a slow read from before a write fills it afterwards',
  'RING-READ-OVERLAPPED',
  class extends VendorStore {
    #writes = 0;
    #late: { readonly item: Item | undefined } | undefined;
    override async find(): Promise<Item | undefined> {
      const [late, writes, item] = [this.#late, this.#writes, this.service.items.get(this.key)];
      this.#late = undefined;
      if (late !== undefined) return late.item;
      await pause(6);
      if (this.#writes !== writes) this.#late = { item };
      return item;
    }
    override async put(document: string, options: WriteOptions): Promise<{ readonly revision: string }> {
      const done = await super.put(document, options);
      this.#writes += 1;
      return done;
    }
  },
);

vendor(
  'a cache: writes its content again at close',
  'RING-CLOSED',
  class extends VendorStore {
    #own: Item | undefined;
    override swap(document: string, expected: string | undefined): Item | undefined {
      const item = super.swap(document, expected) as Item | undefined;
      this.#own = item ?? this.#own;
      return item;
    }
    override async close(): Promise<void> {
      await super.close();
      if (this.#own !== undefined && this.service.items.has(this.key)) this.service.items.set(this.key, this.#own);
    }
  },
);

vendor(
  'waits for a connection at close',
  'RING-INSTANCE-CLOSES',
  class extends VendorStore {
    #isUsed = false;
    override async read(options?: RingStoreCallOptions): Promise<StoredRing | undefined> {
      this.#isUsed = true;
      return super.read(options);
    }
    override async put(document: string, options: WriteOptions): Promise<{ readonly revision: string }> {
      this.#isUsed = true;
      return super.put(document, options);
    }
    override async close(): Promise<void> {
      await super.close();
      if (!this.#isUsed) await new Promise(() => undefined);
    }
  },
);

vendor(
  'uses one revision for all damaged documents',
  'RING-TOO-LARGE-THERE',
  class extends VendorStore {
    override revisionOf({ text, version }: Item): string {
      return Buffer.byteLength(text) > MOST ? 'damaged' : version;
    }
  },
);

vendor(
  'treats an empty document as absent in a write',
  'RING-EMPTY-THERE',
  class extends VendorStore {
    override matches(expected: string | undefined, current: Item | undefined): boolean {
      return super.matches(expected, current?.text === '' && expected === undefined ? undefined : current);
    }
  },
);

vendor(
  'uses a version of six bits',
  'RING-REVISION-OF-ONE',
  class extends VendorStore {
    override revisionOf({ version }: Item): string {
      return version.startsWith('planted') ? version : String(Number(version) % 64);
    }
  },
);

vendor(
  'HTTP: reads 8 KiB, and the rest with a second request',
  'RING-READ-WHOLE',
  class extends VendorStore {
    override async find(): Promise<Item | undefined> {
      const start = this.service.items.get(this.key);
      if (start === undefined || start.text.length <= 8_192) return start;
      await this.service.trip(undefined);
      const rest = this.service.items.get(this.key)?.text.slice(8_192) ?? '';
      return { ...start, text: start.text.slice(0, 8_192) + rest };
    }
  },
);

coded('memcached: ends text at a line END', plain, (text) => text.replace(/(^|\n)END\r?\n[^]*$/, '$1'));
coded('decompresses text with a prefix', plain, (text) =>
  text.startsWith('gz:') ? gunzipSync(Buffer.from(text.slice(3), 'base64')).toString() : text,
);

/** Broken stores that were written from the contract without the kit. */
export const VENDOR_RING_STORES: readonly BrokenRingStore[] = broken;
