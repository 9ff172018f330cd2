import { isUtf8 } from 'node:buffer';
import { createHash, randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { RingConflictError, type RingStore, type RingStoreCallOptions, RingStoreError } from '@sealring/core';
import type { RingStoreTarget } from '../../src/index.ts';

/** A store with one fault, and the requirement that must catch it. */
export interface BrokenRingStore {
  readonly target: RingStoreTarget;
  readonly caughtBy: string;
}

interface Row {
  readonly document: string;
  readonly revision: string;
}

/** A database in this process. Operations are atomic, but requests and responses take time. */
class ZooBackend {
  readonly rows = new Map<string, Row>();
  readonly watchers = new Map<string, Set<() => void>>();
  isDown = false;
  #trips = 0;

  /** Zero to three milliseconds, in the same order in every run, since random delays could hide a fault. */
  tripMs(): number {
    return [1, 3, 0, 2, 0, 1][this.#trips++ % 6] ?? 0;
  }

  tell(key: string): void {
    for (const changed of this.watchers.get(key) ?? []) setImmediate(changed);
  }
}

const { queueMicrotask: ownQueueMicrotask } = globalThis;

type WriteOptions = RingStoreCallOptions & { readonly expected: string | undefined };

const MOST = 262_144;
/** The deadline of the store for a missing response. */
const DEADLINE_MS = 2_000;
let ordinal = 0;
const refuse = (signal: AbortSignal | undefined): void => {
  if (signal?.aborted === true) throw new RingStoreError('unavailable', 'aborted');
};

/** The steps of the sound store. A broken store replaces one step. */
interface Steps {
  readonly keyOf: (name: string) => string;
  readonly find: (backend: ZooBackend, key: string) => Row | undefined;
  readonly check: (document: unknown, options: WriteOptions) => void;
  readonly checkSize: (document: string) => void;
  readonly refuse: (signal: AbortSignal | undefined) => void;
  readonly travel: (backend: ZooBackend, signal: AbortSignal | undefined) => Promise<void>;
  readonly present: (row: Row | undefined) => unknown;
  readonly stored: (document: string) => string;
  readonly revise: (document: string, before: Row | undefined) => string;
  readonly matches: (row: Row | undefined, expected: string | undefined) => boolean;
  readonly swap: (backend: ZooBackend, key: string, row: Row, matches: () => boolean) => Promise<boolean> | boolean;
  readonly conflict: () => unknown;
  readonly done: (signal: AbortSignal | undefined, revision: string) => unknown;
}

const SOUND: Steps = {
  keyOf: (name) => name,
  find: (backend, key) => backend.rows.get(key),
  check(document, options) {
    if (typeof document !== 'string' || document === '' || !document.isWellFormed()) throw new TypeError('document');
    if (typeof options !== 'object' || !Object.hasOwn(options, 'expected')) throw new TypeError('expected');
    if (options.expected !== undefined && typeof options.expected !== 'string') throw new TypeError('expected');
  },
  checkSize(document) {
    if (Buffer.byteLength(document) > MOST) throw new RingStoreError('too-large', 'over 262 144 bytes');
  },
  refuse,
  async travel(backend, signal) {
    const ms = backend.tripMs();
    try {
      await pause(backend.isDown ? DEADLINE_MS : ms, undefined, { signal });
    } catch {
      throw new RingStoreError('unavailable', 'aborted');
    }
    if (backend.isDown) throw new RingStoreError('unavailable', 'no answer');
  },
  present(row) {
    if (row === undefined) return undefined;
    const { revision } = row;
    if (row.document === '') throw new RingStoreError('corrupt', 'empty', { revision });
    if (Buffer.byteLength(row.document) > MOST)
      throw new RingStoreError('too-large', 'over 262 144 bytes', { revision });
    return { document: row.document, revision: row.revision };
  },
  stored: (document) => document,
  revise: () => String(++ordinal),
  matches: (row, expected) => row?.revision === expected,
  swap(backend, key, row, matches) {
    if (!matches()) return false;
    backend.rows.set(key, row);
    return true;
  },
  conflict: () => {
    throw new RingConflictError();
  },
  done: (_, revision) => ({ revision }),
};

class ZooStore {
  readonly kind = 'zoo';
  readonly #backend: ZooBackend;
  readonly #key: string;
  readonly #steps: Steps;

  constructor(backend: ZooBackend, name: string, steps: Steps) {
    this.#backend = backend;
    this.#key = steps.keyOf(name);
    this.#steps = steps;
  }

  async read(options?: RingStoreCallOptions): Promise<unknown> {
    if (options !== undefined && (typeof options !== 'object' || options === null)) throw new TypeError('options');
    this.#steps.refuse(options?.signal);
    await this.#steps.travel(this.#backend, options?.signal);
    const row = this.#steps.find(this.#backend, this.#key);
    await this.#steps.travel(this.#backend, options?.signal);
    options?.onServiceDate?.(new Date());
    return this.#steps.present(row);
  }

  async write(document: string, options: WriteOptions): Promise<unknown> {
    this.#steps.check(document, options);
    this.#steps.checkSize(document);
    const { expected, signal } = options;
    this.#steps.refuse(signal);
    await this.#steps.travel(this.#backend, signal);
    const found = (): Row | undefined => this.#steps.find(this.#backend, this.#key);
    const row = { document: this.#steps.stored(document), revision: this.#steps.revise(document, found()) };
    const hasWon = await this.#steps.swap(this.#backend, this.#key, row, () => this.#steps.matches(found(), expected));
    if (hasWon) this.#backend.tell(this.#key);
    await this.#steps.travel(this.#backend, signal);
    return hasWon ? this.#steps.done(signal, row.revision) : this.#steps.conflict();
  }

  watch(changed: () => void): () => void {
    if (typeof changed !== 'function') throw new TypeError('changed');
    const watchers = this.#backend.watchers.get(this.#key) ?? new Set();
    this.#backend.watchers.set(this.#key, watchers);
    const watcher = (): void => {
      if (watchers.has(watcher)) changed();
    };
    watchers.add(watcher);
    return () => void watchers.delete(watcher);
  }
}

type Wrap = (sound: RingStore, backend: ZooBackend, name: string) => object;

/** A target on a separate backend, with all optional functions. */
export function zooRingTarget(
  name: string,
  steps: Partial<Steps> = {},
  more: Partial<RingStoreTarget> = {},
  wrap: Wrap = (sound) => sound,
): RingStoreTarget {
  const backend = new ZooBackend();
  const all = { ...SOUND, ...steps };
  return {
    name,
    create: (ringName) => ({
      store: wrap(new ZooStore(backend, ringName, all) as RingStore, backend, ringName) as RingStore,
    }),
    remove: (ringName) => void backend.rows.delete(all.keyOf(ringName)),
    plant: (ringName, document) => void backend.rows.set(all.keyOf(ringName), { document, revision: 'planted' }),
    async breakConnection() {
      backend.isDown = true;
      return () => {
        backend.isDown = false;
      };
    },
    supports: { push: true, serviceDate: true, uniqueRevisions: true },
    ...more,
  };
}

function broken(
  name: string,
  caughtBy: string,
  steps: Partial<Steps>,
  more: Partial<RingStoreTarget> = {},
): BrokenRingStore {
  return { target: zooRingTarget(name, steps, more), caughtBy };
}

/** A sound store inside a broken wrapper. */
function wrapped(
  name: string,
  caughtBy: string,
  change: (sound: RingStore, backend: ZooBackend, name: string) => object,
  more: Partial<RingStoreTarget> = {},
): BrokenRingStore {
  const wrap: Wrap = (sound, backend, ringName) => ({
    kind: sound.kind,
    read: (options?: RingStoreCallOptions) => sound.read(options),
    write: (document: string, options: WriteOptions) => sound.write(document, options),
    watch: (changed: () => void) => sound.watch?.(changed),
    ...change(sound, backend, ringName),
  });
  return { target: zooRingTarget(name, {}, more, wrap), caughtBy };
}

/** Fails with an error that shows too much during an outage. */
function outOfReach(
  name: string,
  change: (error: RingStoreError, document: string) => RingStoreError,
): BrokenRingStore {
  return wrapped(name, 'RING-ERROR-TEXT', (sound, backend) => ({
    write: (document: string, options: WriteOptions) =>
      sound.write(document, options).catch((error: unknown) => {
        throw backend.isDown ? change(error as RingStoreError, document) : error;
      }),
  }));
}

/** Some writers treat a conflict with an equal document as success. */
function idempotent(name: string, caughtBy: string, isFor: (expected: string | undefined) => boolean): BrokenRingStore {
  return wrapped(name, caughtBy, (sound) => ({
    write: (document: string, options: WriteOptions) =>
      sound.write(document, options).catch(async (error: unknown) => {
        const found = error instanceof RingConflictError && isFor(options.expected) ? await sound.read() : undefined;
        if (found?.document !== document) throw error;
        return { revision: found.revision };
      }),
  }));
}

const hash = (document: string): string => createHash('sha256').update(document).digest('base64url');

/** Returns the old version for some reads after a change. Counts reads, since a time could pass unnoticed on a slow machine. */
function cached(sound: RingStore, reads: number): Partial<RingStore> {
  let last: Awaited<ReturnType<RingStore['read']>>;
  let left = 0;
  return {
    async read(options) {
      const found = await sound.read(options);
      if (left === 0 || found?.revision === last?.revision) {
        last = found;
        left = reads;
      } else left--;
      return last;
    },
  };
}

const uuid = (): string => randomUUID();

/** Accepts revisions that are similar to the current one. */
function loose(equal: (expected: string, revision: string) => boolean): Steps['matches'] {
  return (row, expected) =>
    row?.revision === expected || (row !== undefined && expected !== undefined && equal(expected, row.revision));
}

type Equal = (expected: string, revision: string) => boolean;

/** Loose comparisons with a UUID. */
const LOOSE: Readonly<Record<string, Equal>> = {
  'compares a prefix of the stored revision': (expected, revision) => expected !== '' && revision.startsWith(expected),
  'compares a suffix of the stored revision': (expected, revision) => expected !== '' && revision.endsWith(expected),
  'compares a prefix of the expected revision': (expected, revision) => expected.startsWith(revision),
  'compares a suffix of the expected revision': (expected, revision) => expected.endsWith(revision),
  'compares all but the last character': (expected, revision) => expected.slice(0, 35) === revision.slice(0, 35),
  'compares all but the first character': (expected, revision) => expected.slice(1) === revision.slice(1),
  'compares the last twelve characters': (expected, revision) => expected.slice(-12) === revision.slice(-12),
  'compares the characters in any order': (expected, revision) =>
    Array.from(expected).toSorted().join('') === Array.from(revision).toSorted().join(''),
  'looks up the expected revision in an object': (expected, revision) =>
    Reflect.get({ [revision]: 1 }, expected) !== undefined,
};

/** Loose comparisons with a counter. */
const LOOSE_NUMBERS: Readonly<Record<string, Equal>> = {
  'truncates the expected revision to 32 bits': (expected, revision) =>
    /^\d+$/.test(expected) && BigInt.asUintN(32, BigInt(expected)) === BigInt(revision),
  'truncates the expected revision to 64 bits': (expected, revision) =>
    /^\d+$/.test(expected) && BigInt.asUintN(64, BigInt(expected)) === BigInt(revision),
  'accepts the next number': (expected, revision) => Number(expected) === Number(revision) + 1,
};

/** Changes that a service makes to the expected revision. */
const SPELLED: Readonly<Record<string, (expected: string) => string>> = {
  'truncates the expected revision at a NUL': (expected) => expected.split('\0')[0] ?? '',
  'removes NULs from the expected revision': (expected) => expected.replaceAll('\0', ''),
  'removes a carriage return': (expected) => expected.replace(/\r$/, ''),
  'removes a tab': (expected) => expected.replace(/\t$/, ''),
  'removes a no-break space': (expected) => expected.replace(/\u00a0$/, ''),
  'removes a byte order mark': (expected) => expected.replace(/^\ufeff/, ''),
  'drops zero-width characters': (expected) => expected.replaceAll(/[\u00ad\u200b]/g, ''),
  'removes lone surrogates': (expected) => expected.replaceAll(/[\ud800-\udfff]/g, ''),
  'keeps seven bits': (expected) => String.fromCharCode(...Buffer.from(expected, 'latin1').map((byte) => byte & 0x7f)),
  'keeps eight bits': (expected) => Buffer.from(expected, 'latin1').toString('latin1'),
  'normalizes the revision': (expected) => expected.normalize('NFKC'),
  'decodes the revision': (expected) => (/^(?:%\w\w)+$/.test(expected) ? decodeURIComponent(expected) : expected),
  'removes quotes': (expected) => expected.replaceAll('"', ''),
  'removes braces': (expected) => expected.replaceAll(/[{}]/g, ''),
  'accepts a list that ends with the revision': (expected) => expected.split(', ').at(-1) ?? '',
  'accepts a list that starts with the revision': (expected) => expected.split(',')[0] ?? '',
  'removes parameters': (expected) => expected.split(';')[0] ?? '',
  'adds the hyphens of a UUID': (expected) =>
    expected.replace(/^(\w{8})(\w{4})(\w{4})(\w{4})(\w{12})$/, '$1-$2-$3-$4-$5'),
};

/** Revisions that a request cannot carry. */
const REFUSED: Readonly<Record<string, (expected: string) => boolean>> = {
  'cannot send a NUL': (expected) => expected.includes('\0'),
  'cannot send a lone surrogate': (expected) => !expected.isWellFormed(),
  'cannot send a line break': (expected) => /[\r\n]/.test(expected),
  'can send only Latin-1': (expected) => /[^\0-\u00ff]/.test(expected),
  'cannot send a long revision': (expected) => expected.length > 1_024,
  'cannot send a backslash': (expected) => expected.includes('\\'),
  'cannot send a number of more than 64 bits': (expected) => /^\d{20,}$/.test(expected),
};

/** Changes to documents that formats or programs interpret. */
const CHANGED: Readonly<Record<string, (document: string) => string>> = {
  'replaces a final line ending with a line feed': (document) => document.replace(/\r\n$/, '\n'),
  'removes a final carriage return': (document) => document.replace(/\r$/, ''),
  'replaces noncharacters': (document) => document.replaceAll(/[\ufdd0-\ufdef]/g, '\ufffd'),
  'removes variation selectors': (document) => document.replaceAll('\ufe0f', ''),
  'merges two percent signs': (document) => document.replaceAll('%%', '%'),
  'removes comments': (document) => document.replaceAll(/\/\*.*?\*\//gs, ''),
  'removes lines that start with a number sign': (document) => document.replaceAll(/^#.*\n/gm, ''),
  'removes null members': (document) => document.replaceAll(/"[^"]*":null,/g, ''),
  'rounds large numbers': (document) => document.replaceAll(/\b\d{17,}\b/g, (digits) => String(Number(digits))),
  'unescapes slashes': (document) => document.replaceAll('\\/', '/'),
  'decodes text that looks like base64': (document) =>
    /^[A-Za-z0-9]{8}$/.test(document) ? Buffer.from(document, 'base64').toString() : document,
  'decodes text that looks like bytes': (document) =>
    /^\\x[0-9a-f]+$/.test(document) ? Buffer.from(document.slice(2), 'hex').toString() : document,
  'treats a leading @ as a file name': (document) => document.replace(/^@/, ''),
  'treats leading hyphens as an option': (document) => document.replace(/^--/, ''),
};

const sessions = new WeakMap<ZooBackend, number>();
const closed = new WeakSet<ZooBackend>();
const replicas = new WeakMap<ZooBackend, Map<string, { readonly row: Row | undefined; left: number }>>();
const losers = new WeakMap<ZooBackend, { readonly document: string; left: number }>();

/** The ends of watchers that began when their ring was there. */
const tied = new WeakMap<ZooBackend, readonly (() => void)[]>();

export const BROKEN_RING_STORES: readonly BrokenRingStore[] = [
  // Members and results.
  wrapped('has no kind', 'RING-SHAPE', () => ({ kind: undefined })),
  wrapped('throws synchronously when aborted', 'RING-ASYNCHRONOUS', (sound) => ({
    read(options?: RingStoreCallOptions) {
      refuse(options?.signal);
      return sound.read(options);
    },
  })),
  wrapped('reads synchronously', 'RING-ASYNCHRONOUS', (_, backend, name) => ({ read: () => backend.rows.get(name) })),
  wrapped('throws synchronously for large documents', 'RING-ASYNCHRONOUS', (sound) => ({
    write(document: string, options: WriteOptions) {
      SOUND.checkSize(document);
      return sound.write(document, options);
    },
  })),
  broken('returns numbers as revisions', 'RING-RESULT', { done: (_, revision) => ({ revision: Number(revision) }) }),
  broken('resolves to the bare revision', 'RING-RESULT', { done: (_, revision) => revision }),
  wrapped('adds a deadline to the options it is given', 'RING-RESULT', (sound) => ({
    async write(document: string, options: WriteOptions) {
      Object.assign(options, { signal: options.signal ?? AbortSignal.timeout(2_000) });
      return sound.write(document, options);
    },
  })),
  wrapped('hands out its own copy', 'RING-OWN-RESULT', (sound) => {
    let copy: Awaited<ReturnType<RingStore['read']>>;
    return {
      async read(options?: RingStoreCallOptions) {
        const found = await sound.read(options);
        if (copy === undefined || found === undefined) copy = found;
        return copy;
      },
    };
  }),
  wrapped('attaches the driver’s error as a cause', 'RING-ERROR-TEXT', (sound) => ({
    write: (document: string, options: WriteOptions) =>
      sound.write(document, options).catch((error: unknown) => {
        throw Object.assign(new RingConflictError(), { cause: error });
      }),
  })),
  wrapped('shows the beginning of a document that is too large', 'RING-ERROR-TEXT', (sound, backend, name) => ({
    read: (options?: RingStoreCallOptions) =>
      sound.read(options).catch((error: unknown) => {
        throw Object.assign(error as Error, { head: backend.rows.get(name)?.document.slice(0, 100) });
      }),
  })),
  wrapped('shows the failed statement in an error', 'RING-ERROR-TEXT', (sound) => ({
    write: (document: string, options: WriteOptions) =>
      sound.write(document, options).catch((error: unknown) => {
        throw Object.assign(error as Error, { statement: `UPDATE ring SET document = '${document}'` });
      }),
  })),
  outOfReach(
    'shows its credentials in an error',
    () => new RingStoreError('unavailable', `zoo://app:${randomUUID()}@10.0.0.7/ring`),
  ),
  outOfReach(
    'shows its connection string in an error',
    () => new RingStoreError('unavailable', `Host=db;Password=${randomUUID()}`),
  ),
  outOfReach('attaches the driver’s error', (error) => Object.assign(error, { original: new Error('ECONNREFUSED') })),
  outOfReach('attaches the errors of all addresses', (error) =>
    Object.assign(error, { errors: [new Error('ECONNREFUSED ::1'), new Error('ECONNREFUSED 127.0.0.1')] }),
  ),
  outOfReach('attaches the unanswered request', (error, document) =>
    Object.assign(error, { request: { body: Buffer.from(document).toString('base64') } }),
  ),
  outOfReach(
    'shows the unwritten document in an error',
    (_, document) => new RingStoreError('unavailable', `not sent: ${document}`),
  ),

  ...['false', '0', '{}', 'undefined', '\n', ' '].map((nothing) =>
    broken(`reads ${JSON.stringify(nothing)} as absent`, 'RING-ROUNDTRIP', {
      present: (row) => (row?.document === nothing ? undefined : SOUND.present(row)),
    }),
  ),
  broken('adds a suffix unless the name has it', 'RING-NAMES-SEPARATE', {
    keyOf: (name) => name.replace(/\.ring$/, ''),
  }),
  broken('removes text before a dot', 'RING-NAMES-SEPARATE', {
    keyOf: (name) => name.replace(/^[a-z]\./, ''),
  }),
  ...Object.entries(CHANGED).map(([name, stored]) => broken(name, 'RING-ROUNDTRIP', { stored })),
  broken('hashes only one byte of each character', 'RING-REVISION-OF-ONE', {
    revise: (document) => hash(Buffer.from(document, 'latin1').toString('latin1')),
  }),
  broken('hashes only ASCII', 'RING-REVISION-OF-ONE', {
    revise: (document) => hash(document.replaceAll(/[^\0-\u007f]/g, '?')),
  }),
  wrapped('compares only both ends of a document', 'RING-LARGEST', (sound) => {
    let last: Awaited<ReturnType<RingStore['read']>>;
    const endsOf = (document: string): string => `${document.slice(0, 1_024)}${document.slice(-1_024)}`;
    return {
      async read(options?: RingStoreCallOptions) {
        const found = await sound.read(options);
        const isSame = found !== undefined && last !== undefined && endsOf(found.document) === endsOf(last.document);
        if (!isSame) last = found;
        return isSame ? { ...found, document: last?.document } : found;
      },
    };
  }),
  // Absent rings and written documents.
  broken('reads null for absent', 'RING-ABSENT', { present: (row) => (row === undefined ? null : SOUND.present(row)) }),
  broken('returns an empty document for an absent ring', 'RING-ABSENT', {
    present: (row) => SOUND.present(row) ?? { document: '', revision: '' },
  }),
  broken('rejects for an absent ring', 'RING-ABSENT', {
    present(row) {
      if (row === undefined) throw new RingStoreError('unavailable', 'not found');
      return SOUND.present(row);
    },
  }),
  broken('Latin-1', 'RING-ROUNDTRIP', { stored: (document) => Buffer.from(document, 'latin1').toString('latin1') }),
  broken('decodes Latin-1 that is valid UTF-8', 'RING-ROUNDTRIP', {
    stored: (document) => {
      const bytes = Buffer.from(document, 'latin1');
      const isLatin = bytes.toString('latin1') === document && isUtf8(bytes);
      return isLatin ? bytes.toString() : document;
    },
  }),
  broken('stores UTF-8 of at most three bytes', 'RING-ROUNDTRIP', {
    stored: (document) => document.replaceAll(/[\u{10000}-\u{10ffff}]/gu, '?'),
  }),
  broken('trims documents', 'RING-ROUNDTRIP', { stored: (document) => document.trim() || document }),
  broken('normalizes line endings', 'RING-ROUNDTRIP', { stored: (document) => document.replaceAll('\r\n', '\n') }),
  broken('strips a byte order mark', 'RING-ROUNDTRIP', { stored: (document) => document.replace(/^\ufeff/, '') }),
  broken('composes characters', 'RING-ROUNDTRIP', { stored: (document) => document.normalize('NFC') }),
  broken('stores a JSON column', 'RING-ROUNDTRIP', {
    stored(document) {
      try {
        return JSON.stringify(JSON.parse(document));
      } catch {
        return document;
      }
    },
  }),
  broken('truncates text at a NUL', 'RING-NUL', { stored: (document) => document.split('\0')[0] ?? '' }),
  wrapped('stores documents in its session', 'RING-DURABLE', (_, backend, name) => {
    // The session ends, with its documents, when the last store closes.
    sessions.set(backend, (sessions.get(backend) ?? 0) + 1);
    return {
      async close() {
        const left = (sessions.get(backend) ?? 1) - 1;
        sessions.set(backend, left);
        if (left === 0) backend.rows.delete(name);
      },
    };
  }),
  broken('uses one row for all names', 'RING-NAMES-SEPARATE', { keyOf: () => 'ring' }, { remove: () => undefined }),
  broken('compares only the first characters of names', 'RING-NAMES-SEPARATE', { keyOf: (name) => name.slice(0, 16) }),
  broken('truncates names at 63 characters', 'RING-NAMES-SEPARATE', { keyOf: (name) => name.slice(0, 63) }),
  broken('truncates names to their last 63 characters', 'RING-NAMES-SEPARATE', { keyOf: (name) => name.slice(-63) }),
  ...['-1', '.1', '-chunk-1'].map((suffix) =>
    broken(`stores the end of a long document as ring ${suffix}`, 'RING-NAMES-SEPARATE', {
      swap(backend, key, row, matches) {
        if (!matches()) return false;
        backend.rows.set(key, row);
        if (row.document.length > 16_384)
          backend.rows.set(`${key}${suffix}`, { ...row, document: row.document.slice(16_384) });
        return true;
      },
    }),
  ),
  broken('compares names with LIKE', 'RING-NAMES-SEPARATE', {
    find: (backend, key) => {
      const like = new RegExp(`^${key.replaceAll('.', '\\.').replaceAll('_', '.')}$`);
      return [...backend.rows].find(([name]) => like.test(name))?.[1];
    },
  }),
  broken('drops leading zeros of numbers in names', 'RING-NAMES-SEPARATE', {
    keyOf: (name) => name.replaceAll(/([._-])0+(?=\d)/g, '$1'),
  }),
  wrapped('rejects an update of an absent ring with another error', 'RING-REVISION-FOREIGN', (sound) => ({
    async write(document: string, options: WriteOptions) {
      if (options.expected !== undefined && (await sound.read()) === undefined) {
        throw new RingStoreError('absent', 'no ring is stored');
      }
      return sound.write(document, options);
    },
  })),
  broken('uses a hash of the first 64 KiB as revision', 'RING-REVISION-OF-ONE', {
    revise: (document) => hash(document.slice(0, 65_536)),
  }),
  wrapped('never ends its close', 'RING-INSTANCE-CLOSES', () => ({ close: () => new Promise(() => undefined) })),
  wrapped('shares one connection between stores', 'RING-CLOSE-OTHERS', (sound, backend) => ({
    async read(options?: RingStoreCallOptions) {
      if (closed.has(backend)) throw new RingStoreError('unavailable', 'the client is closed');
      return sound.read(options);
    },
    close: async () => void closed.add(backend),
  })),

  // Lengths of documents.
  broken('truncates at 64 KiB', 'RING-LARGEST', { stored: (document) => document.slice(0, 65_536) }),
  broken('refuses more than 100 000 bytes', 'RING-LARGEST', {
    checkSize(document) {
      if (Buffer.byteLength(document) > 100_000) throw new RingStoreError('too-large', 'over 100 000 bytes');
    },
  }),
  broken('accepts large documents', 'RING-TOO-LARGE', { checkSize: () => undefined, present: (row) => row }),
  broken('counts characters instead of bytes', 'RING-TOO-LARGE', {
    checkSize(document) {
      if (document.length > MOST) throw new RingStoreError('too-large', 'over 262 144 characters');
    },
    present: (row) => row,
  }),
  broken('reports a document that is too large as corrupt', 'RING-TOO-LARGE', {
    checkSize(document) {
      if (Buffer.byteLength(document) > MOST) throw new RingStoreError('corrupt', 'over 262 144 bytes');
    },
  }),
  broken('returns a stored document that is too large', 'RING-TOO-LARGE-THERE', { present: (row) => row }),
  broken('reads a document that is too large as absent', 'RING-TOO-LARGE-THERE', {
    present: (row) => (row !== undefined && Buffer.byteLength(row.document) > MOST ? undefined : SOUND.present(row)),
  }),
  broken('omits the revision from a too-large error', 'RING-TOO-LARGE-REPLACED', {
    present(row) {
      SOUND.checkSize(row?.document ?? '');
      return SOUND.present(row);
    },
  }),
  broken('has an invalid revision in a too-large error', 'RING-TOO-LARGE-REPLACED', {
    present(row) {
      const revision = randomUUID();
      const isTooLarge = row !== undefined && Buffer.byteLength(row.document) > MOST;
      if (isTooLarge) throw new RingStoreError('too-large', 'over 262 144 bytes', { revision });
      return SOUND.present(row);
    },
  }),
  wrapped('calls its watchers all the time', 'RING-WATCH-QUIET', (sound) => ({
    watch(changed: () => void) {
      const end = sound.watch?.(changed);
      const timer = setInterval(changed, 5).unref();
      return () => {
        clearInterval(timer);
        end?.();
      };
    },
  })),
  wrapped('leaves a timer after close', 'RING-NO-TIMERS', (sound) => {
    let timer: NodeJS.Timeout | undefined;
    return {
      read(options?: RingStoreCallOptions) {
        timer ??= setInterval(() => undefined, 1_000);
        return sound.read(options);
      },
    };
  }),
  wrapped('prints a line for every write', 'RING-QUIET', (sound) => ({
    async write(document: string, options: WriteOptions) {
      const written = await sound.write(document, options);
      process.stdout.write('\u200b');
      return written;
    },
  })),
  wrapped('replaces a global function', 'RING-NO-GLOBALS', (sound) => ({
    async read(options?: RingStoreCallOptions) {
      globalThis.queueMicrotask = (work) => ownQueueMicrotask(work);
      return sound.read(options);
    },
  })),
  wrapped('leaves a listener on the process', 'RING-NO-TIMERS', (sound) => {
    process.setMaxListeners(1_000);
    process.on('beforeExit', () => undefined);
    return sound;
  }),
  wrapped('changes a setting of all errors', 'RING-NO-GLOBALS', (sound) => ({
    read(options?: RingStoreCallOptions) {
      Error.stackTraceLimit = Error.stackTraceLimit === 11 ? 12 : 11;
      return sound.read(options);
    },
  })),
  wrapped('has the last known revision in a too-large error', 'RING-TOO-LARGE-REPLACED', (sound) => {
    let known: string | undefined;
    const read = async (options?: RingStoreCallOptions): ReturnType<RingStore['read']> => {
      try {
        const found = await sound.read(options);
        known = found?.revision;
        return found;
      } catch (error) {
        if (!(error instanceof RingStoreError) || error.kind !== 'too-large') throw error;
        throw new RingStoreError('too-large', 'over 262 144 bytes', { revision: known ?? error.revision });
      }
    };
    return { read };
  }),
  broken('reads an empty document as absent', 'RING-EMPTY-THERE', {
    present: (row) => (row?.document === '' ? undefined : SOUND.present(row)),
  }),
  broken('names no revision of what is empty', 'RING-EMPTY-CORRUPT', {
    present: (row) => {
      if (row?.document === '') throw new RingStoreError('corrupt', 'empty');
      return SOUND.present(row);
    },
  }),

  // Revisions.
  wrapped('returns a new revision for every read', 'RING-REVISION-STABLE', (sound) => ({
    async read(options?: RingStoreCallOptions) {
      const found = await sound.read(options);
      return found === undefined ? undefined : { ...found, revision: `${found.revision}.${randomUUID()}` };
    },
  })),
  broken('counts bytes as revision', 'RING-REVISION-OF-ONE', { revise: (document) => String(document.length) }),
  broken('uses the time in seconds as revision', 'RING-REVISION-OF-ONE', {
    revise: () => String(Math.floor(Date.now() / 1_000)),
  }),
  broken('declares unique revisions, but uses a hash', 'RING-REVISION-UNIQUE', { revise: hash }),
  broken('restarts its counter', 'RING-REVISION-REMOVED', {
    revise: (_, before) => String(Number(before?.revision ?? 0) + 1),
  }),
  wrapped('caches its own writes', 'RING-REMOVED', (sound) => {
    let written: { readonly document: string; readonly revision: string } | undefined;
    return {
      read: async (options?: RingStoreCallOptions) => (await sound.read(options)) ?? written,
      async write(document: string, options: WriteOptions) {
        const { revision } = await sound.write(document, options);
        written = { document, revision };
        return { revision };
      },
    };
  }),

  // Winning and losing writes.
  broken('treats undefined as any revision', 'RING-CREATE-ONLY-ABSENT', {
    matches: (row, expected) => expected === undefined || SOUND.matches(row, expected),
  }),
  idempotent('confirms an equal creation', 'RING-CREATE-ONLY-ABSENT', (expected) => expected === undefined),
  idempotent('confirms a stale write with an equal document', 'RING-STALE-LOSES', (expected) => expected !== undefined),
  wrapped('writes nothing if the document is the one that it read', 'RING-STALE-LOSES', (sound) => {
    let last: Awaited<ReturnType<RingStore['read']>>;
    return {
      async read(options?: RingStoreCallOptions) {
        last = await sound.read(options);
        return last;
      },
      async write(document: string, options: WriteOptions) {
        const isSame = document === last?.document && options.expected === last?.revision;
        return isSame ? { revision: last?.revision } : sound.write(document, options);
      },
    };
  }),
  broken('creates a ring although it expects a revision', 'RING-STALE-LOSES', {
    matches: (row, expected) => row === undefined || SOUND.matches(row, expected),
  }),
  broken('ignores the expected revision', 'RING-STALE-LOSES', { matches: () => true }),
  broken('only checks that a ring is stored', 'RING-STALE-LOSES', {
    matches: (row, expected) => (row === undefined) === (expected === undefined),
  }),
  broken('treats an empty expectation as undefined', 'RING-FOREIGN-LOSES', {
    matches: (row, expected) => SOUND.matches(row, expected === '' ? undefined : expected),
  }),
  broken('pads what is expected', 'RING-FOREIGN-LOSES', {
    matches: (row, expected) => SOUND.matches(row, expected?.trimEnd()),
  }),
  wrapped('has no condition in the request that returns the date', 'RING-STALE-LOSES', (sound) => ({
    async write(document: string, options: WriteOptions) {
      if (options.onServiceDate === undefined) return sound.write(document, options);
      const found = await sound.read(options);
      return sound.write(document, { ...options, expected: found?.revision });
    },
  })),
  wrapped('keeps the expectation in a field', 'RING-STALE-LOSES', (sound) => {
    let latest: string | undefined;
    return {
      async write(document: string, options: WriteOptions) {
        latest = options.expected;
        await pause(1);
        return sound.write(document, { ...options, expected: latest });
      },
    };
  }),
  wrapped('keeps the document in a field', 'RING-STALE-LOSES', (sound) => {
    let latest = '';
    return {
      async write(document: string, options: WriteOptions) {
        latest = document;
        await pause(1);
        return sound.write(latest, options);
      },
    };
  }),
  broken('takes white space from what is expected', 'RING-FOREIGN-CONFLICT', {
    matches: (row, expected) => SOUND.matches(row, expected?.trim()),
  }),
  broken('compares revisions without regard to case', 'RING-FOREIGN-CONFLICT', {
    revise: () => randomUUID(),
    matches: (row, expected) => row?.revision.toLowerCase() === expected?.toLowerCase(),
  }),
  broken('accepts a weak entity tag as a strong one', 'RING-FOREIGN-CONFLICT', {
    matches: (row, expected) => SOUND.matches(row, expected?.replace(/^W\//, '')),
  }),
  broken('trims the start of the expected revision', 'RING-FOREIGN-CONFLICT', {
    matches: (row, expected) => SOUND.matches(row, expected?.trimStart()),
  }),
  ...Object.entries(LOOSE).map(([name, equal]) =>
    broken(name, 'RING-FOREIGN-LOSES', { revise: uuid, matches: loose(equal) }),
  ),
  ...Object.entries(LOOSE_NUMBERS).map(([name, equal]) =>
    broken(name, 'RING-FOREIGN-LOSES', { matches: loose(equal) }),
  ),
  ...Object.entries(SPELLED).map(([name, read]) =>
    broken(name, 'RING-FOREIGN-CONFLICT', {
      revise: uuid,
      matches: loose((expected, revision) => read(expected) === revision),
    }),
  ),
  broken('accepts another notation of a number', 'RING-FOREIGN-CONFLICT', {
    matches: loose((expected, revision) => /^0x|e0$|^[+]/.test(expected) && Number(expected) === Number(revision)),
  }),
  ...Object.entries(REFUSED).map(([name, isRefused]) =>
    wrapped(name, 'RING-FOREIGN-CONFLICT', (sound) => ({
      async write(document: string, options: WriteOptions) {
        if (isRefused(options.expected ?? ''))
          throw new RingStoreError('unavailable', 'the service refused the request');
        return sound.write(document, options);
      },
    })),
  ),
  wrapped('loses its connection after an odd revision', 'RING-FOREIGN-CONFLICT', (sound) => {
    let isLost = false;
    return {
      async read(options?: RingStoreCallOptions) {
        if (isLost) throw new RingStoreError('unavailable', 'no connection');
        return sound.read(options);
      },
      write(document: string, options: WriteOptions) {
        isLost ||= options.expected?.includes('\0') === true;
        return sound.write(document, options);
      },
    };
  }),
  broken('compares only the beginning of a counter', 'RING-STALE-LOSES', {
    revise: (_, before) => String(Number(before?.revision ?? 0) + 1),
    matches: loose((expected, revision) => expected !== '' && revision.startsWith(expected)),
  }),
  broken('rejects a conflict with a plain error', 'RING-CONFLICT-ERROR', {
    conflict() {
      throw new Error('conflict');
    },
  }),
  broken('imitates the class of a conflict', 'RING-ERROR-INSTANCE', {
    conflict() {
      throw Object.assign(new Error('another writer was first'), { name: 'RingConflictError' });
    },
  }),
  broken('reports a conflict as unavailable', 'RING-CONFLICT-ERROR', {
    conflict() {
      throw new RingStoreError('unavailable', 'conflict');
    },
  }),
  broken('returns false for a conflict', 'RING-CONFLICT-ERROR', { conflict: () => false }),
  broken('returns null for a conflict', 'RING-CONFLICT-ERROR', { conflict: () => null }),
  broken('rejects a write of the stored document', 'RING-REWRITE', {
    swap: (backend, key, row, matches) =>
      backend.rows.get(key)?.document !== row.document && SOUND.swap(backend, key, row, matches),
  }),

  // Concurrent calls.
  broken('compares, then writes', 'RING-CAS-ONE-WINNER', {
    async swap(backend, key, row, matches) {
      if (!matches()) return false;
      await pause(1);
      backend.rows.set(key, row);
      return true;
    },
  }),
  broken('checks, then creates', 'RING-CREATE-ONE-WINNER', {
    async swap(backend, key, row, matches) {
      if (backend.rows.has(key)) return SOUND.swap(backend, key, row, matches);
      await pause(1);
      backend.rows.set(key, row);
      return true;
    },
  }),
  broken('sometimes loses an addition', 'RING-NO-LOST-UPDATE', {
    swap(backend, key, row, matches) {
      if (!matches()) return false;
      // Acknowledges the fifth version without writing it.
      if (row.document !== '5') return SOUND.swap(backend, key, row, matches);
      const { document = '' } = backend.rows.get(key) ?? {};
      backend.rows.set(key, { document, revision: row.revision });
      return true;
    },
  }),
  broken('writes a document in two halves', 'RING-READ-WHOLE', {
    async swap(backend, key, row, matches) {
      if (!matches()) return false;
      const half = row.document.slice(0, row.document.length >> 1);
      backend.rows.set(key, { document: half, revision: row.revision });
      await pause(5);
      backend.rows.set(key, row);
      return true;
    },
  }),
  broken('writes the revision before the document', 'RING-READ-WHOLE', {
    async swap(backend, key, row, matches) {
      if (!matches()) return false;
      backend.rows.set(key, { document: backend.rows.get(key)?.document ?? row.document, revision: row.revision });
      await pause(5);
      backend.rows.set(key, row);
      return true;
    },
  }),
  broken('removes the old version before it writes', 'RING-READ-CURRENT', {
    async swap(backend, key, row, matches) {
      if (!matches()) return false;
      if (!backend.rows.has(key)) return SOUND.swap(backend, key, row, matches);
      backend.rows.delete(key);
      await pause(5);
      backend.rows.set(key, row);
      return true;
    },
  }),
  wrapped('caches reads', 'RING-READ-AFTER-WRITE', (sound) => cached(sound, 3)),
  wrapped('caches reads', 'RING-READ-CURRENT', (sound) => cached(sound, 10)),
  wrapped('reads from a replica', 'RING-READ-AFTER-WRITE', (sound, backend, name) => ({
    read: () => sound.read().then(() => replicaOf(backend, name)),
    async write(document: string, options: WriteOptions) {
      const before = backend.rows.get(name);
      const written = await sound.write(document, options);
      replicas.set(backend, (replicas.get(backend) ?? new Map()).set(name, { row: before, left: 3 }));
      return written;
    },
  })),
  wrapped('reads alternately from two replicas', 'RING-READ-MONOTONE', (sound) => {
    const history: Awaited<ReturnType<RingStore['read']>>[] = [];
    let turn = 0;
    return {
      async read(options?: RingStoreCallOptions) {
        const found = await sound.read(options);
        if (found?.document !== history.at(-1)?.document) history.push(found);
        // The other replica misses every second version.
        return history.length % 2 === 0 && turn++ % 2 === 1 ? history.at(-2) : found;
      },
    };
  }),
  wrapped('shows the document of a losing write for a while', 'RING-LOSER-NEVER-APPEARS', (sound, backend) => ({
    async read(options?: RingStoreCallOptions) {
      const found = await sound.read(options);
      const loser = losers.get(backend);
      if (found === undefined || loser === undefined || loser.left-- <= 0) return found;
      return { document: loser.document, revision: found.revision };
    },
    write: (document: string, options: WriteOptions) =>
      sound.write(document, options).catch((error: unknown) => {
        losers.set(backend, { document, left: 2 });
        throw error;
      }),
  })),
  wrapped('answers from its last read of an absent ring in an outage', 'RING-UNREACHABLE', (sound) => {
    let isAbsent = false;
    return {
      async read(options?: RingStoreCallOptions) {
        try {
          const found = await sound.read(options);
          isAbsent = found === undefined;
          return found;
        } catch (error) {
          if (isAbsent && options?.signal?.aborted !== true) return undefined;
          throw error;
        }
      },
    };
  }),
  wrapped('passes on an error of the caller that looks like its own', 'RING-ABORTED', (sound) => ({
    async read(options?: RingStoreCallOptions) {
      const reason: unknown = options?.signal?.reason;
      if (reason instanceof Error && reason.name.startsWith('Ring')) throw reason;
      return sound.read(options);
    },
  })),
  wrapped('reports no date to a caller with a signal', 'RING-SERVICE-DATE', (sound) => ({
    read: ({ signal, onServiceDate }: RingStoreCallOptions = {}) =>
      sound.read({ ...(signal && { signal }), ...(signal === undefined && onServiceDate && { onServiceDate }) }),
  })),
  wrapped('shows its own write before that has won', 'RING-LOSER-NEVER-APPEARS', (sound) => {
    let pending: string | undefined;
    return {
      async read(options?: RingStoreCallOptions) {
        const found = await sound.read(options);
        return found === undefined || pending === undefined ? found : { ...found, document: pending };
      },
      async write(document: string, options: WriteOptions) {
        pending = document;
        try {
          return await sound.write(document, options);
        } finally {
          pending = undefined;
        }
      },
    };
  }),
  wrapped('fails at ten concurrent reads', 'RING-PARALLEL-READS', (sound) => {
    let reading = 0;
    return {
      async read(options?: RingStoreCallOptions) {
        if (reading >= 10) throw new RingStoreError('unavailable', 'no connection is free');
        reading++;
        try {
          return await sound.read(options);
        } finally {
          reading--;
        }
      },
    };
  }),

  // Aborts and outages.
  broken('ignores an aborted signal', 'RING-ABORTED', {
    refuse: () => undefined,
    travel: (backend) => SOUND.travel(backend, undefined),
  }),
  broken('rejects with an AbortError', 'RING-ABORTED', { refuse: (signal) => signal?.throwIfAborted() }),
  broken('writes before it checks the signal', 'RING-ABORTED', {
    refuse: () => undefined,
    travel: (backend) => SOUND.travel(backend, undefined),
    done(signal, revision) {
      refuse(signal);
      return { revision };
    },
    present: SOUND.present,
  }),
  wrapped('reads absent when aborted in progress', 'RING-ABORT-READ', (sound) => ({
    read: (options?: RingStoreCallOptions) =>
      sound.read(options).catch((error: unknown) => {
        if (options?.signal?.aborted === true) return undefined;
        throw error;
      }),
  })),
  wrapped('rejects with an AbortError when aborted in progress', 'RING-ABORT-READ', (sound) => ({
    async read(options?: RingStoreCallOptions) {
      try {
        return await sound.read(options);
      } catch (error) {
        throw options?.signal?.aborted === true ? options.signal.reason : error;
      }
    },
  })),
  wrapped('leaves half a write when aborted', 'RING-ABORT-WRITE', (sound, backend, name) => ({
    write: (document: string, options: WriteOptions) =>
      sound.write(document, options).catch((error: unknown) => {
        const row = backend.rows.get(name);
        if (options.signal?.aborted === true && row !== undefined) {
          backend.rows.set(name, { document: document.slice(0, 10), revision: row.revision });
        }
        throw error;
      }),
  })),
  wrapped('resolves an aborted write', 'RING-ABORT-WRITE', (sound) => ({
    write: (document: string, options: WriteOptions) =>
      sound.write(document, options).catch((error: unknown) => {
        if (options.signal?.aborted === true) return { revision: String(++ordinal) };
        throw error;
      }),
  })),
  broken('waits forever', 'RING-ABORT-ENDS', {
    async travel(backend) {
      while (backend.isDown) await pause(50, undefined, { ref: false });
      await pause(backend.tripMs());
    },
  }),
  wrapped('answers from a cache in an outage', 'RING-UNREACHABLE', (sound) => {
    let last: Awaited<ReturnType<RingStore['read']>>;
    return {
      async read(options?: RingStoreCallOptions) {
        try {
          last = await sound.read(options);
        } catch (error) {
          if (last === undefined || options?.signal?.aborted === true) throw error;
        }
        return last;
      },
    };
  }),
  wrapped('reads an outage as absent', 'RING-UNREACHABLE', (sound, backend) => ({
    read: (options?: RingStoreCallOptions) =>
      sound.read(options).catch((error: unknown) => {
        if (backend.isDown) return undefined;
        throw error;
      }),
  })),
  wrapped('rejects with a driver error in an outage', 'RING-UNREACHABLE', (sound, backend) => ({
    async read(options?: RingStoreCallOptions) {
      if (backend.isDown) throw Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
      return sound.read(options);
    },
  })),
  wrapped('resolves a write in an outage', 'RING-UNREACHABLE', (sound, backend) => ({
    async write(document: string, options: WriteOptions) {
      return backend.isDown ? { revision: String(++ordinal) } : sound.write(document, options);
    },
  })),
  wrapped('never recovers', 'RING-RECOVERS', (sound, backend) => {
    let isBroken = false;
    return {
      async read(options?: RingStoreCallOptions) {
        isBroken ||= backend.isDown;
        if (isBroken) throw new RingStoreError('unavailable', 'the connection was lost');
        return sound.read(options);
      },
    };
  }),

  // Dates.
  wrapped('reports no date', 'RING-SERVICE-DATE', (sound) => ({
    read: ({ signal }: RingStoreCallOptions = {}) => sound.read(signal === undefined ? {} : { signal }),
  })),
  wrapped('reports the local time before it asks', 'RING-UNREACHABLE', (sound) => ({
    read(options: RingStoreCallOptions = {}) {
      options.onServiceDate?.(new Date());
      return sound.read(options);
    },
  })),
  {
    target: zooRingTarget('reports dates, but denies it', {}, { supports: { serviceDate: false } }),
    caughtBy: 'RING-SERVICE-DATE',
  },
  wrapped('reports seconds as milliseconds', 'RING-SERVICE-DATE-VALID', (sound) => ({
    read: (options: RingStoreCallOptions = {}) =>
      sound.read({
        ...options,
        onServiceDate: (date) => options.onServiceDate?.(new Date(date.getTime() / 1_000)),
      }),
  })),
  wrapped('reports a date as text', 'RING-SERVICE-DATE-VALID', (sound) => ({
    read: (options: RingStoreCallOptions = {}) =>
      sound.read({ ...options, onServiceDate: (date) => options.onServiceDate?.(date.toUTCString() as never) }),
  })),

  // Push.
  wrapped('never calls its watchers', 'RING-WATCH-HEARS', () => ({ watch: () => () => undefined })),
  wrapped('supports only one watcher', 'RING-WATCH-HEARS', (sound) => {
    let end: (() => void) | undefined;
    return {
      watch(changed: () => void) {
        end?.();
        end = sound.watch?.(changed);
        return end;
      },
    };
  }),
  wrapped('declares push, but has no watch', 'RING-WATCH-HEARS', () => ({ watch: undefined })),
  wrapped('returns nothing from watch', 'RING-WATCH-HEARS', (sound) => ({
    watch: (changed: () => void) => void sound.watch?.(changed),
  })),
  wrapped('shows a password in its location', 'RING-SHAPE', () => ({
    location: `zoo://app:${randomUUID()}@db/ring`,
  })),
  wrapped('has an object as location', 'RING-SHAPE', () => ({ location: new URL('zoo://db/ring') })),
  ...[
    ['reads absent after close', async () => undefined] as const,
    ['answers from a cache after close', async (last: unknown) => last] as const,
    ['never answers after close', () => new Promise(() => undefined)] as const,
  ].map(([title, answer]) =>
    wrapped(title, 'RING-CLOSED', (sound) => {
      let isClosed = false;
      let last: Awaited<ReturnType<RingStore['read']>>;
      return {
        async read(options?: RingStoreCallOptions) {
          if (isClosed) return answer(last);
          last = await sound.read(options);
          // The store was closed during the call.
          return isClosed && title.startsWith('never') ? answer(last) : last;
        },
        close: async () => void (isClosed = true),
      };
    }),
  ),
  ...[
    ['loses a write during close', { revision: 'lost' }] as const,
    ['reports a conflict after close', new RingConflictError()] as const,
  ].map(([title, answer]) =>
    wrapped(title, 'RING-CLOSED', (sound) => {
      let isClosed = false;
      return {
        async write(document: string, options: WriteOptions) {
          await pause(1);
          if (!isClosed) return sound.write(document, options);
          if (answer instanceof Error) throw answer;
          return answer;
        },
        close: async () => void (isClosed = true),
      };
    }),
  ),
  wrapped('throws the driver’s error once it is closed', 'RING-CLOSED', (sound) => {
    let isClosed = false;
    return {
      async read(options?: RingStoreCallOptions) {
        if (isClosed) throw new Error('the pool has ended');
        return sound.read(options);
      },
      close: async () => void (isClosed = true),
    };
  }),
  wrapped('fails at a second close', 'RING-CLOSED-UNAVAILABLE', () => {
    let count = 0;
    return {
      async close() {
        if (++count > 1) throw new Error('called end on a pool that has ended');
      },
    };
  }),
  wrapped('hangs at a second close', 'RING-CLOSED-UNAVAILABLE', () => {
    let count = 0;
    return { close: () => (++count > 1 ? new Promise(() => undefined) : Promise.resolve()) };
  }),
  wrapped('waits for an unreachable backend in close', 'RING-INSTANCE-CLOSES', (_, backend) => ({
    close: () => (backend.isDown ? new Promise(() => undefined) : Promise.resolve()),
  })),
  wrapped('reads absent at the second try in an outage', 'RING-UNREACHABLE', (sound, backend) => {
    let failures = 0;
    return {
      read: (options?: RingStoreCallOptions) =>
        sound.read(options).catch((error: unknown) => {
          if (!backend.isDown || ++failures < 2) throw error;
          return undefined;
        }),
    };
  }),
  ...[
    ['leaves a listener on the signal', () => true] as const,
    ['leaves a listener after a losing write', (error: unknown) => error instanceof RingConflictError] as const,
    ['leaves a listener on an aborted signal', (_: unknown, signal?: AbortSignal) => signal?.aborted === true] as const,
  ].map(([title, isLeft]) =>
    wrapped(title, 'RING-SIGNAL-LEFT', (sound) => {
      const left = async <T>(call: Promise<T>, signal: AbortSignal | undefined): Promise<T> => {
        const [outcome] = await Promise.allSettled([call]);
        const reason: unknown = outcome?.status === 'rejected' ? outcome.reason : undefined;
        if (isLeft(reason, signal)) signal?.addEventListener('abort', () => undefined);
        return call;
      };
      return {
        read: (options?: RingStoreCallOptions) => left(sound.read(options), options?.signal),
        write: (document: string, options: WriteOptions) => left(sound.write(document, options), options.signal),
      };
    }),
  ),
  wrapped('answers an aborted read from a cache', 'RING-ABORTED', (sound) => {
    let last: Awaited<ReturnType<RingStore['read']>>;
    return {
      read: async (options?: RingStoreCallOptions) => {
        if (options?.signal?.aborted === true && last !== undefined) return last;
        last = await sound.read(options);
        return last;
      },
    };
  }),
  wrapped('sends an aborted write later', 'RING-ABORTED', (sound) => ({
    async write(document: string, options: WriteOptions) {
      if (options.signal?.aborted === true) {
        setTimeout(() => void sound.write(document, { expected: options.expected }).catch(() => undefined), 100);
      }
      return sound.write(document, options);
    },
  })),
  wrapped('returns the answer to an aborted read to the next read', 'RING-ABORT-READ', (sound) => {
    const unasked: (() => ReturnType<RingStore['read']>)[] = [];
    return {
      async read(options?: RingStoreCallOptions) {
        const own = sound.read(options);
        const found = await own.catch(async (error: unknown) => {
          const late = sound.read();
          unasked.push(() => late);
          await late;
          throw error;
        });
        const before = unasked.shift();
        if (before === undefined) return found;
        unasked.push(async () => found);
        return before();
      },
    };
  }),
  wrapped('aborts every write on its connection', 'RING-ABORT-OTHERS', (sound) => {
    let all = new AbortController();
    return {
      async write(document: string, options: WriteOptions) {
        const mine = all;
        options.signal?.addEventListener('abort', () => {
          mine.abort();
          all = new AbortController();
        });
        if (options.signal?.aborted === true) return sound.write(document, options);
        return sound.write(document, { ...options, signal: mine.signal });
      },
    };
  }),
  wrapped('calls a watcher only three times', 'RING-WATCH-HEARS', (sound) => ({
    watch(changed: () => void) {
      let count = 0;
      return sound.watch?.(() => {
        if (++count <= 3) changed();
      });
    },
  })),
  wrapped('calls a watcher before the write is visible', 'RING-WATCH-HEARS', (sound, backend, name) => ({
    async write(document: string, options: WriteOptions) {
      const watchers = backend.watchers.get(name) ?? new Set();
      const hears = [...watchers];
      for (const changed of hears) changed();
      await pause(20);
      watchers.clear();
      try {
        return await sound.write(document, options);
      } finally {
        for (const changed of hears) watchers.add(changed);
      }
    },
  })),
  wrapped('ends a watcher when a write loses', 'RING-WATCH-HEARS', (sound, backend, name) => ({
    write: (document: string, options: WriteOptions) =>
      sound.write(document, options).catch((error: unknown) => {
        if (error instanceof RingConflictError) backend.watchers.get(name)?.clear();
        throw error;
      }),
  })),
  wrapped('cannot read during a callback', 'RING-WATCH-HEARS', (sound) => {
    let isCalling = false;
    return {
      read: (options?: RingStoreCallOptions) =>
        isCalling ? Promise.reject(new RingStoreError('unavailable', 'busy')) : sound.read(options),
      watch: (changed: () => void) =>
        sound.watch?.(() => {
          isCalling = true;
          changed();
          isCalling = false;
        }),
    };
  }),
  wrapped('counts ended watchers against its limit of ten', 'RING-WATCH-ENDS', (sound) => {
    let count = 0;
    return { watch: (changed: () => void) => (++count > 10 ? () => undefined : sound.watch?.(changed)) };
  }),
  wrapped('cannot end a watcher during its callback', 'RING-WATCH-ENDS', (sound) => ({
    watch(changed: () => void) {
      let isCalling = false;
      const end = sound.watch?.(() => {
        isCalling = true;
        changed();
        isCalling = false;
      });
      return () => {
        if (isCalling) throw new Error('the set is being iterated');
        end?.();
      };
    },
  })),
  wrapped('subscribes ended watchers again after an outage', 'RING-WATCH-RECOVERS', (sound, backend) => ({
    watch(changed: () => void) {
      const end = sound.watch?.(changed);
      return () => {
        end?.();
        const again = setInterval(() => {
          if (!backend.isDown) return;
          clearInterval(again);
          sound.watch?.(changed);
        }, 10);
        again.unref();
      };
    },
  })),
  wrapped('calls a watcher a moment later, even if it has ended', 'RING-WATCH-ENDS', (sound) => ({
    watch: (changed: () => void) => sound.watch?.(() => void setTimeout(changed, 60)),
  })),
  wrapped('does not write a document that differs only in case', 'RING-ROUNDTRIP', (sound) => ({
    async write(document: string, options: WriteOptions) {
      const there = await sound.read();
      const isSame = there?.revision === options.expected && there?.document.toLowerCase() === document.toLowerCase();
      return isSame && there.document !== document ? { revision: there.revision } : sound.write(document, options);
    },
  })),
  wrapped('cannot end a watcher after close', 'RING-WATCH-ENDS', (sound) => {
    let isClosed = false;
    return {
      watch(changed: () => void) {
        const end = sound.watch?.(changed);
        return () => {
          if (isClosed) throw new TypeError('the subscriber is null');
          end?.();
        };
      },
      async close() {
        isClosed = true;
        await sound.close?.();
      },
    };
  }),
  wrapped('never unsubscribes', 'RING-WATCH-ENDS', (sound) => ({
    watch(changed: () => void) {
      sound.watch?.(changed);
      return () => undefined;
    },
  })),
  wrapped('stores callbacks in a set', 'RING-WATCH-ENDS', (sound) => {
    const ends = new Map<() => void, () => void>();
    return {
      watch(changed: () => void) {
        const end = ends.get(changed) ?? sound.watch?.(changed) ?? (() => undefined);
        ends.set(changed, end);
        return end;
      },
    };
  }),
  wrapped('unsubscribes every watcher', 'RING-WATCH-ENDS', (sound, backend, name) => ({
    watch(changed: () => void) {
      sound.watch?.(changed);
      return () => backend.watchers.get(name)?.clear();
    },
  })),
  wrapped('watches with nothing, and has no end', 'RING-WATCH-ARGUMENT', (sound) => ({
    watch: (changed: unknown) => (typeof changed === 'function' ? sound.watch?.(changed as () => void) : undefined),
  })),
  wrapped('watches on after its close', 'RING-WATCH-ENDS', () => ({ close: async () => undefined })),
  {
    target: zooRingTarget('has watch, but denies push', {}, { supports: { push: false } }),
    caughtBy: 'RING-WATCH-DECLARED',
  },

  // Faults after a failure, or without an answer.
  wrapped('sends what was used up by a write that failed', 'RING-RECOVERS', (sound) => {
    let isUsedUp = false;
    return {
      async write(document: string, options: WriteOptions) {
        const sent = isUsedUp ? document.slice(document.length / 2) : document;
        isUsedUp = false;
        try {
          return await sound.write(sent, options);
        } catch (error) {
          isUsedUp = error instanceof RingStoreError;
          throw error;
        }
      },
    };
  }),
  wrapped('dates an answer that did not come', 'RING-SERVICE-DATE-VALID', (sound) => ({
    read: async (options?: RingStoreCallOptions) =>
      sound.read(options).catch((error: unknown) => {
        options?.onServiceDate?.(new Date());
        throw error;
      }),
  })),
  wrapped('dates an answer with the time of the one before', 'RING-SERVICE-DATE-VALID', (sound) => {
    let last: Date | undefined;
    return {
      read: (options: RingStoreCallOptions = {}) =>
        sound.read({
          ...options,
          onServiceDate(date) {
            options.onServiceDate?.(last ?? date);
            last = date;
          },
        }),
    };
  }),
  wrapped('answers its first read with what it has read ahead', 'RING-READ-AFTER-WRITE', (sound) => {
    let ahead: ReturnType<RingStore['read']> | undefined = sound.read();
    ahead.catch(() => undefined);
    return {
      async read(options: RingStoreCallOptions = {}) {
        const first = ahead;
        ahead = undefined;
        return (await first) ?? sound.read(options);
      },
    };
  }),
  wrapped('fills the same object for each read', 'RING-READ-WHOLE', (sound) => {
    const result = { document: '', revision: '' };
    return {
      async read(options?: RingStoreCallOptions) {
        const found = await sound.read(options);
        return found === undefined ? undefined : Object.assign(result, found);
      },
    };
  }),
  wrapped('ends its watchers with the ring that was there', 'RING-WATCH-REMOVED', (sound, backend, name) => ({
    watch(changed: () => void) {
      const end = sound.watch?.(changed);
      if (end !== undefined && backend.rows.has(name)) tied.set(backend, [...(tied.get(backend) ?? []), end]);
      return end;
    },
    async write(document: string, options: WriteOptions) {
      if (options.expected === undefined && !backend.rows.has(name)) for (const end of tied.get(backend) ?? []) end();
      return sound.write(document, options);
    },
  })),

  // The caller's mistakes.
  broken('takes anything for a document', 'RING-WRITE-ARGUMENTS', {
    check: () => undefined,
    checkSize: () => undefined,
    stored: String,
  }),
  wrapped('takes a missing expectation for any', 'RING-WRITE-ARGUMENTS', (sound) => ({
    async write(document: string, options: Partial<WriteOptions> = {}) {
      const expected = 'expected' in options ? options.expected : (await sound.read())?.revision;
      return sound.write(document, { ...options, expected });
    },
  })),
  wrapped('is absent to options that it cannot read', 'RING-READ-ARGUMENTS', (sound) => ({
    read: async (options?: RingStoreCallOptions) =>
      options === undefined || typeof options === 'object' ? sound.read(options ?? undefined) : undefined,
  })),
];

/** The row of a lagging replica, for the next reads. */
function replicaOf(backend: ZooBackend, name: string): Row | undefined {
  const lagging = replicas.get(backend)?.get(name);
  return lagging !== undefined && lagging.left-- > 0 ? lagging.row : backend.rows.get(name);
}
