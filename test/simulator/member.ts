import { type Clock, createKmsCodec, type KeyHealth, type KmsCodec, type KmsCodecOptions } from '@sealring/core';
import type { Dice } from './dice.ts';
import { type Line, newLine, type SimulatedKms, type SimulatedStore } from './services.ts';
import { EPOCH_MS, type Timeline } from './timeline.ts';

export { EPOCH_MS } from './timeline.ts';

/** A process of the fleet: its clock, its network, and its codec while it runs. */
export class SimulatedMember implements Clock {
  readonly name: string;
  readonly line: Line = newLine();
  readonly #timeline: Timeline;
  readonly #options: Omit<KmsCodecOptions, 'ring' | 'keyWrapper' | 'clock' | 'random'>;
  readonly #services: { readonly kms: SimulatedKms; readonly store: SimulatedStore };
  readonly #dice: Dice;
  /** Wall clock minus world time, milliseconds. */
  skewMs: number;
  /** The lowest offset so far. */
  lowestSkewMs: number;
  /** How far it is wrong beyond what is tolerated, milliseconds. */
  wrongMs = 0;
  #frozenFromMs: number | undefined;
  /** How long the machine was suspended in total: its monotonic clock is behind by that. */
  #suspendedMs = 0;
  #life: AbortController | undefined;
  #held: (() => void)[] = [];
  codec: KmsCodec | undefined;
  startedAtMs: number | undefined;
  startFailures = 0;
  /** Called when it has started. */
  onStarted: () => void = () => undefined;
  /** Called with the error of a start that failed, unless the process ended. */
  onStartFailure: (error: unknown) => void = () => undefined;

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
    this.lowestSkewMs = skewMs;
    this.#options = options;
    this.line.deliver = (hand) => {
      if (this.#frozenFromMs === undefined) hand();
      else this.#held.push(hand);
    };
  }

  wallMs(): number {
    return EPOCH_MS + this.#timeline.nowMs + this.skewMs + this.wrongMs;
  }

  monotonicNs(): bigint {
    return BigInt(Math.round(((this.#frozenFromMs ?? this.#timeline.nowMs) - this.#suspendedMs) * 1e6));
  }

  /** The machines of this world started with it; a suspension counts. */
  uptimeMs(): number {
    return this.#timeline.nowMs;
  }

  /** A timer of this process: a suspended process runs it on resume, a dead one never. */
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

  /** The keys whose bytes it has; none while its process does not run. */
  get heldKeys(): readonly KeyHealth[] {
    return this.codec?.health().keys.filter((key) => key.held) ?? [];
  }

  /** Starts the process; repeats failed starts without an end, as a supervisor does. */
  start(): void {
    const life = new AbortController();
    this.#life = life;
    void this.#run(life);
  }

  /** kill -9: nothing is closed, and no callback runs. */
  crash(): void {
    const { codec } = this;
    this.#life?.abort();
    this.#life = undefined;
    this.codec = undefined;
    this.#frozenFromMs = undefined;
    this.#held = [];
    // This only frees memory: the world does not notice it.
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
        this.onStarted();
        return;
      } catch (error) {
        if (this.#life !== life) return;
        this.onStartFailure(error);
        this.startFailures += 1;
        await this.#timeline.pause(5_000);
      }
    }
  }
}
