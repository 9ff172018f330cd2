import { randomFillSync } from 'node:crypto';
import { createKmsCodec, type KmsCodec } from '../../src/codec/kms-codec.ts';
import type { KmsCodecOptions } from '../../src/codec/kms-codec-options.ts';
import { FaultKms } from './fault-kms.ts';
import { FaultStore } from './fault-store.ts';
import { VirtualClock } from './virtual-clock.ts';

/** Members of one ring on one virtual clock, with the connections that can be cut. */
export class Fleet {
  readonly clock = new VirtualClock('2026-11-21T03:00:00Z');
  readonly store = new FaultStore();
  readonly kms = new FaultKms();
  readonly members: Member[] = [];

  /** Starts a member; virtual time runs until it is ready or has failed. */
  async start(options: Partial<KmsCodecOptions> = {}): Promise<Member> {
    const [member] = await this.startAll(1, options);
    if (member === undefined) throw new Error('no member was started');
    return member;
  }

  /** Starts members at once, each with its own connections. */
  async startAll(count: number, options: Partial<KmsCodecOptions> = {}): Promise<Member[]> {
    const starting = Array.from({ length: count }, () => this.#begin(options));
    const progress = { settled: false };
    const done = (): void => {
      progress.settled = true;
    };
    const all = Promise.all(starting);
    all.then(done, done);
    for (let i = 0; i < 2_000 && !progress.settled; i++) await this.clock.advance(0.5);
    const members = await all;
    this.members.push(...members);
    return members;
  }

  async #begin(options: Partial<KmsCodecOptions>): Promise<Member> {
    const ring = this.store.connect();
    const keyWrapper = this.kms.connect();
    // Its own random source keeps the codec from reading the kernel's device: virtual time waits for no real I/O.
    const random = (fill: Uint8Array): void => void randomFillSync(fill);
    const codec = await createKmsCodec({ ring, keyWrapper, clock: this.clock, random, ...options });
    return { codec, ring, keyWrapper };
  }

  async close(): Promise<void> {
    await Promise.all(this.members.map((member) => member.codec.close()));
  }
}

export interface Member {
  readonly codec: KmsCodec;
  readonly ring: ReturnType<FaultStore['connect']>;
  readonly keyWrapper: ReturnType<FaultKms['connect']>;
}

const text = new TextEncoder();

/** Seals a recognizable payload. */
export function seal(member: Member, payload = 'state'): string {
  return member.codec.seal(text.encode(payload));
}

/** A member's result for a token: the payload, or the reason of its refusal. */
export function open(member: Member, token: string): string {
  try {
    return new TextDecoder().decode(member.codec.unseal(token));
  } catch (error) {
    return error instanceof Error ? `${error.name}: ${error.message}` : 'something else was thrown';
  }
}
