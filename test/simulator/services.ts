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
// @boundaries-ignore an adversary forges documents with the core's own code
import { keyIdOf } from '../../packages/core/src/formats/derivation.ts';
import type { Dice } from './dice.ts';
import { inShort } from './stored-keys.ts';
import { EPOCH_MS, type Timeline } from './timeline.ts';

/** The network between one member and the services. */
export interface Line {
  kmsCut: boolean;
  storeCut: boolean;
  /** How long the network holds a write before the store has it; its answer is as late. Milliseconds. */
  writesHeldMs: number;
  /** Calls by this member. */
  readonly calls: { kms: number; reads: number; writes: number };
  /** Called when a data key is requested: the member is about to publish. */
  onGenerate: () => void;
  /** Called when a data key was made, and its answer is on its way. */
  onMade: () => void;
  /** Called when an unwrap is requested. */
  onUnwrap: () => void;
  /** Called when the KMS has refused a call. */
  onRefused: () => void;
  /** Delivers an answer to the process, which may be suspended when it arrives. */
  deliver: (hand: () => void) => void;
}

export function newLine(): Line {
  return {
    kmsCut: false,
    storeCut: false,
    writesHeldMs: 0,
    calls: { kms: 0, reads: 0, writes: 0 },
    onGenerate: () => undefined,
    onMade: () => undefined,
    onUnwrap: () => undefined,
    onRefused: () => undefined,
    deliver: (hand) => hand(),
  };
}

/** The clock of a service, which dates its answers. */
export class ServiceDates {
  readonly #timeline: Timeline;
  readonly #wrong: { readonly aheadMs: number }[] = [];
  #own: number | undefined = 0;

  constructor(timeline: Timeline) {
    this.#timeline = timeline;
  }

  /** How far it is ahead of the true time, milliseconds; undefined if its answers carry no date. */
  get aheadMs(): number | undefined {
    return this.#wrong.at(-1)?.aheadMs ?? this.#own;
  }

  set aheadMs(aheadMs: number | undefined) {
    this.#own = aheadMs;
  }

  /** Is wrong by this much until the returned function is called; of several offsets the last one counts. */
  beWrong(aheadMs: number): () => void {
    const wrong = { aheadMs };
    this.#wrong.push(wrong);
    return () => void this.#wrong.splice(this.#wrong.indexOf(wrong), 1);
  }

  /** A date in a header is a whole second, rounded down. */
  get now(): Date | undefined {
    if (this.aheadMs === undefined) return undefined;
    const ms = EPOCH_MS + this.#timeline.nowMs + this.aheadMs;
    return new Date(Math.floor(ms / 1_000) * 1_000);
  }
}

/** How a simulated network behaves. */
export interface NetworkWeather {
  /** Share of calls that are never answered, 0 to 1. */
  loss: number;
  readonly meanLatencyMs: number;
  /** Current delay of every answer, milliseconds. */
  slowMs?: number;
}

/** Called at the end of a call. */
interface Caller {
  readonly signal?: AbortSignal | undefined;
  readonly onServiceDate?: ((date: Date) => void) | undefined;
  readonly heldMs?: number;
  readonly line: Line;
}

/** A call that is delayed, lost or cut off before `answer` decides its result. */
function call<T>(
  service: {
    readonly timeline: Timeline;
    readonly dice: Dice;
    readonly weather: NetworkWeather;
    readonly dates: ServiceDates;
  },
  { signal, onServiceDate, heldMs = 0, line }: Caller,
  answer: () => T,
): Promise<T> {
  const { timeline, dice, weather, dates } = service;
  return new Promise<T>((resolve, reject) => {
    if (dice.chance(weather.loss)) {
      signal?.addEventListener('abort', () => reject(new RingStoreError('unavailable', 'aborted')), { once: true });
      return;
    }
    timeline.after(heldMs + (weather.slowMs ?? 0) + dice.latencyMs(weather.meanLatencyMs), () => {
      let hand: () => void;
      try {
        const answered = answer();
        const date = dates.now;
        hand = () => {
          if (date !== undefined) onServiceDate?.(date);
          resolve(answered);
        };
      } catch (error) {
        hand = () => reject(error);
      }
      line.deliver(hand);
    });
  });
}

