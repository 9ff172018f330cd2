import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate as network } from 'node:timers/promises';
import {
  fileRing,
  memoryRing,
  RingConflictError,
  type RingStore,
  type RingStoreCallOptions,
  RingStoreError,
  type StoredRing,
} from '@sealring/core';
import type { RingStoreTarget } from '../../src/index.ts';

const MOST = 262_144;

/** A store, with a function that removes its folder or database. */
interface SoundRingStore {
  readonly target: RingStoreTarget;
  end(): void;
}

/** The memory store of the core, which has no other access to its data. */
export function memory(): SoundRingStore {
  const stores = new Map<string, RingStore>();
  const create = (name: string): { store: RingStore } => {
    const store = stores.get(name) ?? memoryRing();
    stores.set(name, store);
    return { store };
  };
  return { target: { name: 'memoryRing', create, supports: { uniqueRevisions: true } }, end: () => undefined };
}

/** The file store of the core, whose revision is a hash. */
export function file(): SoundRingStore {
  const root = mkdtempSync(join(tmpdir(), 'sealring-kit-'));
  const pathOf = (name: string): string => {
    mkdirSync(join(root, name), { recursive: true });
    return join(root, name, 'ring');
  };
  const target: RingStoreTarget = {
    name: 'fileRing',
    create: (name) => ({ store: fileRing(pathOf(name)) }),
    remove: (name) => rm(pathOf(name)),
    plant: (name, document) => writeFile(pathOf(name), document),
    async breakConnection() {
      await rename(root, `${root}.away`);
      return () => rename(`${root}.away`, root);
    },
    supports: { serviceDate: false },
  };
  return { target, end: () => rmSync(root, { recursive: true, force: true }) };
}

/** An SQL row with a version from a global sequence. One connection per store, and no push. */
export function sqlite(): SoundRingStore {
  const root = mkdtempSync(join(tmpdir(), 'sealring-kit-'));
  const open = (): DatabaseSync => new DatabaseSync(join(root, 'ring.sqlite'), { timeout: 10_000 });
  const admin = open();
  admin.exec(`PRAGMA journal_mode = WAL;
    CREATE TABLE ring (name TEXT PRIMARY KEY, document TEXT NOT NULL, revision TEXT NOT NULL);`);
  let down = false;

  const ask = async <T>(database: DatabaseSync, run: () => T, signal: AbortSignal | undefined): Promise<T> => {
    await network();
    if (down || !database.isOpen || signal?.aborted === true) throw new RingStoreError('unavailable', 'no connection');
    return run();
  };

  function create(name: string): { store: RingStore; close(): void } {
    const database = open();
    const select = database.prepare('SELECT document, revision FROM ring WHERE name = ?');
    const insert = database.prepare('INSERT OR IGNORE INTO ring VALUES (?, ?, ?)');
    const update = database.prepare('UPDATE ring SET document = ?, revision = ? WHERE name = ? AND revision = ?');
    const store: RingStore = {
      kind: 'sqlite',
      async read(options) {
        checkOptions(options);
        const row = await ask(database, () => select.get(name), options?.signal);
        if (row === undefined) return undefined;
        const document = String(row['document']);
        const revision = String(row['revision']);
        checkSize(document, revision);
        if (document === '') throw new RingStoreError('corrupt', 'the document is empty', { revision });
        return { document, revision };
      },
      async write(document, options) {
        checkOptions(options);
        checkWritten(document, options);
        const { expected, signal } = options;
        const revision = crypto.randomUUID();
        const { changes } = await ask(
          database,
          () =>
            expected === undefined
              ? insert.run(name, document, revision)
              : update.run(document, revision, name, expected),
          signal,
        );
        if (changes === 0) throw new RingConflictError();
        return { revision };
      },
    };
    return { store, close: () => database.close() };
  }

  const target: RingStoreTarget = {
    name: 'a row of SQLite',
    create,
    remove: (name) => void admin.prepare('DELETE FROM ring WHERE name = ?').run(name),
    plant: (name, document) => void admin.prepare("INSERT INTO ring VALUES (?, ?, 'planted')").run(name, document),
    async breakConnection() {
      down = true;
      return () => {
        down = false;
      };
    },
    supports: { push: false, serviceDate: false, uniqueRevisions: true },
  };
  return {
    target,
    end() {
      admin.close();
      rmSync(root, { recursive: true, force: true });
    },
  };
}

