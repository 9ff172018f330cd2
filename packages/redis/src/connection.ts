import { type Outcome, ringStorage } from '@sealring/core/adapter';
import { createClient } from 'redis';
import type { RedisClient, RedisSendOptions, RedisSubscriber } from './client.ts';
import { classify, type Failure } from './error-table.ts';
import type { Settings } from './options.ts';

const FIRST_BACKOFF_MS = 50;
const LONGEST_BACKOFF_MS = 2_000;
/**
 * The share of the timeout after which a call ends: shortly before the ring's own deadline, which has the same value by
 * default. The ring's error would not show why there was no answer.
 */
const SHARE_OF_TIMEOUT = 0.9;

/** The stores' connection to the server, through the caller's client or a client that the stores own. */
export interface Connection {
  readonly client: RedisClient;
  /** Connects its own client if necessary, then runs one call, all within one deadline. Never rejects. */
  run(
    signal: AbortSignal | undefined,
    call: (client: RedisClient, signal: AbortSignal) => Promise<unknown>,
  ): Promise<Outcome<unknown, Failure>>;
  /** Ends calls in progress, and closes its own client; later calls are `unavailable`. */
  close(): void;
}

/** Returns a connection that is established at the first call. */
export function connectionOf({ source, timeoutMs }: Settings): Connection {
  const client = typeof source === 'string' ? new OwnClient(source, timeoutMs) : source;
  const own = client instanceof OwnClient ? client : undefined;
  const calls = ringStorage.calls(timeoutMs * SHARE_OF_TIMEOUT, classify);
  return {
    client,
    async run(signal, call) {
      const outcome = await calls.run(signal, async (ended) => {
        await own?.connect();
        return { answer: await call(client, ended) };
      });
      // While the client reconnects, the call ends with a timeout, which does not show the cause.
      const why = 'failure' in outcome && signal?.aborted !== true ? own?.lastFailure : undefined;
      return why === undefined ? outcome : { failure: why };
    },
    close() {
      calls.close();
      own?.destroy();
    },
  };
}

class OwnClient implements RedisClient {
  /** Why there is no connection at the moment, if known. */
  lastFailure: Failure | undefined;
  readonly #client: ReturnType<typeof createClient>;
  readonly #create: (reconnectStrategy: typeof reconnectionMs) => ReturnType<typeof createClient>;
  #connecting: Promise<unknown> | undefined;
  #wasReady = false;

  constructor(url: string, connectTimeout: number) {
    this.#create = (reconnectStrategy) => createClient({ url, socket: { connectTimeout, reconnectStrategy } });
    // Before the first connection, an error more likely means a wrong address than a brief failure, so the call reports
    // it.
    this.#client = this.#create((retries, cause) => this.#wasReady && reconnectionMs(retries, cause));
    // Without a listener, an error would end the process.
    this.#client.on('error', (error: unknown) => {
      this.lastFailure = classify(error);
    });
    this.#client.on('ready', () => {
      this.#wasReady = true;
      this.lastFailure = undefined;
    });
  }

  sendCommand(args: string[], options?: RedisSendOptions): Promise<unknown> {
    return this.#client.sendCommand(args, options);
  }

  duplicate(): RedisSubscriber {
    return this.#create(reconnectionMs);
  }

  async connect(): Promise<void> {
    if (!this.#client.isOpen) this.#connecting = this.#client.connect();
    await this.#connecting;
  }

  destroy(): void {
    if (this.#client.isOpen) this.#client.destroy();
    this.lastFailure = undefined;
  }
}

/**
 * The wait before the next attempt to connect; false for no further attempt. A password that was rejected is not sent
 * again, because repeated attempts could lock the account.
 */
export function reconnectionMs(retries: number, cause: Error): number | false {
  if (classify(cause).kind === 'denied') return false;
  return Math.min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** retries) * (0.5 + Math.random() / 2);
}
