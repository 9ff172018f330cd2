/** One query in the form that `pg` expects. */
export interface PostgresQuery {
  /** SQL, with the placeholders `$1`, `$2` and so on. */
  readonly text: string;
  /** The values for `$1` and so on. */
  readonly values: unknown[];
}

/** The part of a query result that is used; the caller checks the values. */
export interface PostgresResult {
  /** One object for each row. */
  readonly rows: readonly unknown[];
}

/** A connection from the pool. */
export interface PostgresClient {
  /** Runs one statement. */
  query(query: PostgresQuery): Promise<PostgresResult>;
  /** Adds a listener for the failure of an idle connection. */
  on(event: 'error', listener: () => void): unknown;
  /** Removes that listener. */
  off(event: 'error', listener: () => void): unknown;
  /** Returns the connection to the pool, or closes the connection if `destroy` is true. */
  release(destroy?: boolean): void;
}

/** The part of a `pg.Pool` that is used; a fake also works. The stores do not end the pool that you pass. */
export interface PostgresPool {
  /** Gets a connection. */
  connect(): Promise<PostgresClient>;
  /** The options of its connections; the listening connection uses the same options. */
  readonly options?: object;
}

/** The part of a `pg.Client` that is used for push; the store connects and ends it. */
export interface PostgresListener {
  /** Opens the connection. */
  connect(): Promise<unknown>;
  /** Runs one statement. */
  query(text: string): Promise<unknown>;
  /** Adds a listener for notifications, or for the end of the connection. */
  on(event: 'notification' | 'error', listener: () => void): unknown;
  /** Closes the connection. */
  end(): Promise<unknown>;
  /** Lets the process end before the connection does. */
  unref?(): void;
}
