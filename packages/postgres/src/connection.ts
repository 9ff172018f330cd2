import { type Outcome, storeCalls } from '@sealring/core/adapter';
import { Client, Pool } from 'pg';
import type { PostgresListener, PostgresPool, PostgresQuery } from './client.ts';
import { classify, type Failure } from './error-table.ts';
import type { Settings } from './options.ts';

const OWN_POOL_CONNECTIONS = 4;

/** What the stores use to reach the server: the pool they were given, or one of their own. */
export interface Connection {
  /** Runs one statement, with a deadline, and resolves to its rows. Never rejects. */
  query(signal: AbortSignal | undefined, query: PostgresQuery): Promise<Outcome<readonly unknown[], Failure>>;
  /** Makes a client for push, not connected yet; undefined where it is not known how. */
  readonly createListener: (() => PostgresListener) | undefined;
  /** Ends the calls under way, and a pool of its own; later calls are `unavailable`. */
  close(): Promise<void>;
}

/** Connects at the first call. */
export function connectionOf(settings: Settings): Connection {
  const { pool, end } = sourceOf(settings);
  const calls = storeCalls(settings.timeoutMs, classify);
  let isClosed = false;
  return {
    createListener: settings.createListener ?? listenerLike(pool.options, settings.timeoutMs),
    query: (signal, query) => calls.run(signal, async (ended) => ({ answer: await queryOnce(pool, query, ended) })),
    async close() {
      if (isClosed) return;
      isClosed = true;
      calls.close();
      await end();
    },
  };
}

/** The pool that was given, or one of the store's own, and what ends the latter. */
function sourceOf(settings: Settings): { readonly pool: PostgresPool; readonly end: () => Promise<void> } {
  if (settings.pool !== undefined) return { pool: settings.pool, end: async () => undefined };
  const pool = ownPool(settings);
  return { pool, end: () => pool.end() };
}

/**
 * Takes a connection, runs the statement, gives the connection back. One that fails in any way is closed: it may still
 * be busy. When `ended` aborts, a statement that was not sent never is, and the connection of one that was is closed.
 */
async function queryOnce(pool: PostgresPool, query: PostgresQuery, ended: AbortSignal): Promise<readonly unknown[]> {
  const client = await pool.connect();
  client.on('error', ignore);
  let isReleased = false;
  const release = (destroy: boolean): void => {
    if (isReleased) return;
    isReleased = true;
    ended.removeEventListener('abort', abandon);
    client.release(destroy);
    if (!destroy) client.off('error', ignore);
  };
  const abandon = (): void => release(true);
  ended.addEventListener('abort', abandon, { once: true });
  try {
    if (ended.aborted) {
      release(false);
      ended.throwIfAborted();
    }
    const { rows } = await client.query(query);
    release(false);
    return rows;
  } catch (error) {
    release(true);
    throw error;
  }
}

/** A connection that breaks says so in an event, which would end the process if nobody listened. */
function ignore(): void {}

function ownPool({ connectionString = '', timeoutMs }: Settings): Pool {
  const pool = new Pool({
    connectionString,
    max: OWN_POOL_CONNECTIONS,
    connectionTimeoutMillis: timeoutMs,
    keepAlive: true,
    allowExitOnIdle: true,
  });
  // An idle connection that breaks; the next call takes another.
  pool.on('error', ignore);
  return pool;
}

function listenerLike(
  options: object | undefined,
  connectionTimeoutMillis: number,
): (() => PostgresListener) | undefined {
  return options === undefined
    ? undefined
    : () => new Client({ ...passed(options), keepAlive: true, connectionTimeoutMillis });
}

/** `pg` hides the password from being listed, and so from being spread. */
function passed(options: object): object {
  return 'password' in options ? { ...options, password: options.password } : options;
}
