import { option, singleUseStorage } from '@sealring/core/adapter';
import type { PostgresListener, PostgresPool } from './client.ts';

/** How to reach the server: exactly one of `pool` and `connectionString` is required. */
export interface PostgresSource {
  /** Your pool, which the store does not end. */
  readonly pool?: PostgresPool;
  /**
   * For convenience: `postgres://user:password@host[:port]/database`, or `postgres://user:password@/database?host=/folder`
   * for a socket. The store then creates a pool of at most 4 connections, and ends it with its own `close`. As always with
   * `pg`, missing parts of the URL are taken from `PG…` environment variables.
   */
  readonly connectionString?: string;
  /** Longest wait for one call, in seconds; 0.01 to 60. Default 5. */
  readonly callTimeoutSeconds?: number;
}

/** Options of {@link postgresRing}: `pool` or `connectionString`, and where the ring is. */
export interface PostgresRingOptions extends PostgresSource {
  /** `table` or `schema.table`, each 1 to 48 characters of `[a-z0-9_]`, not beginning with a digit. Default `sealring_ring`. */
  readonly table?: string;
  /** The ring's row; 1 to 64 characters of `[A-Za-z0-9._-]`. One per ring. Default `default`. */
  readonly name?: string;
  /**
   * Creates a client for push and does not connect it. Required for a pool behind PgBouncer in transaction mode, where
   * LISTEN receives nothing. Default: a `pg.Client` with the options of the pool.
   */
  readonly createListener?: () => PostgresListener;
}

/** Options of {@link postgresSingleUse}: `pool` or `connectionString`, and the table. */
export interface PostgresSingleUseOptions extends PostgresSource {
  /** The table, in the same form as for {@link postgresRing}. Default `sealring_single_use`. */
  readonly table?: string;
  /**
   * How long to remember a token after it expires, in seconds; 0 to 86 400. Use the value of the ring's policy. Default
   * 300.
   */
  readonly clockSkewSeconds?: number;
}

/** A copy of the validated options. */
export interface Settings {
  /** The caller's pool, or the URL for the store's own pool. */
  readonly source: PostgresPool | string;
  readonly timeoutMs: number;
  /** The name of the table, quoted for SQL, because it can be a reserved word. */
  readonly table: string;
  readonly name: string;
  /** How long a token is remembered after it expires; used only for a single-use store. */
  readonly clockSkewMs: number;
  readonly createListener: (() => PostgresListener) | undefined;
}

const SOURCE = ['pool', 'connectionString', 'callTimeoutSeconds', 'table'];

/** @throws {TypeError | RangeError} naming the option and value, never a connection string: it may contain a password. */
export function readRingOptions(options: unknown): Settings {
  return readOptions('postgresRing', options, [...SOURCE, 'name', 'createListener'], 'sealring_ring');
}

/** @throws {TypeError | RangeError} */
export function readSingleUseOptions(options: unknown): Settings {
  return readOptions('postgresSingleUse', options, [...SOURCE, 'clockSkewSeconds'], 'sealring_single_use');
}

function readOptions(owner: string, options: unknown, known: readonly string[], fallback: string): Settings {
  option.refuseUnknown(owner, options, known);
  const given = options as Readonly<Record<string, unknown>>;
  const { pool, connectionString, createListener } = given;
  const { callTimeoutSeconds = 5, table = fallback, name = 'default' } = given;
  if ((pool === undefined) === (connectionString === undefined)) {
    throw option.typeError(`${owner}: give either pool or connectionString`);
  }
  option.checkCallback(owner, 'createListener', createListener);
  return {
    source: pool === undefined ? urlOf(owner, connectionString) : poolOf(owner, pool),
    timeoutMs: option.timeoutMsOf(owner, callTimeoutSeconds),
    table: tableOf(owner, 'table', table),
    name: option.label(owner, 'name', name),
    clockSkewMs: singleUseStorage.clockSkewMsOf(owner, given['clockSkewSeconds']),
    createListener: createListener as (() => PostgresListener) | undefined,
  };
}

/** At most 48 characters leave room for the suffix of an index: PostgreSQL truncates identifiers at 63 bytes. */
const TABLE = /^(?:[a-z_][a-z0-9_]{0,47}\.)?[a-z_][a-z0-9_]{0,47}$/;

/**
 * The name of a table, quoted. Identifiers cannot be parameters of a statement, so only listed characters are allowed.
 * @throws {TypeError | RangeError}
 */
export function tableOf(owner: string, name: string, value: unknown): string {
  const table = option.text(owner, name, value);
  if (!TABLE.test(table)) throw option.outOfRange(owner, name, 'table or schema.table of [a-z0-9_]', table);
  return `"${table.replace('.', '"."')}"`;
}

function poolOf(owner: string, pool: unknown): PostgresPool {
  return option.objectWith<PostgresPool>(owner, 'pool', pool, 'connect', 'a pg.Pool');
}

function urlOf(owner: string, url: unknown): string {
  // As `pg` does, accepts a user without a host, whose host is then the parameter `host`: the folder of a socket.
  const parsed = typeof url === 'string' && !URL.canParse(url) ? url.replace('@/', '@localhost/') : url;
  option.urlWith(owner, 'connectionString', parsed, ['postgres:', 'postgresql:'], 'a postgres:// URL');
  return url as string;
}
