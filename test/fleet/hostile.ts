import {
  type Clock,
  createKmsCodec,
  type KeyWrapper,
  type KmsCodec,
  localKeyWrapper,
  memoryRing,
  type RingStore,
} from '@sealring/core';
import { Dice } from '../simulator/dice.ts';

const MS = 1_000;
const ALPHABET = Array.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_');
const PREFIX = 'sr1.';
const KEY_ID_CHARS = 12;
const HEADER_CHARS = 60;
/** Nonce and tag around two bytes: 40 characters, a whole number of bytes. */
const BODY_CHARS = 40;

/** A wall and monotonic clock that the test advances. Timers run in real time, and never fire within a test. */
export class HandClock implements Clock {
  #wallMs = Date.parse('2026-11-21T03:00:00Z');
  #monotonicNs = 1_000_000_000n;

  wallMs(): number {
    return this.#wallMs;
  }

  monotonicNs(): bigint {
    return this.#monotonicNs;
  }

  advance(seconds: number): void {
    this.#wallMs += seconds * MS;
    this.#monotonicNs += BigInt(Math.round(seconds * 1e9));
  }
}

/** A codec on a memory ring that counts every call to the KMS and the store, with a clock that is set by hand. */
export interface Target {
  readonly codec: KmsCodec;
  readonly ring: RingStore;
  readonly clock: HandClock;
  readonly counts: { kms: number; reads: number; writes: number };
}

export async function createTarget(): Promise<Target> {
  const counts = { kms: 0, reads: 0, writes: 0 };
  const clock = new HandClock();
  const inner = localKeyWrapper({ masterKey: Buffer.alloc(32, 'ÿ a fixed key') });
  const keyWrapper: KeyWrapper = {
    provider: inner.provider,
    keyId: inner.keyId,
    supports: inner.supports,
    wrap(dataKey, options) {
      counts.kms += 1;
      return inner.wrap(dataKey, options);
    },
    unwrap(wrapped, options) {
      counts.kms += 1;
      return inner.unwrap(wrapped, options);
    },
  };
  const ring = memoryRing();
  const counted: RingStore = {
    kind: ring.kind,
    read(options) {
      counts.reads += 1;
      return ring.read(options);
    },
    write(document, options) {
      counts.writes += 1;
      return ring.write(document, options);
    },
  };
  return { codec: await createKmsCodec({ keyWrapper, ring: counted, clock }), ring, clock, counts };
}

/** Tokens that an attacker without a key can make of one genuine token, or of nothing. All must be refused. */
export class HostileTokens {
  readonly #genuine: string;
  readonly #dice: Dice;
  /** Long tokens are cut from one text, so that making them takes no time. */
  readonly #text: string;
  readonly #makers: readonly (() => string)[];

  constructor(genuine: string, seed: number) {
    this.#genuine = genuine;
    this.#dice = new Dice(seed);
    this.#text = Array.from({ length: 4_096 }, () => this.#dice.pick(ALPHABET)).join('');
    this.#makers = [
      () => PREFIX + this.#random(HEADER_CHARS + BODY_CHARS),
      () => PREFIX + this.#keyId() + this.#random(HEADER_CHARS - KEY_ID_CHARS + BODY_CHARS),
      () => PREFIX + this.#header() + this.#random(BODY_CHARS),
      () => this.#genuine.slice(0, this.#below(this.#genuine.length)),
      () => this.#flipped(),
      () => this.#random(4) + this.#genuine.slice(PREFIX.length),
      () => this.#dice.pick(['', 'sr1', 'sr1.', 'SR1.', 'sr2.', 'v1.', 'v1..', 'mcp.d1.', ' sr1.', 'sr1.\0', 'ſr1.']),
      () => `v1.${this.#random(60)}`,
      () => this.#genuine + this.#random(1 + this.#below(8)),
      () => this.#random(this.#below(300)),
    ];
  }

  next(): string {
    const token = this.#dice.pick(this.#makers)();
    return token === this.#genuine ? this.next() : token;
  }

  /** A token of `length` characters that names the real key. */
  huge(length: number): string {
    return (PREFIX + this.#header() + 'A'.repeat(length)).slice(0, length);
  }

  #keyId(): string {
    return this.#genuine.slice(PREFIX.length, PREFIX.length + KEY_ID_CHARS);
  }

  #header(): string {
    return this.#genuine.slice(PREFIX.length, PREFIX.length + HEADER_CHARS);
  }

  #below(limit: number): number {
    return Math.floor(this.#dice.uniform() * limit);
  }

  #random(length: number): string {
    let text = '';
    // Cut from different places, so that no two tokens are alike.
    while (text.length < length) {
      const start = this.#below(this.#text.length - 8);
      text += this.#text.slice(start, start + Math.min(8, length - text.length));
    }
    return text;
  }

  /** Replaces one character with any other. */
  #flipped(): string {
    const at = this.#below(this.#genuine.length);
    const other = this.#dice.pick(ALPHABET.filter((character) => character !== this.#genuine[at]));
    return this.#genuine.slice(0, at) + other + this.#genuine.slice(at + 1);
  }
}

/** Why a codec refuses a token; undefined when it unseals the token. Any error but a refusal is rethrown. */
export function refusalOf(codec: KmsCodec, token: string): string | undefined {
  try {
    codec.unseal(token);
    return undefined;
  } catch (error) {
    if (error instanceof Error && error.name === 'InvalidRequestState') return error.message;
    throw error;
  }
}
