import { randomBytes } from 'node:crypto';
import { RingConflictError, type RingStore, RingStoreError, type StoredRing } from '@sealring/core';
import { type Outcome, Push, ringStorage, serviceDate } from '@sealring/core/adapter';
import type { RedisClient } from './client.ts';
import { connectionOf } from './connection.ts';
import type { Failure } from './error-table.ts';
import { type RedisRingOptions, readRingOptions } from './options.ts';
import { pushListener } from './push.ts';
import { READ, runScript, WRITE } from './scripts.ts';

const OWNER = 'redisRing';
const REVISION_BYTES = 16;

/**
 * A ring store in Redis 7.0 or later, or in Valkey. The ring is one hash, which a script compares and replaces; while
 * the script runs, Redis runs no other command.
 *
 * A revision is 16 random bytes, so that none recurs after a deletion, a flush or a failover. A document may have up to
 * 262 144 bytes; the error for a stored value that is `too-large` or `corrupt` contains the revision of that value.
 * Only a primary is read. Every call ends within `callTimeoutSeconds`; a write that fails as `unavailable` may have
 * succeeded.
 *
 * `watch` uses a second connection, which does not keep the process alive. It also calls back after each reconnection,
 * because it may have missed writes. `close` closes this connection, and also the client if the store created it from
 * `url`.
 *
 * A write that has resolved is only as durable as the server: see the README on persistence, replicas and
 * `maxmemory-policy`.
 *
 * @throws {TypeError} for a wrong or unknown option, or if not exactly one of `client` and `url` is given.
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
  const connect = connection.client.duplicate?.bind(connection.client);
  const push = connect && new Push({ connect: () => pushListener(connect(), key), timeoutMs: settings.timeoutMs });

  return Object.freeze<RingStore>({
    kind: 'redis',
    location: locationOf(settings.source, key),

    async read(given) {
      ringStorage.checkRead(OWNER, given);
      const bound = [String(ringStorage.MAX_DOCUMENT_BYTES)];
      const outcome = await connection.run(given?.signal, (to, ended) => runScript(to, READ, key, bound, ended));
      const [status, time, revision, document] = fieldsOf(outcome);
      serviceDate.noteServiceTime(Number.parseInt(String(time), 10) * 1_000, given?.onServiceDate);
      return storedRing(String(status), String(revision), document);
    },

    async write(document, given) {
      ringStorage.checkWrite(OWNER, document, given);
      const { expected, signal } = given;
      const revision = randomBytes(REVISION_BYTES).toString('base64url');
      const values = [expected === undefined ? 'absent' : `=${expected}`, document, revision];
      const outcome = await connection.run(signal, (to, ended) => runScript(to, WRITE, key, values, ended));
      const status = String(fieldsOf(outcome)[0]);
      if (status === 'conflict') throw new RingConflictError();
      if (status !== 'written') throw new RingStoreError('unavailable', 'the script returned an unexpected answer');
      return { revision };
    },

    ...(push && {
      watch(changed: () => void) {
        ringStorage.checkWatcher(OWNER, changed);
        return push.add(changed);
      },
    }),

    async close() {
      push?.close();
      connection.close();
    },
  });
}

/** The script's answer: a status, then the values. @throws {RingStoreError} */
function fieldsOf(outcome: Outcome<unknown, Failure>): readonly unknown[] {
  if ('failure' in outcome) throw new RingStoreError(outcome.failure.kind, outcome.failure.detail, outcome.failure);
  return Array.isArray(outcome.answer) ? outcome.answer : [];
}

function storedRing(status: string, revision: string, document: unknown): StoredRing | undefined {
  switch (status) {
    case 'absent':
      return undefined;
    case 'foreign':
      throw new RingStoreError('corrupt', 'the key holds something other than a ring', { revision });
    case 'too-large':
      throw ringStorage.tooLarge(revision);
    case 'replica':
      throw new RingStoreError(
        'unavailable',
        'the server is a replica: a failover is under way, or the address is wrong',
      );
  }
  const bytes = typeof document === 'string' ? Buffer.from(document) : document;
  if (status !== 'held' || !Buffer.isBuffer(bytes))
    throw new RingStoreError('unavailable', 'the script returned an unexpected answer');
  const read = ringStorage.decodeDocument(bytes, 'key');
  if ('failure' in read) throw new RingStoreError(read.failure.kind, read.failure.detail, { revision });
  return { document: read.answer, revision };
}

/** The location without the user and the password that the URL can contain. */
function locationOf(source: RedisClient | string, key: string): string {
  if (typeof source !== 'string') return `redis key ${key}`;
  const { protocol, host } = new URL(source);
  return `${protocol}//${host}, key ${key}`;
}
