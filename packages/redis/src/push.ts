import { type Calls, storeCalls } from '@sealring/core/adapter';
import type { RedisSubscriber } from './client.ts';
import { classify, type Failure } from './error-table.ts';

const HEARTBEAT_MS = 15_000;
const FIRST_BACKOFF_MS = 100;
const LONGEST_BACKOFF_MS = 30_000;

export interface PushOptions {
  /** A client that is not connected yet; undefined where there is none to be had. */
  readonly connect: () => RedisSubscriber | undefined;
  readonly channel: string;
  /** Longest wait for the server. */
  readonly timeoutMs: number;
  /** Time between two looks at the connection. Default 15 000. */
  readonly heartbeatMs?: number;
}

/**
 * Hears of writes, over one connection for any number of watchers, from the first to the last. The client connects anew
 * by itself after most failures; the heartbeat finds the others, and a connection whose other end is gone without a word.
 */
export class Push {
  readonly #options: PushOptions;
  readonly #calls: Calls<Failure>;
  readonly #watchers = new Set<{ readonly changed: () => void }>();
  #subscriber: RedisSubscriber | undefined;
  #timer: NodeJS.Timeout | undefined;
  #failures = 0;

  constructor(options: PushOptions) {
    this.#options = options;
    this.#calls = storeCalls(options.timeoutMs, classify);
  }

  /** Returns what ends it. An object of its own, so that one function added twice is removed once at a time. */
  add(changed: () => void): () => void {
    const watcher = { changed };
    this.#watchers.add(watcher);
    if (this.#watchers.size === 1) void this.#start();
    return () => {
      this.#watchers.delete(watcher);
      if (this.#watchers.size === 0) this.#stop();
    };
  }

  close(): void {
    this.#watchers.clear();
    this.#stop();
  }

  async #start(): Promise<void> {
    const subscriber = this.#connect();
    if (subscriber === undefined) {
      this.#startAgain();
      return;
    }
    this.#subscriber = subscriber;
    const isCurrent = (): boolean => this.#subscriber === subscriber;
    const tell = (): void => {
      if (isCurrent()) this.#tell();
    };
    subscriber.on('error', () => undefined);
    subscriber.unref?.();
    const outcome = await this.#calls.run(undefined, async () => {
      await subscriber.connect();
      return { answer: await subscriber.subscribe(this.#options.channel, tell) };
    });
    if (!isCurrent()) {
      destroy(subscriber);
    } else if ('failure' in outcome) {
      this.#startAgain();
    } else {
      this.#failures = 0;
      // From now on: connected anew, and subscribed again.
      subscriber.on('ready', tell);
      // For what was written before the subscription.
      tell();
      this.#later(() => this.#beat(subscriber), this.#options.heartbeatMs ?? HEARTBEAT_MS);
    }
  }

  /** A client that can make no second one shows here; nothing depends on push. */
  #connect(): RedisSubscriber | undefined {
    try {
      return this.#options.connect();
    } catch {
      return undefined;
    }
  }

  async #beat(subscriber: RedisSubscriber): Promise<void> {
    const outcome = await this.#calls.run(undefined, async () => ({ answer: await subscriber.sendCommand(['PING']) }));
    if (this.#subscriber !== subscriber) return;
    if ('failure' in outcome) this.#startAgain();
    else this.#later(() => this.#beat(subscriber), this.#options.heartbeatMs ?? HEARTBEAT_MS);
  }

  #startAgain(): void {
    this.#stop();
    const longest = Math.min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** this.#failures++);
    this.#later(() => this.#start(), longest * Math.random());
  }

  #stop(): void {
    clearTimeout(this.#timer);
    const subscriber = this.#subscriber;
    this.#subscriber = undefined;
    if (subscriber !== undefined) destroy(subscriber);
  }

  #later(run: () => Promise<void>, delayMs: number): void {
    this.#timer = setTimeout(() => void run(), delayMs);
    this.#timer.unref();
  }

  #tell(): void {
    for (const { changed } of this.#watchers) changed();
  }
}

function destroy(subscriber: RedisSubscriber): void {
  if (subscriber.isOpen) subscriber.destroy();
}
