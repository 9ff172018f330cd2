import { type Backoff, backoffMs } from '../base/retry.ts';
import { Calls } from './calls.ts';

const HEARTBEAT_MS = 15_000;
const RECONNECTIONS: Backoff = { firstMs: 100, capMs: 30_000 };

/** Ignores the cause of a failure, because push is only an optimization. */
const ignored = (): undefined => undefined;

/** One connection that listens for writes. It is not connected before {@link start} is called. */
export interface PushListener {
  /**
   * Opens the connection and subscribes.
   *
   * @param changed - Call it for every write, and after each reconnection by the client itself.
   * @param lost - Call it when the connection has ended and the client does not reconnect by itself.
   */
  start(changed: () => void, lost: () => void): Promise<unknown>;
  /** Sends one request over the connection. Nothing else reveals a connection whose other end is gone. */
  check(): Promise<unknown>;
  /** Closes the connection at once, whatever its state. Never throws. */
  end(): void;
}

/** How a {@link Push} connects. */
export interface PushOptions {
  /** Creates a listener; undefined if that is not possible. May throw. */
  readonly connect: () => PushListener | undefined;
  /** Longest wait for the server, in milliseconds. */
  readonly timeoutMs: number;
  /** Time between two checks of the connection, in milliseconds. Default 15 000. */
  readonly heartbeatMs?: number;
}

/**
 * The `watch` of a ring store: one connection for any number of watchers, kept open while there is at least one. A
 * connection that ends is replaced after a pause with full jitter of at most 0.1, 0.2, 0.4 … 30 seconds; a heartbeat
 * detects a connection whose other end is gone. Watchers are also called after each new connection, because
 * they may have missed writes. Does not keep the process alive.
 */
export class Push {
  readonly #options: PushOptions;
  readonly #calls: Calls<undefined>;
  readonly #watchers = new Set<{ readonly changed: () => void }>();
  #listener: PushListener | undefined;
  #timer: NodeJS.Timeout | undefined;
  #failures = 0;

  constructor(options: PushOptions) {
    this.#options = options;
    this.#calls = new Calls({ timeoutMs: options.timeoutMs, owner: 'store', classify: ignored, unavailable: ignored });
  }

  /**
   * Adds a watcher, and returns a function that removes it. Each watcher is a separate object, so a function that was
   * added twice must be removed twice.
   */
  add(changed: () => void): () => void {
    const watcher = { changed };
    this.#watchers.add(watcher);
    if (this.#watchers.size === 1) void this.#start();
    return () => {
      if (this.#watchers.delete(watcher) && this.#watchers.size === 0) this.#stop();
    };
  }

  /** Removes all watchers, and closes the connection. */
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
    const ifCurrent = (run: () => void) => (): void => {
      if (this.#listener === listener) run();
    };
    const changed = ifCurrent(() => this.#notify());
    const lost = ifCurrent(() => this.#startAgain());
    const outcome = await this.#calls.run(undefined, async () => ({ answer: await listener.start(changed, lost) }));
    if (this.#listener !== listener) {
      // The listener was ended while it was connecting. Some clients must be closed again once they have connected.
      listener.end();
    } else if ('failure' in outcome) {
      this.#startAgain();
    } else {
      this.#failures = 0;
      this.#notify();
      this.#checkLater(listener);
    }
  }

  #connect(): PushListener | undefined {
    try {
      return this.#options.connect();
    } catch {
      return undefined;
    }
  }

  #checkLater(listener: PushListener): void {
    this.#later(() => this.#check(listener), this.#options.heartbeatMs ?? HEARTBEAT_MS);
  }

  async #check(listener: PushListener): Promise<void> {
    const outcome = await this.#calls.run(undefined, async () => ({ answer: await listener.check() }));
    if (this.#listener !== listener) return;
    if ('failure' in outcome) this.#startAgain();
    else this.#checkLater(listener);
  }

  #startAgain(): void {
    this.#stop();
    this.#failures += 1;
    this.#later(() => this.#start(), backoffMs(RECONNECTIONS, this.#failures, Math.random()));
  }

  #stop(): void {
    clearTimeout(this.#timer);
    const listener = this.#listener;
    this.#listener = undefined;
    listener?.end();
  }

  #later(run: () => Promise<void>, delayMs: number): void {
    this.#timer = setTimeout(() => void run(), delayMs);
    this.#timer.unref();
  }

  #notify(): void {
    for (const { changed } of this.#watchers) changed();
  }
}
