/** How a reply is decoded: maps a RESP type byte to a class, in node-redis's form. */
export interface RedisReplyTypes {
  /** 36 is the code of `$`, for a bulk string. A client that ignores this and returns strings also works. */
  readonly 36: typeof Buffer;
}

/** Options of a command. */
export interface RedisSendOptions {
  /** Removes the command from the client's queue if it has not been sent yet, so that it is never sent later. */
  readonly abortSignal?: AbortSignal;
  /** How to decode the reply. */
  readonly typeMapping?: RedisReplyTypes;
}

/**
 * The part of a node-redis client that is used: one that `createClient` or `createClientPool` of `redis` 5 or 6
 * creates, or a fake. A cluster or Sentinel client does not work, because its `sendCommand` differs: pass the client of
 * one node, or of the primary.
 *
 * Connect it and listen to its `error` events, before or after you create the store. The store does not close it.
 */
export interface RedisClient {
  /** Sends one command. The caller checks the result, hence `unknown`. */
  sendCommand(args: string[], options?: RedisSendOptions): Promise<unknown>;
  /**
   * Returns another client with the same settings, not connected yet. Without this method, as in a pool, the ring has
   * no push.
   */
  duplicate?(): RedisSubscriber;
}

/** The part of a second client that is used for push; the store connects and destroys it. */
export interface RedisSubscriber {
  /** Whether it has been connected and has not been destroyed. */
  readonly isOpen: boolean;
  /** Opens the connection. */
  connect(): Promise<unknown>;
  /** Subscribes to a channel. */
  subscribe(channel: string, listener: (message: string) => void): Promise<unknown>;
  /** Sends `PING`, which is the only way to detect a half-open connection. */
  sendCommand(args: string[]): Promise<unknown>;
  /** Adds a listener for the loss of the connection, or for its re-establishment. */
  on(event: 'error' | 'ready', listener: () => void): unknown;
  /** Lets the process end before the connection does. */
  unref?(): void;
  /** Closes the connection at once, without waiting for answers. */
  destroy(): void;
}
