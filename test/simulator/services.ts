import { randomBytes } from 'node:crypto';
import {
  type KeyWrapper,
  KeyWrapperError,
  type KeyWrapperErrorKind,
  RingConflictError,
  type RingStore,
  RingStoreError,
  type StoredRing,
  type WrapOptions,
  type WrappedKey,
} from '@sealring/core';
import type { Dice } from './dice.ts';
import type { Timeline } from './timeline.ts';

/** The way from one member to the services: what a network does to calls. */
export interface Line {
  kmsCut: boolean;
  storeCut: boolean;
}

/** How a simulated network behaves. */
export interface NetworkWeather {
  /** Share of calls that are never answered, 0 to 1. */
  loss: number;
  readonly meanLatencyMs: number;
}

/** A call that is delayed, lost or cut off before `answer` decides it. */
function call<T>(
  world: { readonly timeline: Timeline; readonly dice: Dice; readonly weather: NetworkWeather },
  signal: AbortSignal | undefined,
  answer: () => T,
): Promise<T> {
  const { timeline, dice, weather } = world;
  return new Promise<T>((resolve, reject) => {
    if (dice.chance(weather.loss)) {
      signal?.addEventListener('abort', () => reject(new RingStoreError('unavailable', 'aborted')), { once: true });
      return;
    }
    timeline.after(dice.latencyMs(weather.meanLatencyMs), () => {
      try {
        resolve(answer());
      } catch (error) {
        reject(error);
      }
    });
  });
}

const GRAVITY: readonly KeyWrapperErrorKind[] = ['disabled', 'not-found', 'denied', 'throttled', 'unavailable'];

/** A key service: data keys are kept by handle, so that a billion unwraps cost no cryptography. */
export class SimulatedKms {
  readonly #timeline: Timeline;
  readonly #dice: Dice;
  readonly weather: NetworkWeather;
  readonly #keys = new Map<string, { readonly dataKey: Uint8Array; readonly context: string }>();
  readonly #failures: KeyWrapperErrorKind[] = [];
  /** What calls that wrap are answered with. */
  wrapFailing: KeyWrapperErrorKind | undefined;
  readonly calls = { generate: 0, wrap: 0, unwrap: 0 };
  /** Data keys that were made and handed out. */
  made = 0;

  constructor(timeline: Timeline, dice: Dice, weather: NetworkWeather) {
    this.#timeline = timeline;
    this.#dice = dice;
    this.weather = weather;
  }

