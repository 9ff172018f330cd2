import { type Clock, createKmsCodec, type KmsCodec, type KmsCodecOptions } from '@sealring/core';
import type { Dice } from './dice.ts';
import type { Line, SimulatedKms, SimulatedStore } from './services.ts';
import type { Timeline } from './timeline.ts';

/** Any date: that of the simulated world's beginning, milliseconds since the epoch. */
/** The wall time at which a world begins, milliseconds. */
export const EPOCH_MS: number = Date.parse('2026-11-21T03:00:00Z');

/** A process of the fleet: its clock, its line, and its codec while it runs. */
export class SimulatedMember implements Clock {
  readonly name: string;
  readonly line: Line = { kmsCut: false, storeCut: false };
  readonly #timeline: Timeline;
  readonly #options: Omit<KmsCodecOptions, 'ring' | 'keyWrapper' | 'clock' | 'random'>;
  readonly #services: { readonly kms: SimulatedKms; readonly store: SimulatedStore };
  readonly #dice: Dice;
  /** Wall clock minus world time, milliseconds. */
  skewMs: number;
  #frozenFromMs: number | undefined;
  /** How long the machine was suspended in all: its monotonic clock is behind by that. */
  #suspendedMs = 0;
  #life: AbortController | undefined;
  #held: (() => void)[] = [];
  codec: KmsCodec | undefined;
  startedAtMs: number | undefined;
  startFailures = 0;

  constructor(
    name: string,
    world: { readonly timeline: Timeline; readonly kms: SimulatedKms; readonly store: SimulatedStore },
    dice: Dice,
    skewMs: number,
    options: Omit<KmsCodecOptions, 'ring' | 'keyWrapper' | 'clock' | 'random'>,
  ) {
    this.name = name;
    this.#timeline = world.timeline;
    this.#services = world;
    this.#dice = dice;
    this.skewMs = skewMs;
    this.#options = options;
  }

  wallMs(): number {
    return EPOCH_MS + this.#timeline.nowMs + this.skewMs;
  }

  monotonicNs(): bigint {
    return BigInt(Math.round((this.#timeline.nowMs - this.#suspendedMs) * 1e6));
  }

  /** A timer of this process: a suspended one runs it when it wakes up, a dead one never. */
  schedule(callback: () => void, delayMs: number): () => void {
    const life = this.#life;
    return this.#timeline.after(delayMs, () => {
      if (this.#life !== life) return;
      if (this.#frozenFromMs === undefined) callback();
      else this.#held.push(callback);
    });
  }

  get isUp(): boolean {
    return this.codec !== undefined && this.#frozenFromMs === undefined;
  }

  /** Starts the process; tries again for ever, as a supervisor does. */
  start(): void {
    const life = new AbortController();
    this.#life = life;
    void this.#run(life);
  }

  /** kill -9: nothing is closed, and no callback runs any more. */
  crash(): void {
    const { codec } = this;
    this.#life?.abort();
    this.#life = undefined;
    this.codec = undefined;
    this.#frozenFromMs = undefined;
    this.#held = [];
    // Only to free memory: the world does not hear of it.
    void codec?.close();
  }

  freeze(): void {
    this.#frozenFromMs ??= this.#timeline.nowMs;
  }

  thaw(): void {
    if (this.#frozenFromMs === undefined) return;
    this.#suspendedMs += this.#timeline.nowMs - this.#frozenFromMs;
    this.#frozenFromMs = undefined;
    for (const callback of this.#held.splice(0)) callback();
  }

  async #run(life: AbortController): Promise<void> {
    const { kms, store } = this.#services;
    while (this.#life === life) {
      try {
        const codec = await createKmsCodec({
          ...this.#options,
          ring: store.connect(this.line),
          keyWrapper: kms.connect(this.line),
          clock: this,
          random: this.#dice.source,
          signal: life.signal,
        });
        if (this.#life !== life) {
          await codec.close();
          return;
        }
        this.codec = codec;
        this.startedAtMs = this.#timeline.nowMs;
        return;
      } catch {
        this.startFailures += 1;
        await this.#timeline.pause(5_000);
      }
    }
  }
}
