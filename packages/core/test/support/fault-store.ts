import {
  type RingStore,
  type RingStoreCallOptions,
  RingStoreError,
  type StoredRing,
} from '../../src/contracts/ring-store.ts';
import { memoryRing } from '../../src/stores/memory-ring.ts';

/** A ring store of one backend with knobs for what a server cannot be asked to do. Each member gets a `connect()`. */
export class FaultStore {
  #ring = memoryRing();
  #watchers = new Set<() => void>();
  /** What kind of store it says it is: all but `memory` may be shared with other processes. */
  kind = 'memory';
  /** What the store dates its answers with; undefined: they have no date. */
  date: (() => Date) | undefined;
  down = false;
  hanging = false;
  reads = 0;
  writes = 0;
  /** What a member wrote last, whatever is stored by now. */
  written: string | undefined;

  /** A connection of its own, which can be cut alone. */
  connect(): RingStore & { cut: boolean } {
    const guard = async (connection: { cut: boolean }): Promise<void> => {
      if (this.hanging) await new Promise(() => undefined);
      if (this.down || connection.cut) throw new RingStoreError('unavailable', 'cut');
    };
    const connection = {
      kind: this.kind,
      cut: false,
      read: async (options?: RingStoreCallOptions): Promise<StoredRing | undefined> => {
        this.reads += 1;
        await guard(connection);
        if (this.date !== undefined) options?.onServiceDate?.(this.date());
        return this.#ring.read();
      },
      write: async (document: string, options: RingStoreCallOptions & { readonly expected: string | undefined }) => {
        this.writes += 1;
        await guard(connection);
        const written = await this.#ring.write(document, options);
        this.written = document;
        this.notify();
        return written;
      },
      watch: (changed: () => void): (() => void) => {
        this.#watchers.add(changed);
        return () => this.#watchers.delete(changed);
      },
    };
    return connection;
  }

  /** A connection that hears of nothing by a push: its member reads when it is time to, or is told to. */
  connectUnwatched(): RingStore {
    const connection = this.connect();
    delete connection.watch;
    return connection;
  }

  async document(): Promise<string | undefined> {
    return (await this.#ring.read())?.document;
  }

  /** Tells everybody who watches that something was written, whether that is so or not. */
  notify(): void {
    for (const changed of this.#watchers) changed();
  }

  /** The store lost everything. */
  flush(): void {
    this.#ring = memoryRing();
  }

  /** An attacker who can write the store wrote this: an older copy, or another document. */
  async put(document: string): Promise<void> {
    const current = await this.#ring.read();
    await this.#ring.write(document, { expected: current?.revision });
  }
}
