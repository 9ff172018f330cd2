import { option, ringStorage } from '@sealring/core/adapter';
import { tableOf } from './options.ts';

/** The tables to create. If you omit a name, the table gets the default name of the store that uses it. */
export interface PostgresTables {
  /** Default `sealring_ring`. */
  readonly ring?: string;
  /** Default `sealring_single_use`. */
  readonly singleUse?: string;
}

/**
 * Serializes concurrent migrations, which CREATE TABLE IF NOT EXISTS does not do. The value can be any number that no
 * other program uses.
 */
const LOCK = 5_387_104_662;

/**
 * The statements that create both tables, as text for your migration tool. With the default names, this is the text of
 * `schema.sql` in this package. Run it as one transaction (`psql -1`). It changes no existing table.
 *
 * @throws {TypeError | RangeError} for an invalid table name.
 */
export function schemaSql(tables: PostgresTables = {}): string {
  const owner = 'schemaSql';
  option.refuseUnknown(owner, tables, ['ring', 'singleUse']);
  const ring = tableOf(owner, 'ring', tables.ring ?? 'sealring_ring');
  const singleUse = tableOf(owner, 'singleUse', tables.singleUse ?? 'sealring_single_use');
  const index = singleUse.replace(/^.*\./, '').replace(/"$/, '_expires_at"');
  return `SELECT pg_advisory_xact_lock(${LOCK});
CREATE TABLE IF NOT EXISTS ${ring} (
  name text PRIMARY KEY,
  document text NOT NULL CHECK (octet_length(document) BETWEEN 1 AND ${ringStorage.MAX_DOCUMENT_BYTES}),
  -- Random, not counted: a row that was deleted, or restored from a backup, must not repeat one.
  revision uuid NOT NULL DEFAULT gen_random_uuid()
);
CREATE TABLE IF NOT EXISTS ${singleUse} (
  id text PRIMARY KEY,
  expires_at timestamptz NOT NULL
);
CREATE INDEX IF NOT EXISTS ${index} ON ${singleUse} (expires_at);
`;
}

/**
 * Creates both tables if they are missing, with a `pg` client or pool whose user has permission to do so. The stores
 * never create them, because a database that lost its tables must not look like a new one.
 *
 * @throws whatever the client throws. Only deployments call this function, so the client's errors are passed on
 * unchanged.
 *
 * @example
 * ```ts
 * await migrate(pool);
 * ```
 */
export async function migrate(
  client: { query(text: string): Promise<unknown> },
  tables: PostgresTables = {},
): Promise<void> {
  const sql = schemaSql(tables);
  // Without parameters, the text is sent as one message and runs as one transaction (PostgreSQL documentation,
  // 55.2.2.1).
  await client.query(sql);
}
