import { type Outcome, storeCalls } from '@sealring/core/adapter';
import { createClient } from 'redis';
import type { RedisClient, RedisSubscriber } from './client.ts';
import { classify, type Failure } from './error-table.ts';
import type { Settings } from './options.ts';

const FIRST_BACKOFF_MS = 50;
const LONGEST_BACKOFF_MS = 2_000;

/** What the stores use to reach the server: the client they were given, or one of their own. */
export interface Connection {
  readonly client: RedisClient;
  /** Runs one call, connected and with a deadline. Never rejects. */
  run(
    signal: AbortSignal | undefined,
    call: (client: RedisClient, signal: AbortSignal) => Promise<unknown>,
  ): Promise<Outcome<unknown, Failure>>;
  /** Ends the calls under way, and closes a client of its own; later calls are `unavailable`. */
  close(): void;
}

/** Opens nothing yet. */
export function connectionOf(settings: Settings): Connection {
  const own = settings.client === undefined ? ownClient(settings.url ?? '', settings.timeoutMs) : lent(settings.client);
  const calls = storeCalls(settings.timeoutMs, classify);
  return {
    client: own.client,
    run: (signal, call) =>
      calls.run(signal, async (ended) => {
        await own.connect();
        // Nobody waits any more: what has not been sent must not be.
        ended.throwIfAborted();
        return { answer: await call(own.client, ended) };
      }),
    close() {
      calls.close();
      own.destroy();
    },
  };
}

interface Connectable {
  readonly client: RedisClient;
  connect(): Promise<void>;
  destroy(): void;
}

function lent(client: RedisClient): Connectable {
  return { client, connect: async () => undefined, destroy: () => undefined };
}

function ownClient(url: string, connectTimeout: number): Connectable {
  const client = createClient({ url, socket: { connectTimeout, reconnectStrategy } });
  // Without a listener it would end the process. Every call reports its own failure.
  client.on('error', () => undefined);
  let connecting: Promise<unknown> | undefined;
  return {
    client: {
      sendCommand: (args, options) => client.sendCommand(args, options),
      duplicate: (): RedisSubscriber => client.duplicate(),
    },
    async connect() {
      // While the server is down this stays pending and the client tries on; a refusal ends it.
      if (!client.isOpen) connecting = client.connect();
      await connecting;
    },
    destroy() {
      if (client.isOpen) client.destroy();
    },
  };
}

/** Trying again mends no refused password, and locks accounts. */
function reconnectStrategy(retries: number, cause: Error): number | false {
  if (classify(cause).kind === 'denied') return false;
  return Math.min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** Math.min(retries, 10)) * (0.5 + Math.random() / 2);
}
