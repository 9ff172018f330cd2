import { randomBytes } from 'node:crypto';
import { type Clock, createKmsCodec, type KmsCodec, localKeyWrapper, memoryRing, type RingStore } from '@sealring/core';

/** A clock that the test advances. Its timers never run: a test refreshes by itself. */
export class HandClock implements Clock {
  #wallMs: number;
  #monotonicMs = 1_000;

  constructor(wallMs: number) {
    this.#wallMs = wallMs;
  }

  wallMs(): number {
    return this.#wallMs;
  }

  monotonicNs(): bigint {
    return BigInt(this.#monotonicMs) * 1_000_000n;
  }

  schedule(): () => void {
    return () => undefined;
  }

  advance(seconds: number): void {
    this.#wallMs += seconds * 1_000;
    this.#monotonicMs += seconds * 1_000;
  }
}

/** Services that the members of one fleet share: a ring of a KMS key, and the time. */
export class Fleet implements AsyncDisposable {
  readonly clock: HandClock;
  /** Reads of the ring store so far. */
  reads = 0;
  /** Reads of the ring store hang from now on. */
  hangs = false;
  readonly #ring = this.#unwatched(memoryRing());
  readonly #keyWrapper = localKeyWrapper({ masterKey: randomBytes(32) });
  readonly #members: KmsCodec[] = [];

  constructor(wallMs: number) {
    this.clock = new HandClock(wallMs);
  }

  async member(role: 'member' | 'reader' = 'member'): Promise<KmsCodec> {
    const create = role === 'member' && this.#members.length === 0 ? 'now' : 'never';
    const { clock } = this;
    const codec = await createKmsCodec({ keyWrapper: this.#keyWrapper, ring: this.#ring, role, create, clock });
    this.#members.push(codec);
    return codec;
  }

  /** Publishes a successor and lets time pass until every member seals with it; the earlier tokens are still valid. */
  async rotate(): Promise<void> {
    await this.#members[0]?.rotate({ emergency: true });
    await this.refresh();
    const health = this.#members[0]?.health().keys ?? [];
    const activates = Math.max(...health.map((key) => key.activates.getTime()));
    this.clock.advance(Math.max(0, Math.ceil((activates - this.clock.wallMs()) / 1_000)) + 1);
    await this.refresh();
  }

  async refresh(): Promise<void> {
    for (const codec of this.#members) await codec.refresh();
  }

  /** The same store without push: a member notices a change only when it reads. */
  #unwatched(ring: RingStore): RingStore {
    return {
      kind: ring.kind,
      read: (options) => {
        this.reads += 1;
        return this.hangs ? new Promise(() => undefined) : ring.read(options);
      },
      write: (document, options) => ring.write(document, options),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const codec of this.#members) await codec.close();
  }
}
