import { type Clock, createKmsCodec, type KmsCodec, type RandomSource } from '@sealring/core';
import type { History } from './history.ts';
import { digest, TracedKms, TracedStore } from './services.ts';
import type { Expected, Scene, Step } from './trace.ts';

/** Longest time that an operation may take, milliseconds of the trace. */
const LONGEST_OPERATION_MS = 1_000_000;
const DATA_KEY_BYTES = 32;

interface Timer {
  readonly due: number;
  readonly order: number;
  readonly run: () => void;
}

/** One TypeScript member on clocks and services of a trace; every step returns its result. */
export class TracedMember implements Clock {
  readonly #scene: Scene;
  readonly #store: TracedStore;
  readonly #services: readonly TracedKms[];
  #steadyMs: number;
  #aheadMs: number;
  #storeDateMs: number | null = 0;
  #kmsDateMs: number | null = 0;
  #word = 0;
  #dataKeys = 0;
  #timers: Timer[] = [];
  #order = 0;
  #codec: KmsCodec | undefined;

  constructor(scene: Scene, keys: History['keys']) {
    this.#scene = scene;
    this.#steadyMs = scene.steadyMs;
    this.#aheadMs = scene.wallMs - scene.steadyMs;
    const date = (aheadMs: () => number | null) => (): number | undefined => {
      const ahead = aheadMs();
      return ahead === null ? undefined : Math.floor((scene.trueAheadMs + this.#steadyMs + ahead) / 1_000) * 1_000;
    };
    this.#store = new TracedStore(date(() => this.#storeDateMs));
    this.#services = scene.providers.map(
      (provider) =>
        new TracedKms(
          provider,
          date(() => this.#kmsDateMs),
        ),
    );
    this.#services[0]?.learn(keys);
  }

  wallMs(): number {
    return this.#steadyMs + this.#aheadMs;
  }

  monotonicNs(): bigint {
    return BigInt(this.#steadyMs) * 1_000_000n;
  }

  schedule(run: () => void, delayMs: number): () => void {
    const timer = { due: Math.ceil(this.#steadyMs + Math.max(0, delayMs)), order: this.#order++, run };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  readonly #random: RandomSource = (fill) => {
    // No two data keys are the same; otherwise a member would draw again without an end.
    if (fill.length === DATA_KEY_BYTES) fill.set(digest(`random/${this.#dataKeys++}`));
    else for (let i = 0; i < fill.length; i++) fill[i] = this.#word >>> (8 * (i % 4));
  };

  /** Makes a step, and returns its result. */
  async step(step: Step): Promise<Expected> {
    this.#set(step);
    this.#store.writes = [];
    const reads = this.#store.reads;
    const generated = this.#generated();
    const result = await this.#obey(step);
    return {
      result,
      atMs: this.#steadyMs,
      reads: this.#store.reads - reads,
      generated: this.#generated() - generated,
      writes: this.#store.writes,
      health: this.#health(),
    };
  }

  async close(): Promise<void> {
    await this.#codec?.close();
  }

  #generated(): number {
    return this.#services.reduce((sum, { generated }) => sum + generated, 0);
  }

  #set({ word, clock, store, kms }: Step): void {
    this.#word = word;
    this.#aheadMs += clock?.stepMs ?? 0;
    // A suspension: only the time of the others advances.
    this.#aheadMs += clock?.sleptMs ?? 0;
    this.#scene.trueAheadMs += clock?.sleptMs ?? 0;
    if (store?.document !== undefined) this.#store.put(store.document);
    if (store?.failing !== undefined) this.#store.failing = store.failing ?? undefined;
    if (store?.race !== undefined) this.#store.race = store.race;
    if (store?.losesAnswer !== undefined) this.#store.losesAnswer = store.losesAnswer;
    if (store?.dateAheadMs !== undefined) this.#storeDateMs = store.dateAheadMs;
    for (const service of this.#services) {
      const told = kms?.[service.provider];
      if (told?.failing !== undefined) service.failing = told.failing ?? undefined;
      if (told?.wrapFailing !== undefined) service.wrapFailing = told.wrapFailing ?? undefined;
      if (told?.keyId !== undefined) service.keyId = told.keyId;
      if (told?.dateAheadMs !== undefined) this.#kmsDateMs = told.dateAheadMs;
    }
  }

  async #obey({ op, argument }: Step): Promise<string> {
    switch (op) {
      case 'start':
        return this.#ended(() => this.#start());
      case 'advance':
        await this.#advance(this.#steadyMs + Number(argument));
        return 'ok';
      case 'refresh':
        return this.#ended((codec) => codec.refresh());
      case 'rotate':
        return this.#ended((codec) => codec.rotate({ emergency: argument === 'emergency' }));
      case 'revoke':
        return this.#ended((codec) => codec.revoke(String(argument)));
      case 'revoke-before':
        return this.#ended((codec) => codec.revokeAllBefore(new Date(Number(argument))));
      case 'prepare':
        return this.#ended(async (codec) => codec.prepare(String(argument)));
      case 'seal':
        return this.#ended(async (codec) => codec.seal(new Uint8Array(1)).slice(4, 16));
      case 'unseal':
        return this.#ended(async (codec) => void codec.unseal(String(argument)));
      case 'push':
        this.#store.notify();
        await settled();
        return 'ok';
    }
  }

  async #start(): Promise<void> {
    const { policy, create, providers, wrapQuorum, acceptKeysCreatedAfterMs, keyVersions } = this.#scene;
    this.#codec = await createKmsCodec({
      policy,
      create,
      ring: this.#store.ring(),
      keyWrapper: this.#services.map((service) => service.wrapper(keyVersions)),
      wrapQuorum: wrapQuorum ?? providers.length,
      ...(acceptKeysCreatedAfterMs === null ? {} : { acceptKeysCreatedAfter: new Date(acceptKeysCreatedAfterMs) }),
      clock: this,
      random: this.#random,
    });
  }

  /** The result of an operation; time passes for as long as it takes. */
  async #ended(run: (codec: KmsCodec) => Promise<unknown>): Promise<string> {
    const ended: { result?: string } = {};
    const codec = this.#codec as KmsCodec;
    run(codec).then(
      (value) => (ended.result = typeof value === 'string' ? value : 'ok'),
      (error: unknown) => (ended.result = nameOf(error)),
    );
    await settled();
    const until = this.#steadyMs + LONGEST_OPERATION_MS;
    while (ended.result === undefined) {
      const next = this.#next(until);
      if (next === undefined) throw new Error('an operation of a trace does not end');
      await this.#fire(next);
    }
    return ended.result;
  }

  async #advance(untilMs: number): Promise<void> {
    for (let next = this.#next(untilMs); next !== undefined; next = this.#next(untilMs)) await this.#fire(next);
    this.#steadyMs = untilMs;
  }

  #next(untilMs: number): Timer | undefined {
    const [next] = this.#timers.toSorted((a, b) => a.due - b.due || a.order - b.order);
    return next !== undefined && next.due <= untilMs ? next : undefined;
  }

  async #fire(timer: Timer): Promise<void> {
    this.#timers = this.#timers.filter((other) => other !== timer);
    this.#steadyMs = Math.max(this.#steadyMs, timer.due);
    timer.run();
    await settled();
  }

  #health(): Expected['health'] {
    if (this.#codec === undefined) return null;
    const { keys, sealUntil, lastRefresh, lastKmsCheck, lastError, problems, ...more } = this.#codec.health();
    return {
      ...more,
      sealingKey: more.sealingKey ?? null,
      sealUntil: sealUntil?.getTime() ?? null,
      lastRefresh: lastRefresh?.getTime() ?? null,
      lastKmsCheck: lastKmsCheck?.getTime() ?? null,
      lastError: lastError === undefined ? null : `${lastError.source} ${lastError.kind}`,
      problems: problems.map(({ kind }) => kind),
      keys: keys.map(({ id, state, held, created, activates, sealsUntil, unsealsUntil }) => [
        id,
        state,
        held,
        created.getTime(),
        activates.getTime(),
        sealsUntil.getTime(),
        unsealsUntil.getTime(),
      ]),
    };
  }
}

/** There is no real I/O in a trace: one turn of the event loop runs all ready callbacks. */
function settled(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/** Class and kind of an error, which are the same in every language. */
function nameOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  const kind = 'kind' in error ? error.kind : 'reason' in error ? error.reason : '';
  return kind === '' ? error.name : `${error.name}: ${String(kind)}`;
}
