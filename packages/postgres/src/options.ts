import { types } from 'node:util';
import type { PostgresListener, PostgresPool } from './client.ts';
import { parseTableName, type TableName } from './table-name.ts';

/** Where the server is: exactly one of the two. */
export interface PostgresSource {
  /** A pool of yours; stays yours to end. */
  readonly pool?: PostgresPool;
  /**
   * For convenience: `postgres://user:password@host[:port]/database`. The store then makes a pool of at most 4
   * connections, and ends it with its own `close`. As always with `pg`, what the URL leaves out is taken from `PG…`
   * environment variables.
   */
  readonly connectionString?: string;
  /** Longest wait for one call, in seconds; 0.01 to 60. Default 5. */
  readonly timeoutSeconds?: number;
}

/** Options of {@link postgresRing}: `pool` or `connectionString`, and where the ring lies. */
export interface PostgresRingOptions extends PostgresSource {
  /** `table` or `schema.table`, each 1 to 48 of `[a-z0-9_]`, not beginning with a digit. Default `sealring_ring`. */
  readonly table?: string;
  /** The ring's row; 1 to 64 of `[A-Za-z0-9._-]`. One per ring. Default `default`. */
  readonly name?: string;
  /**
   * Makes a client for push, not connected yet: for pools behind PgBouncer in transaction mode, where LISTEN hears
   * nothing. Default: a `pg.Client` with the options of the pool.
   */
  readonly createListener?: () => PostgresListener;
}

/** Options of {@link postgresSingleUse}: `pool` or `connectionString`, and the table. */
export interface PostgresSingleUseOptions extends PostgresSource {
  /** Like the ring's. Default `sealring_single_use`. */
  readonly table?: string;
}

/** Validated options: a frozen copy. */
export interface Settings {
  readonly pool: PostgresPool | undefined;
  readonly connectionString: string | undefined;
  readonly timeoutMs: number;
  readonly table: TableName;
  readonly name: string;
  readonly createListener: (() => PostgresListener) | undefined;
}

const SOURCE = ['pool', 'connectionString', 'timeoutSeconds', 'table'];

/** @throws {TypeError | RangeError} naming option and value, but never a connection string: it may hold a password. */
export function readRingOptions(options: unknown): Settings {
  return readOptions('postgresRing', options, [...SOURCE, 'name', 'createListener'], 'sealring_ring');
}

/** @throws {TypeError | RangeError} */
export function readSingleUseOptions(options: unknown): Settings {
  return readOptions('postgresSingleUse', options, SOURCE, 'sealring_single_use');
}

function readOptions(owner: string, options: unknown, known: readonly string[], fallback: string): Settings {
  refuseUnknown(owner, options, known);
  const given = options as Readonly<Record<string, unknown>>;
  const { pool, connectionString, createListener } = given;
  const { timeoutSeconds = 5, table = fallback, name = 'default' } = given;
  if ((pool === undefined) === (connectionString === undefined)) {
    throw new TypeError(`${owner}: give either pool or connectionString`);
  }
  if (createListener !== undefined && typeof createListener !== 'function') {
    throw new TypeError(`${owner}: createListener must be a function, got ${show(createListener)}`);
  }
  return Object.freeze({
    pool: pool === undefined ? undefined : poolOf(owner, pool),
    connectionString: connectionString === undefined ? undefined : urlOf(owner, connectionString),
    timeoutMs: secondsOf(owner, timeoutSeconds) * 1000,
    table: tableOf(owner, 'table', table),
    name: nameOf(owner, name),
    createListener: createListener as (() => PostgresListener) | undefined,
  });
}

/** @throws {TypeError} unless `options` is an object whose every key is in `known`. */
export function refuseUnknown(owner: string, options: unknown, known: readonly string[]): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new TypeError(`${owner}: options must be an object, got ${show(options)}`);
  }
  for (const key of Object.keys(options)) {
    if (!known.includes(key)) {
      throw new TypeError(`${owner}: unknown option ${JSON.stringify(key)}; known are ${known.join(', ')}`);
    }
  }
}

/** @throws {TypeError | RangeError} */
export function tableOf(owner: string, option: string, value: unknown): TableName {
  if (typeof value !== 'string') throw new TypeError(`${owner}: ${option} must be a string, got ${show(value)}`);
  const table = parseTableName(value);
  if (table === undefined) {
    throw new RangeError(
      `${owner}: ${option} must be table or schema.table of [a-z0-9_], got ${JSON.stringify(value.slice(0, 120))}`,
    );
  }
  return table;
}

/** Shows a wrong value by its type only: it may be a secret that went astray. */
export function show(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (types.isUint8Array(value)) return `${value.length} bytes`;
  if (Array.isArray(value)) return `an array of ${value.length}`;
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

function poolOf(owner: string, pool: unknown): PostgresPool {
  if (!isPool(pool)) throw new TypeError(`${owner}: pool must be a pg.Pool, got ${show(pool)}`);
  return pool;
}

function isPool(value: unknown): value is PostgresPool {
  return typeof value === 'object' && value !== null && 'connect' in value && typeof value.connect === 'function';
}

function urlOf(owner: string, url: unknown): string {
  if (typeof url !== 'string') throw new TypeError(`${owner}: connectionString must be a string, got ${show(url)}`);
  const protocol = URL.canParse(url) ? new URL(url).protocol : '';
  if (protocol !== 'postgres:' && protocol !== 'postgresql:') {
    throw new RangeError(`${owner}: connectionString must be a postgres:// URL`);
  }
  return url;
}

function secondsOf(owner: string, value: unknown): number {
  if (typeof value !== 'number') throw new TypeError(`${owner}: timeoutSeconds must be a number, got ${show(value)}`);
  if (!(value >= 0.01 && value <= 60)) {
    throw new RangeError(`${owner}: timeoutSeconds must be from 0.01 to 60, got ${value}`);
  }
  return value;
}

function nameOf(owner: string, value: unknown): string {
  if (typeof value !== 'string') throw new TypeError(`${owner}: name must be a string, got ${show(value)}`);
  if (!/^[A-Za-z0-9._-]{1,64}$/.test(value)) {
    throw new RangeError(`${owner}: name must be 1 to 64 of [A-Za-z0-9._-], got ${JSON.stringify(value.slice(0, 80))}`);
  }
  return value;
}
