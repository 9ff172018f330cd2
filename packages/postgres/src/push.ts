import { createHash } from 'node:crypto';
import { type Calls, storeCalls } from '@sealring/core/adapter';
import type { PostgresListener } from './client.ts';
import { classify, type Failure } from './error-table.ts';
import type { TableName } from './table-name.ts';

const HEARTBEAT_MS = 15_000;
const FIRST_BACKOFF_MS = 100;
const LONGEST_BACKOFF_MS = 30_000;

/** The channel of one ring: an identifier, which PostgreSQL cuts at 63 bytes. */
export function channelOf(table: TableName, name: string): string {
  return `sealring_${createHash('sha256').update(`${table.sql}\0${name}`).digest('hex').slice(0, 32)}`;
}

export interface PushOptions {
  /** A client that is not connected yet. */
  readonly connect: () => PostgresListener;
  readonly channel: string;
  /** Longest wait for the server. */
  readonly timeoutMs: number;
  /** Time between two looks at the connection. Default 15 000. */
  readonly heartbeatMs?: number;
}

/**
 * Hears of writes, over one connection for any number of watchers, from the first to the last. A connection that ends is
 * replaced after a random pause that grows; the heartbeat finds one whose other end is gone without a word.
 */
export class Push {
  readonly #options: PushOptions;
  readonly #calls: Calls<Failure>;
  readonly #watchers = new Set<{ readonly changed: () => void }>();
  #listener: PostgresListener | undefined;
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
      if (this.#watchers.delete(watcher) && this.#watchers.size === 0) this.#stop();
    };
  }

  close(): void {
    this.#watchers.clear();
    this.#stop();
  }

  async #start(): Promise<void> {
    const listener = this.#connect();
    if (listener === undefined) {
      this.#startAgain();
      return;
    }
    this.#listener = listener;
    const isCurrent = (): boolean => this.#listener === listener;
    // A connection that ends without being asked to says so by this event.
    listener.on('error', () => {
      if (isCurrent()) this.#startAgain();
    });
    listener.on('notification', () => {
      if (isCurrent()) this.#tell();
    });
    const outcome = await this.#calls.run(undefined, async () => {
      await listener.connect();
      listener.unref?.();
      return { answer: await listener.query(`LISTEN "${this.#options.channel}"`) };
    });
    if (!isCurrent()) return;
    if ('failure' in outcome) {
      this.#startAgain();
      return;
    }
    this.#failures = 0;
    // For what was written before, or while there was no connection.
    this.#tell();
    this.#beatLater(listener);
  }

  /** A setting that is wrong for `pg` shows here; nothing depends on push. */
  #connect(): PostgresListener | undefined {
    try {
      return this.#options.connect();
    } catch {
      return undefined;
    }
  }

  #beatLater(listener: PostgresListener): void {
    this.#later(() => this.#beat(listener), this.#options.heartbeatMs ?? HEARTBEAT_MS);
  }

  async #beat(listener: PostgresListener): Promise<void> {
    const outcome = await this.#calls.run(undefined, async () => ({ answer: await listener.query('SELECT 1') }));
    if (this.#listener !== listener) return;
    if ('failure' in outcome) this.#startAgain();
    else this.#beatLater(listener);
  }

  #startAgain(): void {
    this.#stop();
    const longest = Math.min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** this.#failures++);
    this.#later(() => this.#start(), longest * Math.random());
  }

  #stop(): void {
    clearTimeout(this.#timer);
    const listener = this.#listener;
    this.#listener = undefined;
    // Whether it ends well is nobody's business any more.
    listener?.end().catch(() => undefined);
  }

  #later(run: () => Promise<void>, delayMs: number): void {
    this.#timer = setTimeout(() => void run(), delayMs);
    this.#timer.unref();
  }

  #tell(): void {
    for (const { changed } of this.#watchers) changed();
  }
}