/** The key id of wraps that the KMS refuses, always. */
export const FORBIDDEN = 'forbidden';
const GRAVITY: readonly KeyWrapperErrorKind[] = ['disabled', 'not-found', 'denied', 'throttled', 'unavailable'];

/** A KMS: data keys are kept by handle, so that a billion unwraps cost no cryptography. */
export class SimulatedKms {
  readonly #timeline: Timeline;
  readonly #dice: Dice;
  readonly weather: NetworkWeather;
  readonly dates: ServiceDates;
  readonly #keys = new Map<string, { readonly dataKey: Uint8Array; readonly context: string }>();
  readonly #ids = new Set<string>();
  readonly #failures: KeyWrapperErrorKind[] = [];
  /** The result of every call that wraps. */
  wrapFailing: KeyWrapperErrorKind | undefined;
  readonly calls = { generate: 0, wrap: 0, unwrap: 0 };
  /** Data keys that were made and returned. */
  made = 0;
  /** Whether wraps name the version of the KMS key: members then check for a new one from time to time, by a wrap. */
  namesVersions = false;
  looks = 0;

  constructor(timeline: Timeline, dice: Dice, weather: NetworkWeather) {
    this.#timeline = timeline;
    this.#dice = dice;
    this.weather = weather;
    this.dates = new ServiceDates(timeline);
  }

