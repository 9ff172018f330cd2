import { type Outcome, storeCalls } from '@sealring/core/adapter';
import { Client, Pool } from 'pg';
import type { PostgresListener, PostgresPool, PostgresQuery } from './client.ts';
import { classify, type Failure } from './error-table.ts';
import type { Settings } from './options.ts';

const OWN_POOL_CONNECTIONS = 4;

/** The connection of the stores to the server: the caller's pool, or one of their own. */
export interface Connection {
  /** Runs one statement, with a deadline, and resolves to its rows. Never rejects. */
  query(signal: AbortSignal | undefined, query: PostgresQuery): Promise<Outcome<readonly unknown[], Failure>>;
  /** Makes a client for push, not connected yet; undefined if its options are unknown. */
  readonly createListener: (() => PostgresListener) | undefined;
  /** Ends calls in progress, and its own pool; later calls are `unavailable`. */
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

/** The caller's pool, or the store's own and a function that ends it. */
function sourceOf(settings: Settings): { readonly pool: PostgresPool; readonly end: () => Promise<void> } {
  if (settings.pool !== undefined) return { pool: settings.pool, end: async () => undefined };
  const pool = ownPool(settings);
  return { pool, end: () => pool.end() };
}

/**
 * Gets a connection, runs the statement, and returns the connection. After any failure it is closed instead, because
 * it may still be busy. When `ended` aborts, an unsent statement is never sent, and the connection of a sent one is closed.
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

/** A broken connection emits an event, which would end the process without a listener. */
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

/** `pg` makes the password non-enumerable, so that spreading the options drops it. */
function passed(options: object): object {
  return 'password' in options ? { ...options, password: options.password } : options;
}