  /** What every call is answered with; undefined: it works. Of several troubles the gravest speaks. */
  get failing(): KeyWrapperErrorKind | undefined {
    return GRAVITY.find((kind) => this.#failures.includes(kind));
  }

  /** Fails until the returned function is called. */
  fail(kind: KeyWrapperErrorKind): () => void {
    this.#failures.push(kind);
    return () => void this.#failures.splice(this.#failures.indexOf(kind), 1);
  }

  get total(): number {
    return this.calls.generate + this.calls.wrap + this.calls.unwrap;
  }

  connect(line: Line): KeyWrapper {
    const made = (operation: 'generate' | 'wrap' | 'unwrap', signal: AbortSignal | undefined) => {
      this.calls[operation] += 1;
      return {
        answered: <T>(answer: () => T): Promise<T> =>
          call({ timeline: this.#timeline, dice: this.#dice, weather: this.weather }, signal, () => {
            const kind = line.kmsCut
              ? 'unavailable'
              : (this.failing ?? (operation === 'unwrap' ? undefined : this.wrapFailing));
            if (kind !== undefined) throw new KeyWrapperError(kind, { provider: 'simulated', operation });
            return answer();
          }),
      };
    };
    return {
      provider: 'simulated',
      keyId: 'key',
      supports: { context: true, authenticated: true },
      wrap: (dataKey, { context, signal }) =>
        made('wrap', signal).answered(() => this.#keep(Uint8Array.from(dataKey), context)),
      unwrap: (wrapped, { context, signal }) => made('unwrap', signal).answered(() => this.#give(wrapped, context)),
      generate: ({ context, signal }) =>
        made('generate', signal).answered(() => {
          this.made += 1;
          const dataKey = new Uint8Array(32);
          this.#dice.source(dataKey);
          return { dataKey: Uint8Array.from(dataKey), wrapped: this.#keep(dataKey, context) };
        }),
    };
  }

  #keep(dataKey: Uint8Array, context: WrapOptions['context']): WrappedKey {
    const wrapped = randomBytes(12);
    this.#keys.set(wrapped.toString('base64url'), { dataKey, context: JSON.stringify(context) });
    return { provider: 'simulated', keyId: 'key/1', wrapped };
  }

  #give(wrapped: WrappedKey, context: WrapOptions['context']): Uint8Array {
    const kept = this.#keys.get(Buffer.from(wrapped.wrapped).toString('base64url'));
    if (kept === undefined || kept.context !== JSON.stringify(context)) {
      throw new KeyWrapperError('corrupt', { provider: 'simulated', operation: 'unwrap' });
    }
    return Uint8Array.from(kept.dataKey);
  }
}

/** A ring store with a history, so that it can fail over to an older copy. */
export class SimulatedStore {
  readonly #timeline: Timeline;
  readonly #dice: Dice;
  readonly weather: NetworkWeather;
  #current: StoredRing | undefined;
  #revision = 0;
  #watchers = new Set<() => void>();
  /** Every version ever written, oldest first, with its time. */
  readonly history: { readonly at: number; readonly stored: StoredRing }[] = [];
  /** Told about every change of what is stored. */
  trace: (line: string) => void = () => undefined;
  down = false;
  /** When it last failed over to an older copy. */
  lastFailOverAt: number | undefined;
  pushes = false;
  readonly calls = { read: 0, write: 0 };

  constructor(timeline: Timeline, dice: Dice, weather: NetworkWeather) {
    this.#timeline = timeline;
    this.#dice = dice;
    this.weather = weather;
  }

  get document(): string | undefined {
    return this.#current?.document;
  }

  connect(line: Line): RingStore {
    const answered = <T>(signal: AbortSignal | undefined, answer: () => T): Promise<T> =>
      call({ timeline: this.#timeline, dice: this.#dice, weather: this.weather }, signal, () => {
        if (this.down || line.storeCut) throw new RingStoreError('unavailable', 'cut');
        return answer();
      });
    return {
      kind: 'simulated',
      read: (options) => {
        this.calls.read += 1;
        return answered(options?.signal, () => this.#current);
      },
      write: (document, { expected, signal }) => {
        this.calls.write += 1;
        return answered(signal, () => {
          if (this.#current?.revision !== expected) throw new RingConflictError();
          this.#put(document);
          return { revision: String(this.#revision) };
        });
      },
      watch: (changed) => {
        const heard = (): void => {
          if (this.pushes && !line.storeCut) {
            this.#timeline.after(this.#dice.latencyMs(this.weather.meanLatencyMs), changed);
          }
        };
        this.#watchers.add(heard);
        return () => this.#watchers.delete(heard);
      },
    };
  }

  flush(): void {
    this.trace('the store loses everything');
    this.#current = undefined;
  }

  /** The copy of `agoMs` ago takes over. */
  failOver(agoMs: number): void {
    const older = this.history.findLast(({ at }) => at <= this.#timeline.nowMs - agoMs);
    if (older === undefined) return;
    this.trace(`the store fails over to ${inShort(older.stored.document)}`);
    this.lastFailOverAt = this.#timeline.nowMs;
    this.#current = { document: older.stored.document, revision: String(++this.#revision) };
  }

  #put(document: string): void {
    this.#revision += 1;
    this.#current = { document, revision: String(this.#revision) };
    this.trace(`written: ${inShort(document)}`);
    this.history.push({ at: this.#timeline.nowMs, stored: this.#current });
    for (const heard of this.#watchers) heard();
  }
}

/** Epoch and keys of a document, for a trace: `!` is revoked. */
function inShort(document: string): string {
  const { epoch, keys }: { epoch: number; keys: { id: string; activates: string; revoked?: string }[] } = JSON.parse(
    document.split('\n')[0] ?? '{}',
  );
  const ids = keys.map(
    (key) => `${key.id.slice(0, 4)}${key.revoked === undefined ? '' : '!'}@${key.activates.slice(8, 16)}`,
  );
  return `epoch ${epoch}, ${ids.join(' ')}`;
}