  /** The result of every call; undefined if it works. The worst of several faults counts. */
  get failing(): KeyWrapperErrorKind | undefined {
    return GRAVITY.find((kind) => this.#failures.includes(kind));
  }

  /** Whether a key of this id was ever wrapped. */
  isGenuine(id: string): boolean {
    return this.#ids.has(id);
  }

  /** Every data key that was ever wrapped: the keys that a thief may have. */
  get dataKeys(): readonly Uint8Array[] {
    return [...this.#keys.values()].map(({ dataKey }) => dataKey);
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
    const service = { timeline: this.#timeline, dice: this.#dice, weather: this.weather, dates: this.dates };
    const made = (operation: 'generate' | 'wrap' | 'unwrap', caller: Omit<Caller, 'line'>, keyId?: string) => {
      this.calls[operation] += 1;
      line.calls.kms += 1;
      if (operation === 'generate') line.onGenerate();
      if (operation === 'unwrap') line.onUnwrap();
      const failing = (): KeyWrapperErrorKind | undefined => {
        if (line.kmsCut) return 'unavailable';
        // The answer for another key of this account, which the fleet may not use, whatever fails for its own.
        if (keyId === FORBIDDEN) return 'denied';
        return this.failing ?? (operation === 'unwrap' ? undefined : this.wrapFailing);
      };
      return {
        answered: <T>(answer: () => T): Promise<T> =>
          call(service, { ...caller, line }, () => {
            const kind = failing();
            if (kind === undefined) return answer();
            if (kind !== 'unavailable' && kind !== 'throttled') line.onRefused();
            throw new KeyWrapperError(kind, { provider: 'simulated', operation });
          }),
      };
    };
    return {
      provider: 'simulated',
      keyId: 'key',
      supports: { context: true, authenticated: true, keyVersions: this.namesVersions },
      wrap: (dataKey, options) => {
        if (options.context['sealring:purpose'] === 'key-version') this.looks += 1;
        return made('wrap', options).answered(() => this.keep(Uint8Array.from(dataKey), options.context));
      },
      unwrap: (wrapped, options) =>
        made('unwrap', options, wrapped.keyId).answered(() => this.#give(wrapped, options.context)),
      generate: (options) =>
        made('generate', options).answered(() => {
          this.made += 1;
          line.onMade();
          const dataKey = new Uint8Array(32);
          this.#dice.source(dataKey);
          return { dataKey: Uint8Array.from(dataKey), wrapped: this.keep(dataKey, options.context) };
        }),
    };
  }

  /** Wraps a data key, as anyone with the permission can at any time. */
  keep(dataKey: Uint8Array, context: WrapOptions['context']): WrappedKey {
    const wrapped = Buffer.alloc(12);
    this.#dice.source(wrapped);
    this.#ids.add(keyIdOf(dataKey).toString('base64url'));
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
  readonly dates: ServiceDates;
  #current: StoredRing | undefined;
  #revision = 0;
  #watchers = new Set<() => void>();
  /** Every version ever written, oldest first, with its time. */
  readonly history: { readonly at: number; readonly stored: StoredRing }[] = [];
  /** Called after every change of the stored document. */
  trace: (line: string) => void = () => undefined;
  /** Called with every stored document, its predecessor, and the network of its writer; not for hostile ones. */
  onWritten: (document: string, before: string | undefined, line: Line | undefined) => void = () => undefined;
  /** Called after every change of the stored document. */
  onStored: () => void = () => undefined;
  down = false;
  /** When it last failed over to an older copy. */
  lastFailOverAt: number | undefined;
  pushes = false;
  readonly calls = { read: 0, write: 0 };

  constructor(timeline: Timeline, dice: Dice, weather: NetworkWeather) {
    this.#timeline = timeline;
    this.#dice = dice;
    this.weather = weather;
    this.dates = new ServiceDates(timeline);
  }

  get document(): string | undefined {
    return this.#current?.document;
  }

  connect(line: Line): RingStore {
    const service = { timeline: this.#timeline, dice: this.#dice, weather: this.weather, dates: this.dates };
    const answered = <T>(caller: Omit<Caller, 'line'>, answer: () => T): Promise<T> =>
      call(service, { ...caller, line }, () => {
        if (this.down || line.storeCut) throw new RingStoreError('unavailable', 'cut');
        return answer();
      });
    return {
      kind: 'simulated',
      read: (options) => {
        this.calls.read += 1;
        line.calls.reads += 1;
        return answered(options ?? {}, () => this.#current);
      },
      write: (document, { expected, signal, onServiceDate }) => {
        this.calls.write += 1;
        line.calls.writes += 1;
        return answered({ signal, onServiceDate, heldMs: line.writesHeldMs }, () => {
          if (this.#current?.revision !== expected) throw new RingConflictError();
          this.#put(document, line);
          return { revision: String(this.#revision) };
        });
      },
      watch: (changed) => {
        const heard = (): void => {
          if (!line.storeCut) {
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
    this.onStored();
  }

  /** The copy from `agoMs` ago becomes the store. */
  failOver(agoMs: number): void {
    const older = this.history.findLast(({ at }) => at <= this.#timeline.nowMs - agoMs);
    if (older === undefined) return;
    this.trace(`the store fails over to ${inShort(older.stored.document)}`);
    this.lastFailOverAt = this.#timeline.nowMs;
    this.#current = { document: older.stored.document, revision: String(++this.#revision) };
    this.onStored();
  }

  /** An attacker who may write to the store puts any text there; undefined deletes it. */
  replace(document: string | undefined): void {
    if (document === undefined) this.flush();
    else this.#put(document, undefined);
  }

  /** Notifies the watchers, as anyone with the permission can without writing. */
  notify(): void {
    for (const heard of this.#watchers) heard();
  }

  #put(document: string, line: Line | undefined): void {
    const before = this.#current?.document;
    this.#revision += 1;
    this.#current = { document, revision: String(this.#revision) };
    this.trace(`written: ${inShort(document)}`);
    this.history.push({ at: this.#timeline.nowMs, stored: this.#current });
    this.onWritten(document, before, line);
    this.onStored();
    if (this.pushes) this.notify();
  }
}
