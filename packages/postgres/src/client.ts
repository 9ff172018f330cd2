/** One query as `pg` spells it. */
export interface PostgresQuery {
  /** SQL, with `$1` and so on. */
  readonly text: string;
  /** For `$1` and so on. */
  readonly values: unknown[];
}

/** What is looked at of an answer; its cells are checked by the caller. */
export interface PostgresResult {
  /** One object a row. */
  readonly rows: readonly unknown[];
}

/** A connection out of the pool. */
export interface PostgresClient {
  /** Runs one statement. */
  query(query: PostgresQuery): Promise<PostgresResult>;
  /** An idle connection that breaks says so here. */
  on(event: 'error', listener: () => void): unknown;
  /** Ends {@link on}. */
  off(event: 'error', listener: () => void): unknown;
  /** Gives it back; `true` closes it instead. */
  release(destroy?: boolean): void;
}

/** The part of a `pg.Pool` that is used; a fake fits too. It stays yours to end. */
export interface PostgresPool {
  /** Takes a connection out. */
  connect(): Promise<PostgresClient>;
  /** What its connections are made with; the connection that listens is made with the same. */
  readonly options?: object;
}

/** The part of a `pg.Client` that is used for push; the store connects and ends it. */
export interface PostgresListener {
  /** Opens the connection. */
  connect(): Promise<unknown>;
  /** Runs one statement. */
  query(text: string): Promise<unknown>;
  /** A notification, or the end of the connection. */
  on(event: 'notification' | 'error', listener: () => void): unknown;
  /** Closes it. */
  end(): Promise<unknown>;
  /** Lets the process end while the connection is open. */
  unref?(): void;
}
