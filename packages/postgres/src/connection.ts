import { type Outcome, ringStorage } from '@sealring/core/adapter';
import { Client, Pool } from 'pg';
import type { PostgresListener, PostgresPool, PostgresQuery } from './client.ts';
import { classify, type Failure } from './error-table.ts';
import type { Settings } from './options.ts';

const OWN_POOL_CONNECTIONS = 4;

/** The stores' connection to the server, through the caller's pool or a pool that the stores own. */
export interface Connection {
  /** Runs one statement, with a deadline, and resolves to its rows or to a failure. Never rejects. */
  query(signal: AbortSignal | undefined, query: PostgresQuery): Promise<Outcome<readonly unknown[], Failure>>;
  /** Creates a client for push, which is not connected yet; undefined if its options are unknown. */
  readonly createListener: (() => PostgresListener) | undefined;
  /** Ends calls in progress, and its own pool; later calls are `unavailable`. */
  close(): Promise<void>;
}

/** Returns a connection that is established at the first call. */
export function connectionOf({ source, timeoutMs, createListener }: Settings): Connection {
  const own = typeof source === 'string' ? ownPool(source, timeoutMs) : undefined;
  const pool = own ?? (source as PostgresPool);
  const calls = ringStorage.calls(timeoutMs, classify);
  return {
    createListener: createListener ?? listenerLike(pool.options, timeoutMs),
    query: (signal, query) => calls.run(signal, async (ended) => ({ answer: await queryOnce(pool, query, ended) })),
    async close() {
      calls.close();
      if (own?.ending === false) await own.end();
    },
  };
}

/**
 * Gets a connection, runs the statement, and returns the connection to the pool. After any failure, closes the
 * connection instead, because it may still be busy. When `ended` aborts, an unsent statement is never sent; if the
 * statement was sent, its connection is closed.
 */
async function queryOnce(pool: PostgresPool, query: PostgresQuery, ended: AbortSignal): Promise<readonly unknown[]> {
  const client = await pool.connect();
  if (ended.aborted) {
    client.release();
    throw ended.reason;
  }
  client.on('error', ignore);
  const abandoned = new Promise<never>((_, reject) => {
    ended.addEventListener('abort', () => reject(ended.reason));
  });
  try {
    const { rows } = await Promise.race([client.query(query), abandoned]);
    client.off('error', ignore);
    client.release();
    return rows;
  } catch (error) {
    client.release(true);
    throw error;
  }
}

/** A listener for the failure of a connection: without a listener, the event would end the process. */
function ignore(): void {}

function ownPool(connectionString: string, connectionTimeoutMillis: number): Pool {
  const pool = new Pool({
    connectionString,
    max: OWN_POOL_CONNECTIONS,
    connectionTimeoutMillis,
    keepAlive: true,
    allowExitOnIdle: true,
  });
  // An idle connection broke; the next call takes another connection.
  pool.on('error', ignore);
  return pool;
}

function listenerLike(
  options: object | undefined,
  connectionTimeoutMillis: number,
): (() => PostgresListener) | undefined {
  if (options === undefined) return undefined;
  // `pg` makes the password non-enumerable, so spreading the options would drop it.
  const password: string | undefined = Reflect.get(options, 'password');
  return () => new Client({ ...options, password, keepAlive: true, connectionTimeoutMillis });
}