/** A bucket with hashes as entity tags and a date in its responses. Accepts 8 KiB and no NUL. */
export function bucket(): SoundRingStore {
  const objects = new Map<string, { readonly bytes: Buffer; readonly tag: string }>();
  const create = (name: string): { store: RingStore } => ({
    store: {
      kind: 'bucket',
      async read(options) {
        checkOptions(options);
        await answer(options);
        const object = objects.get(name);
        if (object === undefined) return undefined;
        if (object.bytes.length === 0) throw new RingStoreError('corrupt', 'no bytes', { revision: object.tag });
        return { document: object.bytes.toString(), revision: object.tag };
      },
      async write(document, options) {
        checkOptions(options);
        checkWritten(document, options);
        if (document.includes('\0')) throw new TypeError('a bucket accepts no NUL');
        const bytes = Buffer.from(document);
        if (bytes.length > 8_192) throw new RingStoreError('too-large', 'over 8 KiB');
        await answer(options);
        if (objects.get(name)?.tag !== options.expected) throw new RingConflictError();
        const tag = createHash('sha256').update(bytes).digest('hex');
        objects.set(name, { bytes, tag });
        return { revision: tag };
      },
    },
  });
  const target: RingStoreTarget = {
    name: 'a bucket of 8 KiB',
    create,
    remove: (name) => void objects.delete(name),
    plant: (name, document) => void objects.set(name, { bytes: Buffer.from(document), tag: 'planted' }),
    supports: { serviceDate: true, maxDocumentBytes: 8_192 },
  };
  return { target, end: () => undefined };
}

/** A log of versions, whose revision is the position. A removal is also an entry. Has copies of the error classes. */
export function log(): SoundRingStore {
  const entries: { readonly name: string; readonly document: string | undefined }[] = [];
  const watchers = new Set<() => void>();
  const latest = (name: string): number => entries.findLastIndex((entry) => entry.name === name);
  const failure = (name: string, kind?: string): Error =>
    Object.assign(new Error(name), {
      name,
      ...(kind && { kind }),
      [Symbol.for('@sealring/core/error')]: kind === undefined ? 'ERR_RING_CONFLICT' : 'ERR_RING_STORE',
    });
  const unlessAborted = (signal: AbortSignal | undefined): void => {
    if (signal?.aborted === true) throw failure('RingStoreError', 'unavailable');
  };

  class LogStore {
    readonly kind = 'log';
    readonly #name: string;
    readonly #ends = new Set<() => void>();

    constructor(name: string) {
      this.#name = name;
    }

    async read(options?: RingStoreCallOptions): Promise<StoredRing | undefined> {
      checkOptions(options);
      unlessAborted(options?.signal);
      await network();
      const at = latest(this.#name);
      const document = entries[at]?.document;
      if (document === undefined) return undefined;
      const revision = String(at);
      if (document === '') throw Object.assign(failure('RingStoreError', 'corrupt'), { revision });
      if (Buffer.byteLength(document) > MOST) throw Object.assign(failure('RingStoreError', 'too-large'), { revision });
      return { document, revision };
    }

    async write(document: string, options: RingStoreCallOptions & { readonly expected: string | undefined }) {
      checkOptions(options);
      checkWritten(document, options);
      if (Buffer.byteLength(document) > MOST) throw failure('RingStoreError', 'too-large');
      unlessAborted(options.signal);
      await network();
      const at = latest(this.#name);
      const current = entries[at]?.document === undefined ? undefined : String(at);
      if (current !== options.expected) throw failure('RingConflictError');
      entries.push({ name: this.#name, document });
      for (const changed of watchers) setTimeout(changed, 20);
      return { revision: String(entries.length - 1) };
    }

    /** Notifies late, and for every ring. */
    watch(changed: () => void): () => void {
      if (typeof changed !== 'function') throw new TypeError('changed');
      const watcher = (): void => {
        if (watchers.has(watcher)) changed();
      };
      watchers.add(watcher);
      const end = (): void => void watchers.delete(watcher);
      this.#ends.add(end);
      return end;
    }

    async close(): Promise<void> {
      for (const end of this.#ends) end();
    }
  }

  const target: RingStoreTarget = {
    name: 'a log of versions',
    create: async (name) => ({ store: new LogStore(name) }),
    remove: (name) => void entries.push({ name, document: undefined }),
    plant: (name, document) => void entries.push({ name, document }),
    supports: { push: true, uniqueRevisions: true },
  };
  return { target, end: () => undefined };
}

async function answer({ signal, onServiceDate }: RingStoreCallOptions = {}): Promise<void> {
  if (signal?.aborted === true) throw new RingStoreError('unavailable', 'aborted');
  await network();
  onServiceDate?.(new Date());
}

function checkOptions(options: unknown): void {
  if (options !== undefined && (typeof options !== 'object' || options === null)) throw new TypeError('options');
}

function checkSize(document: string, revision?: string): void {
  const seen = revision === undefined ? {} : { revision };
  if (Buffer.byteLength(document) > MOST) throw new RingStoreError('too-large', 'over 262 144 bytes', seen);
}

function checkWritten(document: unknown, options: { readonly expected: unknown }): void {
  if (typeof document !== 'string' || document === '' || !document.isWellFormed()) throw new TypeError('document');
  if (options === undefined || !Object.hasOwn(options, 'expected')) throw new TypeError('expected');
  if (options.expected !== undefined && typeof options.expected !== 'string') throw new TypeError('expected');
  checkSize(document);
}
