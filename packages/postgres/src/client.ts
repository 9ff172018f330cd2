/** One query as `pg` spells it. */
export interface PostgresQuery {
  readonly text: string;
  readonly values: unknown[];
}

/** What is looked at of an answer; its cells are checked by the caller. */
export interface PostgresResult {
  readonly rows: readonly unknown[];
}

/** A connection out of the pool. */
export interface PostgresClient {
  query(query: PostgresQuery): Promise<PostgresResult>;
  on(event: 'error', listener: () => void): unknown;
  off(event: 'error', listener: () => void): unknown;
  /** Gives it back; `true` closes it instead. */
  release(destroy?: boolean): void;
}

/** The part of a `pg.Pool` (8.x) that is used; a fake fits too. It stays yours to end. */
export interface PostgresPool {
  connect(): Promise<PostgresClient>;
  /** What its connections are made with; the connection that listens is made with the same. */
  readonly options?: object;
}

/** The part of a `pg.Client` that is used for push; the store connects and ends it. */
export interface PostgresListener {
  connect(): Promise<unknown>;
  query(text: string): Promise<unknown>;
  on(event: 'notification' | 'error', listener: () => void): unknown;
  end(): Promise<unknown>;
  /** Lets the process end while the connection is open. */
  unref?(): void;
}
