import {
  type RingStore,
  type RingStoreCallOptions,
  RingStoreError,
  type StoredRing,
} from '../../src/contracts/ring-store.ts';
import { memoryRing } from '../../src/stores/memory-ring.ts';

/** A ring store of one backend with settings for faults that a real server cannot have. Each member connects. */
export class FaultStore {
  #ring = memoryRing();
  #watchers = new Set<() => void>();
  /** Its kind: all but `memory` may be shared with other processes. */
  kind = 'memory';
  /** The date of the store's answers; undefined if they have none. */
  date: (() => Date) | undefined;
  down = false;
  hanging = false;
  reads = 0;
  writes = 0;
  /** The last write of a member, even if something else is stored now. */
  written: string | undefined;

  /** Its own connection, which can be cut separately. */
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

  /** A connection without push: its member reads on schedule, or on request. */
  connectUnwatched(): RingStore {
    const connection = this.connect();
    delete connection.watch;
    return connection;
  }

  async document(): Promise<string | undefined> {
    return (await this.#ring.read())?.document;
  }

  /** Notifies all watchers of a write, whether there was one or not. */
  notify(): void {
    for (const changed of this.#watchers) changed();
  }

  /** The store loses everything. */
  flush(): void {
    this.#ring = memoryRing();
  }

  /** A write by an attacker: an older copy, or another document. */
  async put(document: string): Promise<void> {
    const current = await this.#ring.read();
    await this.#ring.write(document, { expected: current?.revision });
  }
}
