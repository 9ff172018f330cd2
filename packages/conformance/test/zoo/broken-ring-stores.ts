import { createHash, randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { RingConflictError, type RingStore, type RingStoreCallOptions, RingStoreError } from '@sealring/core';
import type { RingStoreTarget } from '../../src/index.ts';

/** A store with one fault, and the requirement that has to catch it. */
export interface BrokenRingStore {
  readonly target: RingStoreTarget;
  readonly caughtBy: string;
}

interface Row {
  readonly document: string;
  readonly revision: string;
}

/** A database in this process: what it is asked is done in one step, but the way there and back takes time. */
class ZooBackend {
  readonly rows = new Map<string, Row>();
  readonly watchers = new Map<string, Set<() => void>>();
  isDown = false;
  #trips = 0;

  /** Zero to three milliseconds, in an order that is the same in every run: chance would let a fault hide. */
  tripMs(): number {
    return [1, 3, 0, 2, 0, 1][this.#trips++ % 6] ?? 0;
  }

  tell(key: string): void {
    for (const changed of this.watchers.get(key) ?? []) setImmediate(changed);
  }
}

type WriteOptions = RingStoreCallOptions & { readonly expected: string | undefined };

const MOST = 262_144;
/** Its own, for an answer that does not come. */
const DEADLINE_MS = 2_000;
let ordinal = 0;
const refuse = (signal: AbortSignal | undefined): void => {
  if (signal?.aborted === true) throw new RingStoreError('unavailable', 'aborted');
};

/** What a sound store of the zoo does, step by step; a broken one does one step otherwise. */
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

/** A target of the zoo on a backend of its own, with every way round the store. */
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

/** A sound store around which something is wrong. */
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

/** Fails with an error that shows more than it should, while nobody answers. */
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

/** Who loses to a document that is the same has not lost: to some of those who write. */
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

/** Goes on with what it read before a change, for so many reads. A time instead would pass unnoticed on a slow machine. */
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

/** Takes what is more or less the current revision for it. */
function loose(equal: (expected: string, revision: string) => boolean): Steps['matches'] {
  return (row, expected) =>
    row?.revision === expected || (row !== undefined && expected !== undefined && equal(expected, row.revision));
}

type Equal = (expected: string, revision: string) => boolean;

/** Equal to a UUID. */
const LOOSE: Readonly<Record<string, Equal>> = {
  'compares the beginning of what is stored': (expected, revision) => expected !== '' && revision.startsWith(expected),
  'compares the end of what is stored': (expected, revision) => expected !== '' && revision.endsWith(expected),
  'compares the beginning of what is expected': (expected, revision) => expected.startsWith(revision),
  'compares the end of what is expected': (expected, revision) => expected.endsWith(revision),
  'compares all but the last character': (expected, revision) => expected.slice(0, 35) === revision.slice(0, 35),
  'compares all but the first character': (expected, revision) => expected.slice(1) === revision.slice(1),
  'compares the last twelve characters': (expected, revision) => expected.slice(-12) === revision.slice(-12),
  'compares the characters in any order': (expected, revision) =>
    Array.from(expected).toSorted().join('') === Array.from(revision).toSorted().join(''),
  'looks what is expected up in an object': (expected, revision) =>
    Reflect.get({ [revision]: 1 }, expected) !== undefined,
};

/** Equal to a counter. */
const LOOSE_NUMBERS: Readonly<Record<string, Equal>> = {
  'keeps 32 bits of what is expected': (expected, revision) =>
    /^\d+$/.test(expected) && BigInt.asUintN(32, BigInt(expected)) === BigInt(revision),
  'keeps 64 bits of what is expected': (expected, revision) =>
    /^\d+$/.test(expected) && BigInt.asUintN(64, BigInt(expected)) === BigInt(revision),
  'takes the next one for the current one': (expected, revision) => Number(expected) === Number(revision) + 1,
};

/** What a service makes of what is expected. */
const SPELLED: Readonly<Record<string, (expected: string) => string>> = {
  'cuts what is expected at a NUL': (expected) => expected.split('\0')[0] ?? '',
  'leaves out the NULs of what is expected': (expected) => expected.replaceAll('\0', ''),
  'leaves out a carriage return': (expected) => expected.replace(/\r$/, ''),
  'leaves out a tab': (expected) => expected.replace(/\t$/, ''),
  'leaves out a no-break space': (expected) => expected.replace(/\u00a0$/, ''),
  'leaves out a byte order mark': (expected) => expected.replace(/^\ufeff/, ''),
  'leaves out what has no width': (expected) => expected.replaceAll(/[\u00ad\u200b]/g, ''),
  'leaves out lone surrogates': (expected) => expected.replaceAll(/[\ud800-\udfff]/g, ''),
  'keeps seven bits': (expected) => String.fromCharCode(...Buffer.from(expected, 'latin1').map((byte) => byte & 0x7f)),
  'keeps eight bits': (expected) => Buffer.from(expected, 'latin1').toString('latin1'),
  'normalizes what is expected': (expected) => expected.normalize('NFKC'),
  'decodes what is expected': (expected) => (/^(?:%\w\w)+$/.test(expected) ? decodeURIComponent(expected) : expected),
  'takes it out of quotes': (expected) => expected.replaceAll('"', ''),
  'takes it out of braces': (expected) => expected.replaceAll(/[{}]/g, ''),
  'takes it from a list': (expected) => expected.split(', ').at(-1) ?? '',
  'takes it from the start of a list': (expected) => expected.split(',')[0] ?? '',
  'leaves out its parameters': (expected) => expected.split(';')[0] ?? '',
  'adds the hyphens of a UUID': (expected) =>
    expected.replace(/^(\w{8})(\w{4})(\w{4})(\w{4})(\w{12})$/, '$1-$2-$3-$4-$5'),
};

/** What a service cannot be asked for. */
const REFUSED: Readonly<Record<string, (expected: string) => boolean>> = {
  'cannot send a NUL': (expected) => expected.includes('\0'),
  'cannot send a lone surrogate': (expected) => !expected.isWellFormed(),
  'cannot send a line break': (expected) => /[\r\n]/.test(expected),
  'cannot send more than Latin 1': (expected) => /[^\0-\u00ff]/.test(expected),
  'cannot send a long revision': (expected) => expected.length > 8_192,
  'cannot send a backslash': (expected) => expected.includes('\\'),
  'cannot send a number of more than 64 bits': (expected) => /^\d{20,}$/.test(expected),
};

/** What becomes of a document that formats or programs take for something else. */
const CHANGED: Readonly<Record<string, (document: string) => string>> = {
  'a line end at the end is a line feed': (document) => document.replace(/\r\n$/, '\n'),
  'cuts off a carriage return': (document) => document.replace(/\r$/, ''),
  'replaces noncharacters': (document) => document.replaceAll(/[\ufdd0-\ufdef]/g, '\ufffd'),
  'leaves out variation selectors': (document) => document.replaceAll('\ufe0f', ''),
  'takes two percent signs for one': (document) => document.replaceAll('%%', '%'),
  'leaves out comments': (document) => document.replaceAll(/\/\*.*?\*\//gs, ''),
  'leaves out lines that begin with a number sign': (document) => document.replaceAll(/^#.*\n/gm, ''),
  'leaves out members that are null': (document) => document.replaceAll(/"[^"]*":null,/g, ''),
  'rounds large numbers': (document) => document.replaceAll(/\b\d{17,}\b/g, (digits) => String(Number(digits))),
  'takes an escaped slash for a slash': (document) => document.replaceAll('\\/', '/'),
  'decodes what looks like base64': (document) =>
    /^[A-Za-z0-9]{8}$/.test(document) ? Buffer.from(document, 'base64').toString() : document,
  'decodes what looks like bytes': (document) =>
    /^\\x[0-9a-f]+$/.test(document) ? Buffer.from(document.slice(2), 'hex').toString() : document,
  'reads a file of that name': (document) => document.replace(/^@/, ''),
  'takes it for an option': (document) => document.replace(/^--/, ''),
};

const sessions = new WeakMap<ZooBackend, number>();
const closed = new WeakSet<ZooBackend>();
const replicas = new WeakMap<ZooBackend, Map<string, { readonly row: Row | undefined; left: number }>>();
const losers = new WeakMap<ZooBackend, { readonly document: string; left: number }>();

export const BROKEN_RING_STORES: readonly BrokenRingStore[] = [
  // What a store is made of, and what it answers with.
  wrapped('has no kind', 'RING-SHAPE', () => ({ kind: undefined })),
  wrapped('throws at once when aborted', 'RING-ASYNCHRONOUS', (sound) => ({
    read(options?: RingStoreCallOptions) {
      refuse(options?.signal);
      return sound.read(options);
    },
  })),
  wrapped('answers at once', 'RING-ASYNCHRONOUS', (_, backend, name) => ({ read: () => backend.rows.get(name) })),
  wrapped('throws at once for what is too large', 'RING-ASYNCHRONOUS', (sound) => ({
    write(document: string, options: WriteOptions) {
      SOUND.checkSize(document);
      return sound.write(document, options);
    },
  })),
  broken('counts with numbers', 'RING-RESULT', { done: (_, revision) => ({ revision: Number(revision) }) }),
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
  wrapped('keeps the error it got as a cause', 'RING-ERROR-TEXT', (sound) => ({
    write: (document: string, options: WriteOptions) =>
      sound.write(document, options).catch((error: unknown) => {
        throw Object.assign(new RingConflictError(), { cause: error });
      }),
  })),
  wrapped('shows the head of what is too large to read', 'RING-ERROR-TEXT', (sound, backend, name) => ({
    read: (options?: RingStoreCallOptions) =>
      sound.read(options).catch((error: unknown) => {
        throw Object.assign(error as Error, { head: backend.rows.get(name)?.document.slice(0, 100) });
      }),
  })),
  wrapped('shows which statement failed', 'RING-ERROR-TEXT', (sound) => ({
    write: (document: string, options: WriteOptions) =>
      sound.write(document, options).catch((error: unknown) => {
        throw Object.assign(error as Error, { statement: `UPDATE ring SET document = '${document}'` });
      }),
  })),
  outOfReach(
    'shows where it cannot log in',
    () => new RingStoreError('unavailable', `zoo://app:${randomUUID()}@10.0.0.7/ring`),
  ),
  outOfReach(
    'shows its connection string',
    () => new RingStoreError('unavailable', `Host=db;Password=${randomUUID()}`),
  ),
  outOfReach('keeps the driver’s error', (error) => Object.assign(error, { original: new Error('ECONNREFUSED') })),
  outOfReach('keeps the errors of every address', (error) =>
    Object.assign(error, { errors: [new Error('ECONNREFUSED ::1'), new Error('ECONNREFUSED 127.0.0.1')] }),
  ),
  outOfReach('keeps the request that was not answered', (error, document) =>
    Object.assign(error, { request: { body: Buffer.from(document).toString('base64') } }),
  ),
  outOfReach(
    'says what it could not write',
    (_, document) => new RingStoreError('unavailable', `not sent: ${document}`),
  ),

  ...['false', '0', '{}', 'undefined', '\n', ' '].map((nothing) =>
    broken(`takes ${JSON.stringify(nothing)} for nothing`, 'RING-ROUNDTRIP', {
      present: (row) => (row?.document === nothing ? undefined : SOUND.present(row)),
    }),
  ),
  broken('adds a suffix that is there already', 'RING-NAMES-SEPARATE', {
    keyOf: (name) => name.replace(/\.ring$/, ''),
  }),
  broken('takes off what stands before a dot', 'RING-NAMES-SEPARATE', {
    keyOf: (name) => name.replace(/^[a-z]\./, ''),
  }),
  ...Object.entries(CHANGED).map(([name, stored]) => broken(name, 'RING-ROUNDTRIP', { stored })),
  broken('hashes one byte of each character', 'RING-REVISION-OF-ONE', {
    revise: (document) => hash(Buffer.from(document, 'latin1').toString('latin1')),
  }),
  broken('hashes nothing but ASCII', 'RING-REVISION-OF-ONE', {
    revise: (document) => hash(document.replaceAll(/[^\0-\u007f]/g, '?')),
  }),
  wrapped('takes a document with the same ends for the same', 'RING-LARGEST', (sound) => {
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
  // Absent, and what was written.
  broken('null for absent', 'RING-ABSENT', { present: (row) => (row === undefined ? null : SOUND.present(row)) }),
  broken('an empty document for absent', 'RING-ABSENT', {
    present: (row) => SOUND.present(row) ?? { document: '', revision: '' },
  }),
  broken('an error for absent', 'RING-ABSENT', {
    present(row) {
      if (row === undefined) throw new RingStoreError('unavailable', 'not found');
      return SOUND.present(row);
    },
  }),
  broken('Latin-1', 'RING-ROUNDTRIP', { stored: (document) => Buffer.from(document, 'latin1').toString('latin1') }),
  broken('UTF-8 of three bytes', 'RING-ROUNDTRIP', {
    stored: (document) => document.replaceAll(/[\u{10000}-\u{10ffff}]/gu, '?'),
  }),
  broken('trims', 'RING-ROUNDTRIP', { stored: (document) => document.trim() || document }),
  broken('one kind of line ends', 'RING-ROUNDTRIP', { stored: (document) => document.replaceAll('\r\n', '\n') }),
  broken('strips a byte order mark', 'RING-ROUNDTRIP', { stored: (document) => document.replace(/^\ufeff/, '') }),
  broken('composes characters', 'RING-ROUNDTRIP', { stored: (document) => document.normalize('NFC') }),
  broken('a JSON column', 'RING-ROUNDTRIP', {
    stored(document) {
      try {
        return JSON.stringify(JSON.parse(document));
      } catch {
        return document;
      }
    },
  }),
  broken('text ends at a NUL', 'RING-NUL', { stored: (document) => document.split('\0')[0] ?? '' }),
  wrapped('keeps its documents to itself', 'RING-DURABLE', (_, backend, name) => {
    // A session: what was written is lost when the last store is closed.
    sessions.set(backend, (sessions.get(backend) ?? 0) + 1);
    return {
      async close() {
        const left = (sessions.get(backend) ?? 1) - 1;
        sessions.set(backend, left);
        if (left === 0) backend.rows.delete(name);
      },
    };
  }),
  broken('one row for all', 'RING-NAMES-SEPARATE', { keyOf: () => 'ring' }, { remove: () => undefined }),
  broken('names by their first characters', 'RING-NAMES-SEPARATE', { keyOf: (name) => name.slice(0, 16) }),
  broken('cuts names at 63 characters', 'RING-NAMES-SEPARATE', { keyOf: (name) => name.slice(0, 63) }),
  broken('cuts names to their last 63 characters', 'RING-NAMES-SEPARATE', { keyOf: (name) => name.slice(-63) }),
  broken('finds a name by LIKE', 'RING-NAMES-SEPARATE', {
    find: (backend, key) => {
      const like = new RegExp(`^${key.replaceAll('.', '\\.').replaceAll('_', '.')}$`);
      return [...backend.rows].find(([name]) => like.test(name))?.[1];
    },
  }),
  broken('drops leading zeros from the numbers in names', 'RING-NAMES-SEPARATE', {
    keyOf: (name) => name.replaceAll(/([._-])0+(?=\d)/g, '$1'),
  }),
  wrapped('reports an update of an absent ring as absent', 'RING-REVISION-FOREIGN', (sound) => ({
    async write(document: string, options: WriteOptions) {
      if (options.expected !== undefined && (await sound.read()) === undefined) {
        throw new RingStoreError('absent', 'no ring is stored');
      }
      return sound.write(document, options);
    },
  })),
  broken('takes its revision from a hash of the first 64 KiB', 'RING-REVISION-OF-ONE', {
    revise: (document) => hash(document.slice(0, 65_536)),
  }),
  wrapped('never ends its close', 'RING-INSTANCE-CLOSES', () => ({ close: () => new Promise(() => undefined) })),
  wrapped('one connection for all', 'RING-CLOSE-OTHERS', (sound, backend) => ({
    async read(options?: RingStoreCallOptions) {
      if (closed.has(backend)) throw new RingStoreError('unavailable', 'the client is closed');
      return sound.read(options);
    },
    close: async () => void closed.add(backend),
  })),

  // How long a document may be.
  broken('cuts at 64 KiB', 'RING-LARGEST', { stored: (document) => document.slice(0, 65_536) }),
  broken('refuses over 100 000 bytes', 'RING-LARGEST', {
    checkSize(document) {
      if (Buffer.byteLength(document) > 100_000) throw new RingStoreError('too-large', 'over 100 000 bytes');
    },
  }),
  broken('takes what is too large', 'RING-TOO-LARGE', { checkSize: () => undefined, present: (row) => row }),
  broken('counts characters, not bytes', 'RING-TOO-LARGE', {
    checkSize(document) {
      if (document.length > MOST) throw new RingStoreError('too-large', 'over 262 144 characters');
    },
    present: (row) => row,
  }),
  broken('calls what is too large corrupt', 'RING-TOO-LARGE', {
    checkSize(document) {
      if (Buffer.byteLength(document) > MOST) throw new RingStoreError('corrupt', 'over 262 144 bytes');
    },
  }),
  broken('reads what is too large', 'RING-TOO-LARGE-THERE', { present: (row) => row }),
  broken('too large is absent', 'RING-TOO-LARGE-THERE', {
    present: (row) => (row !== undefined && Buffer.byteLength(row.document) > MOST ? undefined : SOUND.present(row)),
  }),
  broken('too large has no revision', 'RING-TOO-LARGE-REPLACED', {
    present(row) {
      SOUND.checkSize(row?.document ?? '');
      return SOUND.present(row);
    },
  }),
  broken('too large has the revision of nothing', 'RING-TOO-LARGE-REPLACED', {
    present(row) {
      const revision = randomUUID();
      const isTooLarge = row !== undefined && Buffer.byteLength(row.document) > MOST;
      if (isTooLarge) throw new RingStoreError('too-large', 'over 262 144 bytes', { revision });
      return SOUND.present(row);
    },
  }),
  broken('empty is absent', 'RING-EMPTY-THERE', {
    present: (row) => (row?.document === '' ? undefined : SOUND.present(row)),
  }),
  broken('names no revision of what is empty', 'RING-EMPTY-CORRUPT', {
    present: (row) => {
      if (row?.document === '') throw new RingStoreError('corrupt', 'empty');
      return SOUND.present(row);
    },
  }),

  // Revisions.
  wrapped('a revision for every read', 'RING-REVISION-STABLE', (sound) => ({
    async read(options?: RingStoreCallOptions) {
      const found = await sound.read(options);
      return found === undefined ? undefined : { ...found, revision: `${found.revision}.${randomUUID()}` };
    },
  })),
  broken('the length is the revision', 'RING-REVISION-OF-ONE', { revise: (document) => String(document.length) }),
  broken('the second is the revision', 'RING-REVISION-OF-ONE', {
    revise: () => String(Math.floor(Date.now() / 1_000)),
  }),
  broken('a hash that claims to be unique', 'RING-REVISION-UNIQUE', { revise: hash }),
  broken('a counter that starts again', 'RING-REVISION-REMOVED', {
    revise: (_, before) => String(Number(before?.revision ?? 0) + 1),
  }),
  wrapped('remembers what it wrote', 'RING-REMOVED', (sound) => {
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

  // What wins, and what loses.
  broken('undefined matches anything', 'RING-CREATE-ONLY-ABSENT', {
    matches: (row, expected) => expected === undefined || SOUND.matches(row, expected),
  }),
  idempotent('creates what is there already', 'RING-CREATE-ONLY-ABSENT', (expected) => expected === undefined),
  idempotent('takes what is there for its own write', 'RING-STALE-LOSES', (expected) => expected !== undefined),
  broken('creates where what it expects is gone', 'RING-STALE-LOSES', {
    matches: (row, expected) => row === undefined || SOUND.matches(row, expected),
  }),
  broken('ignores what is expected', 'RING-STALE-LOSES', { matches: () => true }),
  broken('only asks whether it is there', 'RING-STALE-LOSES', {
    matches: (row, expected) => (row === undefined) === (expected === undefined),
  }),
  broken('an empty expectation is none', 'RING-FOREIGN-LOSES', {
    matches: (row, expected) => SOUND.matches(row, expected === '' ? undefined : expected),
  }),
  broken('pads what is expected', 'RING-FOREIGN-LOSES', {
    matches: (row, expected) => SOUND.matches(row, expected?.trimEnd()),
  }),
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
  broken('compares what is expected without case', 'RING-FOREIGN-CONFLICT', {
    revise: () => randomUUID(),
    matches: (row, expected) => row?.revision.toLowerCase() === expected?.toLowerCase(),
  }),
  broken('takes a weak entity tag for a strong one', 'RING-FOREIGN-CONFLICT', {
    matches: (row, expected) => SOUND.matches(row, expected?.replace(/^W\//, '')),
  }),
  broken('takes white space from the beginning of what is expected', 'RING-FOREIGN-CONFLICT', {
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
  broken('takes a number in other notation', 'RING-FOREIGN-CONFLICT', {
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
  wrapped('loses its connection over a revision', 'RING-FOREIGN-CONFLICT', (sound) => {
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
  broken('compares the beginning of a counter', 'RING-STALE-LOSES', {
    revise: (_, before) => String(Number(before?.revision ?? 0) + 1),
    matches: loose((expected, revision) => expected !== '' && revision.startsWith(expected)),
  }),
  broken('a plain error for a conflict', 'RING-CONFLICT-ERROR', {
    conflict() {
      throw new Error('conflict');
    },
  }),
  broken('unavailable for a conflict', 'RING-CONFLICT-ERROR', {
    conflict() {
      throw new RingStoreError('unavailable', 'conflict');
    },
  }),
  broken('false for a conflict', 'RING-CONFLICT-ERROR', { conflict: () => false }),
  broken('null for a conflict', 'RING-CONFLICT-ERROR', { conflict: () => null }),
  broken('no row was changed', 'RING-REWRITE', {
    swap: (backend, key, row, matches) =>
      backend.rows.get(key)?.document !== row.document && SOUND.swap(backend, key, row, matches),
  }),

  // Many at once.
  broken('looks, then writes', 'RING-CAS-ONE-WINNER', {
    async swap(backend, key, row, matches) {
      if (!matches()) return false;
      await pause(1);
      backend.rows.set(key, row);
      return true;
    },
  }),
  broken('looks, then creates', 'RING-CREATE-ONE-WINNER', {
    async swap(backend, key, row, matches) {
      if (backend.rows.has(key)) return SOUND.swap(backend, key, row, matches);
      await pause(1);
      backend.rows.set(key, row);
      return true;
    },
  }),
  broken('loses an addition now and then', 'RING-NO-LOST-UPDATE', {
    swap(backend, key, row, matches) {
      if (!matches()) return false;
      // The fifth version is acknowledged and never written.
      if (row.document !== '5') return SOUND.swap(backend, key, row, matches);
      const { document = '' } = backend.rows.get(key) ?? {};
      backend.rows.set(key, { document, revision: row.revision });
      return true;
    },
  }),
  broken('writes half, then the other half', 'RING-READ-WHOLE', {
    async swap(backend, key, row, matches) {
      if (!matches()) return false;
      const half = row.document.slice(0, row.document.length >> 1);
      backend.rows.set(key, { document: half, revision: row.revision });
      await pause(5);
      backend.rows.set(key, row);
      return true;
    },
  }),
  broken('writes the revision, then the document', 'RING-READ-WHOLE', {
    async swap(backend, key, row, matches) {
      if (!matches()) return false;
      backend.rows.set(key, { document: backend.rows.get(key)?.document ?? row.document, revision: row.revision });
      await pause(5);
      backend.rows.set(key, row);
      return true;
    },
  }),
  broken('removes, then writes', 'RING-READ-CURRENT', {
    async swap(backend, key, row, matches) {
      if (!matches()) return false;
      if (!backend.rows.has(key)) return SOUND.swap(backend, key, row, matches);
      backend.rows.delete(key);
      await pause(5);
      backend.rows.set(key, row);
      return true;
    },
  }),
  wrapped('caches what it read', 'RING-READ-AFTER-WRITE', (sound) => cached(sound, 3)),
  wrapped('caches what it read', 'RING-READ-CURRENT', (sound) => cached(sound, 10)),
  wrapped('reads from a replica', 'RING-READ-AFTER-WRITE', (sound, backend, name) => ({
    read: () => sound.read().then(() => replicaOf(backend, name)),
    async write(document: string, options: WriteOptions) {
      const before = backend.rows.get(name);
      const written = await sound.write(document, options);
      replicas.set(backend, (replicas.get(backend) ?? new Map()).set(name, { row: before, left: 3 }));
      return written;
    },
  })),
  wrapped('reads from two replicas by turns', 'RING-READ-MONOTONE', (sound) => {
    const history: Awaited<ReturnType<RingStore['read']>>[] = [];
    let turn = 0;
    return {
      async read(options?: RingStoreCallOptions) {
        const found = await sound.read(options);
        if (found?.document !== history.at(-1)?.document) history.push(found);
        // The other one never heard of every second version.
        return history.length % 2 === 0 && turn++ % 2 === 1 ? history.at(-2) : found;
      },
    };
  }),
  wrapped('a loser’s document shows up for a while', 'RING-LOSER-NEVER-APPEARS', (sound, backend) => ({
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
  wrapped('ten reads at once are too many', 'RING-PARALLEL-READS', (sound) => {
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

  // Aborted, and out of reach.
  broken('signal ignored', 'RING-ABORTED', {
    refuse: () => undefined,
    travel: (backend) => SOUND.travel(backend, undefined),
  }),
  broken('an AbortError when aborted', 'RING-ABORTED', { refuse: (signal) => signal?.throwIfAborted() }),
  broken('writes, then asks whether it was aborted', 'RING-ABORTED', {
    refuse: () => undefined,
    travel: (backend) => SOUND.travel(backend, undefined),
    done(signal, revision) {
      refuse(signal);
      return { revision };
    },
    present: SOUND.present,
  }),
  wrapped('absent when aborted on its way', 'RING-ABORT-READ', (sound) => ({
    read: (options?: RingStoreCallOptions) =>
      sound.read(options).catch((error: unknown) => {
        if (options?.signal?.aborted === true) return undefined;
        throw error;
      }),
  })),
  wrapped('an AbortError on its way', 'RING-ABORT-READ', (sound) => ({
    async read(options?: RingStoreCallOptions) {
      try {
        return await sound.read(options);
      } catch (error) {
        throw options?.signal?.aborted === true ? options.signal.reason : error;
      }
    },
  })),
  wrapped('half done when aborted', 'RING-ABORT-WRITE', (sound, backend, name) => ({
    write: (document: string, options: WriteOptions) =>
      sound.write(document, options).catch((error: unknown) => {
        const row = backend.rows.get(name);
        if (options.signal?.aborted === true && row !== undefined) {
          backend.rows.set(name, { document: document.slice(0, 10), revision: row.revision });
        }
        throw error;
      }),
  })),
  wrapped('says written when aborted', 'RING-ABORT-WRITE', (sound) => ({
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
  wrapped('answers from memory when it is out of reach', 'RING-UNREACHABLE', (sound) => {
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
  wrapped('failure is absent', 'RING-UNREACHABLE', (sound, backend) => ({
    read: (options?: RingStoreCallOptions) =>
      sound.read(options).catch((error: unknown) => {
        if (backend.isDown) return undefined;
        throw error;
      }),
  })),
  wrapped('an error of its own out of reach', 'RING-UNREACHABLE', (sound, backend) => ({
    async read(options?: RingStoreCallOptions) {
      if (backend.isDown) throw Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
      return sound.read(options);
    },
  })),
  wrapped('writes later, out of reach', 'RING-UNREACHABLE', (sound, backend) => ({
    async write(document: string, options: WriteOptions) {
      return backend.isDown ? { revision: String(++ordinal) } : sound.write(document, options);
    },
  })),
  wrapped('never comes back', 'RING-RECOVERS', (sound, backend) => {
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
  {
    target: zooRingTarget('reports dates and denies it', {}, { supports: { serviceDate: false } }),
    caughtBy: 'RING-SERVICE-DATE',
  },
  wrapped('seconds for milliseconds', 'RING-SERVICE-DATE-VALID', (sound) => ({
    read: (options: RingStoreCallOptions = {}) =>
      sound.read({
        ...options,
        onServiceDate: (date) => options.onServiceDate?.(new Date(date.getTime() / 1_000)),
      }),
  })),
  wrapped('a date as text', 'RING-SERVICE-DATE-VALID', (sound) => ({
    read: (options: RingStoreCallOptions = {}) =>
      sound.read({ ...options, onServiceDate: (date) => options.onServiceDate?.(date.toUTCString() as never) }),
  })),

  // Push.
  wrapped('watch says nothing', 'RING-WATCH-HEARS', () => ({ watch: () => () => undefined })),
  wrapped('watch takes one watcher', 'RING-WATCH-HEARS', (sound) => {
    let end: (() => void) | undefined;
    return {
      watch(changed: () => void) {
        end?.();
        end = sound.watch?.(changed);
        return end;
      },
    };
  }),
  wrapped('says that it has push', 'RING-WATCH-HEARS', () => ({ watch: undefined })),
  wrapped('watch returns nothing', 'RING-WATCH-HEARS', (sound) => ({
    watch: (changed: () => void) => void sound.watch?.(changed),
  })),
  wrapped('says where it is, and how to log in', 'RING-SHAPE', () => ({
    location: `zoo://app:${randomUUID()}@db/ring`,
  })),
  wrapped('says where it is with an object', 'RING-SHAPE', () => ({ location: new URL('zoo://db/ring') })),
  ...[
    ['absent once it is closed', async () => undefined] as const,
    ['what it knew once it is closed', async (last: unknown) => last] as const,
    ['never answers once it is closed', () => new Promise(() => undefined)] as const,
  ].map(([title, answer]) =>
    wrapped(title, 'RING-CLOSED', (sound) => {
      let isClosed = false;
      let last: Awaited<ReturnType<RingStore['read']>>;
      return {
        async read(options?: RingStoreCallOptions) {
          if (isClosed) return answer(last);
          last = await sound.read(options);
          // The close came in between.
          return isClosed && title.startsWith('never') ? answer(last) : last;
        },
        close: async () => void (isClosed = true),
      };
    }),
  ),
  ...[
    ['loses a write that a close interrupts', { revision: 'lost' }] as const,
    ['reports a conflict once it is closed', new RingConflictError()] as const,
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
  wrapped('cannot be closed twice', 'RING-CLOSED-UNAVAILABLE', () => {
    let count = 0;
    return {
      async close() {
        if (++count > 1) throw new Error('called end on a pool that has ended');
      },
    };
  }),
  wrapped('waits for a second close', 'RING-CLOSED-UNAVAILABLE', () => {
    let count = 0;
    return { close: () => (++count > 1 ? new Promise(() => undefined) : Promise.resolve()) };
  }),
  wrapped('says goodbye to a backend that does not answer', 'RING-INSTANCE-CLOSES', (_, backend) => ({
    close: () => (backend.isDown ? new Promise(() => undefined) : Promise.resolve()),
  })),
  wrapped('absent at the second try', 'RING-UNREACHABLE', (sound, backend) => {
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
    ['listens on the signal', () => true] as const,
    ['listens on the signal of what lost', (error: unknown) => error instanceof RingConflictError] as const,
    ['listens on the signal that aborted', (_: unknown, signal?: AbortSignal) => signal?.aborted === true] as const,
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
  wrapped('answers an aborted read with what it knows', 'RING-ABORTED', (sound) => {
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
  wrapped('gives the answer to an aborted read to the next', 'RING-ABORT-READ', (sound) => {
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
  wrapped('calls three times', 'RING-WATCH-HEARS', (sound) => ({
    watch(changed: () => void) {
      let count = 0;
      return sound.watch?.(() => {
        if (++count <= 3) changed();
      });
    },
  })),
  wrapped('calls before the write can be read', 'RING-WATCH-HEARS', (sound, backend, name) => ({
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
  wrapped('watches until a write loses', 'RING-WATCH-HEARS', (sound, backend, name) => ({
    write: (document: string, options: WriteOptions) =>
      sound.write(document, options).catch((error: unknown) => {
        if (error instanceof RingConflictError) backend.watchers.get(name)?.clear();
        throw error;
      }),
  })),
  wrapped('cannot read while it calls', 'RING-WATCH-HEARS', (sound) => {
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
  wrapped('has room for ten watchers, ended ones too', 'RING-WATCH-ENDS', (sound) => {
    let count = 0;
    return { watch: (changed: () => void) => (++count > 10 ? () => undefined : sound.watch?.(changed)) };
  }),
  wrapped('cannot end a watcher while it is called', 'RING-WATCH-ENDS', (sound) => ({
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
  wrapped('subscribes again whoever has ended', 'RING-WATCH-RECOVERS', (sound, backend) => ({
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
  wrapped('never unsubscribes', 'RING-WATCH-ENDS', (sound) => ({
    watch(changed: () => void) {
      sound.watch?.(changed);
      return () => undefined;
    },
  })),
  wrapped('keeps a set of callbacks', 'RING-WATCH-ENDS', (sound) => {
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
    target: zooRingTarget('has watch and denies push', {}, { supports: { push: false } }),
    caughtBy: 'RING-WATCH-DECLARED',
  },

  // After a failure, or without an answer.
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

/** What a replica holds that lags behind, for the next reads. */
function replicaOf(backend: ZooBackend, name: string): Row | undefined {
  const lagging = replicas.get(backend)?.get(name);
  return lagging !== undefined && lagging.left-- > 0 ? lagging.row : backend.rows.get(name);
}
