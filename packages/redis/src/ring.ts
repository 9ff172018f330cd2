import { isUtf8 } from 'node:buffer';
import { randomBytes } from 'node:crypto';
import {
  RingConflictError,
  type RingStore,
  RingStoreError,
  type RingStoreErrorKind,
  type StoredRing,
} from '@sealring/core';
import {
  checkRead,
  checkWatcher,
  checkWrite,
  MAX_DOCUMENT_BYTES,
  noteServiceTime,
  type Outcome,
  Push,
  TOO_LARGE,
} from '@sealring/core/adapter';
import { connectionOf } from './connection.ts';
import type { Failure } from './error-table.ts';
import { type RedisRingOptions, readRingOptions } from './options.ts';
import { pushListener } from './push.ts';
import { READ, runScript, WRITE } from './scripts.ts';

const OWNER = 'redisRing';
const REVISION_BYTES = 16;

/**
 * A ring store in Redis 7.0 or later, or Valkey: one hash, compared and replaced by a script, which Redis runs alone.
 *
 * A revision is 16 random bytes, so that none recurs after a deletion, a flush or a failover. A document may have up to
 * 262 144 bytes; the error for a stored value that is `too-large` or `corrupt` has its revision. Only a primary is read.
 * Every call ends within `callTimeoutSeconds`; a write that ends as `unavailable` may have succeeded.
 *
 * `watch` uses a second connection, which does not keep the process alive. It also calls back after each reconnection,
 * for writes that it may have missed. `close` closes it, and the client that was created from `url`.
 *
 * A resolved write is as durable as the server: see the README on persistence, replicas and `maxmemory-policy`.
 *
 * @throws {TypeError} for a wrong or unknown option, and unless exactly one of `client` and `url` is given.
 * @throws {RangeError} for a value outside its bounds.
 *
 * @example
 * ```ts
 * const client = await createClient({ url: 'rediss://redis.internal' }).on('error', console.error).connect();
 * const ring = redisRing({ client, key: 'sealring:payments' });
 * ```
 */
export function redisRing(options: RedisRingOptions): RingStore {
  const settings = readRingOptions(options);
  const key = settings.name;
  const connection = connectionOf(settings);
  const { client } = connection;
  const push = new Push({
    connect() {
      const subscriber = client.duplicate?.();
      return subscriber === undefined ? undefined : pushListener(subscriber, key);
    },
    timeoutMs: settings.timeoutMs,
  });

  return Object.freeze<RingStore>({
    kind: 'redis',
    location: locationOf(settings.url, key),

    async read(given) {
      checkRead(OWNER, given);
      const bound = [String(MAX_DOCUMENT_BYTES)];
      const outcome = await connection.run(given?.signal, (to, ended) => runScript(to, READ, key, bound, ended));
      const [status, time, ...held] = fieldsOf(outcome);
      noteServiceTime(Number.parseInt(String(time), 10) * 1_000, given?.onServiceDate);
      return storedRing(status, held);
    },

    async write(document, given) {
      checkWrite(OWNER, document, given);
      const { expected, signal } = given;
      const revision = randomBytes(REVISION_BYTES).toString('base64url');
      const values = [expected === undefined ? 'absent' : `=${expected}`, document, revision];
      const outcome = await connection.run(signal, (to, ended) => runScript(to, WRITE, key, values, ended));
      const [status] = fieldsOf(outcome);
      if (status === 'conflict') throw new RingConflictError();
      if (status !== 'written') throw refusal(status);
      return { revision };
    },

    ...(client.duplicate === undefined
      ? {}
      : {
          watch(changed: () => void) {
            checkWatcher(OWNER, changed);
            return push.add(changed);
          },
        }),

    async close() {
      push.close();
      connection.close();
    },
  });
}

type Field = string | Buffer;

/** The script's answer: a status, then what it found. @throws {RingStoreError} */
function fieldsOf(outcome: Outcome<unknown, Failure>): readonly [string, ...Field[]] {
  if ('failure' in outcome) throw new RingStoreError(outcome.failure.kind, outcome.failure.detail, outcome.failure);
  const fields: readonly unknown[] = Array.isArray(outcome.answer) ? outcome.answer : [];
  if (!fields.every(isField)) throw new RingStoreError('unavailable', 'the script returned an unexpected answer');
  const [status = '', ...rest] = fields;
  return [String(status), ...rest];
}

function isField(value: unknown): value is Field {
  return typeof value === 'string' || Buffer.isBuffer(value);
}

function storedRing(status: string, [found, document]: readonly Field[]): StoredRing | undefined {
  if (status === 'absent') return undefined;
  const revision = found === undefined ? undefined : String(found);
  if (status !== 'held' || document === undefined || revision === undefined) throw refusal(status, revision);
  if (Buffer.isBuffer(document) && !isUtf8(document)) throw new RingStoreError('corrupt', 'not UTF-8', { revision });
  if (document.length === 0) throw new RingStoreError('corrupt', 'the document is empty', { revision });
  return { document: String(document), revision };
}

const REFUSALS: Readonly<Record<string, readonly [RingStoreErrorKind, string]>> = Object.freeze({
  replica: ['unavailable', 'the server is a replica: a failover is under way, or the address is wrong'],
  foreign: ['corrupt', 'the key holds something other than a ring'],
  'too-large': [TOO_LARGE.kind, TOO_LARGE.detail],
});

function refusal(status: string, revision?: string): RingStoreError {
  const [kind, detail] = REFUSALS[status] ?? ['unavailable', 'the script returned an unexpected answer'];
  const isSeen = revision !== undefined && kind !== 'unavailable';
  return new RingStoreError(kind, detail, isSeen ? { revision } : {});
}

/** Without the user and the password that the URL can contain. */
function locationOf(url: string | undefined, key: string): string {
  if (url === undefined) return `redis key ${key}`;
  const { protocol, host } = new URL(url);
  return `${protocol}//${host}, key ${key}`;
}
