/** How a reply is decoded: a RESP type byte to the class it becomes, as node-redis spells it. */
export interface RedisReplyTypes {
  /** 36 is `$`, a bulk string. A client that ignores this and gives strings fits too. */
  readonly 36: typeof Buffer;
}

/** What is given with a command. */
export interface RedisSendOptions {
  /** Takes the command out of the client's queue if it was not sent yet: it must not be sent later. */
  readonly abortSignal?: AbortSignal;
  /** How the reply is to be decoded. */
  readonly typeMapping?: RedisReplyTypes;
}

/**
 * The part of a node-redis client that is used: `createClient` and `createClientPool` of `redis` 5 and 6 fit, and so does a
 * fake. A cluster's or a Sentinel's own client does not, its `sendCommand` is another: give one node's, or the primary's.
 *
 * Connect it, and listen to its `error` events, before or after you make the store; it stays yours to close.
 */
export interface RedisClient {
  /** Sends one command. What it resolves to is checked by the caller, hence `unknown`. */
  sendCommand(args: string[], options?: RedisSendOptions): Promise<unknown>;
  /** Another client with the same settings, not connected yet. Without it, as in a pool, the ring has no push. */
  duplicate?(): RedisSubscriber;
}

/** The part of a second client that is used for push; the store connects and destroys it. */
export interface RedisSubscriber {
  /** Whether it was connected and not destroyed. */
  readonly isOpen: boolean;
  /** Opens the connection. */
  connect(): Promise<unknown>;
  /** Asks for the messages of a channel. */
  subscribe(channel: string, listener: (message: string) => void): Promise<unknown>;
  /** `PING`: a connection that is open at one end only shows in no other way. */
  sendCommand(args: string[]): Promise<unknown>;
  /** The connection broke, or is there again. */
  on(event: 'error' | 'ready', listener: () => void): unknown;
  /** Lets the process end while the connection is open. */
  unref?(): void;
  /** Closes the connection at once, without waiting for answers. */
  destroy(): void;
}
