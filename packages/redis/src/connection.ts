import { once } from 'node:events';
import { type Outcome, storeCalls } from '@sealring/core/adapter';
import { createClient } from 'redis';
import type { RedisClient, RedisSubscriber } from './client.ts';
import { classify, type Failure } from './error-table.ts';
import type { Settings } from './options.ts';

const FIRST_BACKOFF_MS = 50;
const LONGEST_BACKOFF_MS = 2_000;
/** A call ends before the deadline of the ring, which is the same by default and does not know why there was no answer. */
const SHARE_OF_TIMEOUT = 0.9;

/** The connection of the stores to the server: the caller's client, or one of their own. */
export interface Connection {
  readonly client: RedisClient;
  /** Runs one call, connected and with a deadline. Never rejects. */
  run(
    signal: AbortSignal | undefined,
    call: (client: RedisClient, signal: AbortSignal) => Promise<unknown>,
  ): Promise<Outcome<unknown, Failure>>;
  /** Ends calls in progress, and closes its own client; later calls are `unavailable`. */
  close(): void;
}

/** Connects at the first call. */
export function connectionOf(settings: Settings): Connection {
  const own = settings.client === undefined ? ownClient(settings.url ?? '', settings.timeoutMs) : lent(settings.client);
  const calls = storeCalls(settings.timeoutMs * SHARE_OF_TIMEOUT, classify);
  let isClosed = false;
  return {
    client: own.client,
    async run(signal, call) {
      const outcome = await calls.run(signal, async (ended) => {
        await own.connect();
        // The caller has given up: an unsent command must not be sent.
        ended.throwIfAborted();
        return { answer: await call(own.client, ended) };
      });
      // With a client that keeps reconnecting the call ends at its deadline, which does not show the cause.
      const why = 'failure' in outcome && !isClosed && signal?.aborted !== true ? own.notConnected() : undefined;
      return why === undefined ? outcome : { failure: why };
    },
    close() {
      isClosed = true;
      calls.close();
      own.destroy();
    },
  };
}

interface Connectable {
  readonly client: RedisClient;
  connect(): Promise<void>;
  /** Why there is no connection at the moment, if known. */
  notConnected(): Failure | undefined;
  destroy(): void;
}

function lent(client: RedisClient): Connectable {
  return { client, connect: async () => undefined, notConnected: () => undefined, destroy: () => undefined };
}

function ownClient(url: string, connectTimeout: number): Connectable {
  const client = createClient({ url, socket: { connectTimeout, reconnectStrategy } });
  let lastFailure: Failure | undefined;
  // Without a listener, an error would end the process.
  client.on('error', (error: unknown) => {
    lastFailure = classify(error);
  });
  let connecting: Promise<unknown> | undefined;
  let wasReady = false;
  client.once('ready', () => {
    wasReady = true;
  });
  let nextAttempt: Promise<unknown> | undefined;
  return {
    client: {
      sendCommand: (args, options) => client.sendCommand(args, options),
      duplicate: (): RedisSubscriber => client.duplicate(),
    },
    async connect() {
      // While the server is down this stays pending and the client keeps trying; a refusal ends it.
      if (!client.isOpen) connecting = client.connect();
      if (wasReady) return void (await connecting);
      // Before the first connection an error is more likely a wrong address than a brief failure: the call reports it.
      nextAttempt ??= once(client, 'ready').finally(() => {
        nextAttempt = undefined;
      });
      await Promise.race([connecting, nextAttempt]);
    },
    notConnected: () => (client.isReady ? undefined : lastFailure),
    destroy() {
      if (client.isOpen) client.destroy();
    },
  };
}

/** A password that was rejected is not sent again: that would lock accounts. */
function reconnectStrategy(retries: number, cause: Error): number | false {
  if (classify(cause).kind === 'denied') return false;
  return Math.min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** Math.min(retries, 10)) * (0.5 + Math.random() / 2);
}
