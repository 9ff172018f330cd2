import { RingConflictError, type RingStore, RingStoreError, type StoredRing } from '@sealring/core';
import { type Outcome, Push, ringStorage, serviceDate, vendorError } from '@sealring/core/adapter';
import { connectionOf } from './connection.ts';
import type { Failure } from './error-table.ts';
import { type PostgresRingOptions, readRingOptions } from './options.ts';
import { channelOf, pushListener } from './push.ts';

const OWNER = 'postgresRing';

/**
 * A ring store in one row of a table in PostgreSQL 13 or later. A single statement compares and replaces the row. The
 * table is created by {@link migrate} or `schema.sql`, never by the store.
 *
 * A revision is a random UUID, so that none recurs after a deletion, or after a backup is restored. A document may have
 * up to 262 144 bytes, and must not contain a NUL; the error for a stored document that is `too-large` or empty
 * contains the revision of that document. Only a primary is read. Every call ends within `callTimeoutSeconds`. A write
 * that fails as `unavailable` may have succeeded; if the row is still at `expected`, the write may also succeed later
 * on the server.
 *
 * `watch` listens on its own connection, outside the pool, and does not keep the process alive. It also calls back
 * after each reconnection, because it may have missed writes. `close` closes this connection, and also the pool if the
 * store created it from `connectionString`.
 *
 * @throws {TypeError} for a wrong or unknown option, or if not exactly one of `pool` and `connectionString` is given.
 * @throws {RangeError} for a value outside its bounds.
 *
 * @example
 * ```ts
 * const ring = postgresRing({ pool: new Pool({ connectionString }), name: 'payments' });
 * ```
 */
export function postgresRing(options: PostgresRingOptions): RingStore {
  const settings = readRingOptions(options);
  const { name, table } = settings;
  const connection = connectionOf(settings);
  const statements = statementsFor(table);
  const channel = channelOf(table, name);
  const { createListener } = connection;
  const connect = createListener && (() => pushListener(createListener(), channel));
  const push = connect && new Push({ connect, timeoutMs: settings.timeoutMs });

  return Object.freeze<RingStore>({
    kind: 'postgres',
    location: `postgres table ${table}, row ${name}`,

    async read(given) {
      ringStorage.checkRead(OWNER, given);
      const values = [name, ringStorage.MAX_DOCUMENT_BYTES];
      const row = rowOf(await connection.query(given?.signal, { text: statements.read, values }));
      serviceDate.noteServiceTime(Number(vendorError.property(row, 'serverMs')), given?.onServiceDate);
      return storedRing(row);
    },

    async write(document, given) {
      ringStorage.checkWrite(OWNER, document, given);
      if (document.includes('\0')) {
        throw new TypeError(`${OWNER}: document contains a NUL, which PostgreSQL text cannot store`);
      }
      const { expected, signal } = given;
      // No stored revision contains a NUL, so this write is a conflict. PostgreSQL would refuse the text.
      if (expected?.includes('\0') === true) throw new RingConflictError();
      const outcome = await connection.query(
        signal,
        expected === undefined
          ? { text: statements.create, values: [name, document, channel] }
          : { text: statements.replace, values: [name, document, channel, expected] },
      );
      // At isolation levels above READ COMMITTED, the transaction that lost gets this code.
      if ('failure' in outcome && outcome.failure.serviceCode === '40001') throw new RingConflictError();
      const row = rowOf(outcome);
      if (row === undefined) throw new RingConflictError();
      return { revision: textOf(row, 'revision') };
    },

    ...(push && {
      watch(changed: () => void) {
        ringStorage.checkWatcher(OWNER, changed);
        return push.add(changed);
      },
    }),

    async close() {
      push?.close();
      await connection.close();
    },
  });
}

interface Statements {
  readonly read: string;
  readonly create: string;
  readonly replace: string;
}

function statementsFor(table: string): Statements {
  // The notification is part of the statement, so that it is sent if and only if the write is committed.
  const told = "SELECT revision::text AS revision, pg_notify($3, '') FROM written";
  return {
    // One row in any case: an answer without a row does not show that the ring is absent. The size is compared before the
    // document is selected, so that a document that is too long is never sent.
    read: `SELECT pg_is_in_recovery() AS standby, ring.revision::text AS revision,
      floor(extract(epoch FROM clock_timestamp()) * 1000)::text AS "serverMs",
      octet_length(ring.document) > $2 AS "isTooLarge",
      CASE WHEN octet_length(ring.document) <= $2 THEN ring.document END AS document
      FROM (VALUES (1)) AS one LEFT JOIN ${table} AS ring ON ring.name = $1`,
    create: `WITH written AS (INSERT INTO ${table} (name, document, revision) VALUES ($1, $2, gen_random_uuid())
      ON CONFLICT (name) DO NOTHING RETURNING revision) ${told}`,
    // The revision is compared as text, because other spellings of the same UUID would be equal as UUIDs.
    replace: `WITH written AS (UPDATE ${table} SET document = $2, revision = gen_random_uuid()
      WHERE name = $1 AND revision::text = $4 RETURNING revision) ${told}`,
  };
}

/** The only row, or none. @throws {RingStoreError} */
function rowOf(outcome: Outcome<readonly unknown[], Failure>): unknown {
  if ('answer' in outcome) return outcome.answer[0];
  throw new RingStoreError(outcome.failure.kind, outcome.failure.detail, outcome.failure);
}

function storedRing(row: unknown): StoredRing | undefined {
  if (vendorError.property(row, 'standby') !== false) {
    throw new RingStoreError(
      'unavailable',
      'the server is a standby: a failover is under way, or the address is wrong',
    );
  }
  if (vendorError.property(row, 'revision') === null) return undefined;
  const revision = textOf(row, 'revision');
  if (vendorError.property(row, 'isTooLarge') !== false) throw ringStorage.tooLarge(revision);
  const document = textOf(row, 'document');
  if (document === '') throw new RingStoreError('corrupt', 'the document is empty', { revision });
  return { document, revision };
}

function textOf(row: unknown, column: string): string {
  const value = vendorError.property(row, column);
  if (typeof value === 'string') return value;
  throw new RingStoreError('unavailable', 'the statement returned an unexpected answer');
}
