import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { type MeterProvider, metrics, type TracerProvider, trace } from '@opentelemetry/api';
import type { Clock, KmsCodec } from '@sealring/core';
import { label, objectWith, refuseUnknownOptions } from '@sealring/core/adapter';
import { type ChannelName, createReaders } from './happenings.ts';
import { HealthGauges, type Observed } from './health-gauges.ts';
import { createRecorders } from './metrics.ts';
import { recordSpan } from './traces.ts';

const OWNER = 'createOpenTelemetryBridge';
const SCOPE = '@sealring/otel';
/** Rings of one process that are told apart: each is a set of labels. */
const MAX_OBSERVED = 64;
const SYSTEM: Pick<Clock, 'wallMs'> = { wallMs: () => Date.now() };

/** Options of {@link createOpenTelemetryBridge}. */
export interface OpenTelemetryBridgeOptions {
  /** Where metrics go. Default: the global provider, which has to be registered before. */
  readonly meterProvider?: MeterProvider;
  /** Where traces go; null for no traces. Default: the global provider. */
  readonly tracerProvider?: TracerProvider | null;
}

/** Options of {@link OpenTelemetryBridge.observe}. */
export interface ObserveOptions {
  /** What the ring is called in the label: give the `ringName` of the codec. 1 to 64 of `[A-Za-z0-9._-]`. Default: `default`. */
  readonly ringName?: string;
  /** The codec's clock, if it has one of its own. Default: the system's. */
  readonly clock?: Pick<Clock, 'wallMs'>;
}

/** Tells OpenTelemetry what Sealring does, until it is disposed of. */
export interface OpenTelemetryBridge extends Disposable {
  /**
   * Reports the health of a codec at every collection, until it is closed or the returned function is called.
   * @throws {TypeError | RangeError} for wrong options, a second codec under one name, or more than 64 of them.
   */
  observe(codec: Pick<KmsCodec, 'health'>, options?: ObserveOptions): () => void;
  /**
   * Stops listening and reporting. The providers stay yours: an SDK may go on exporting what it was told last. A second
   * call does nothing.
   */
  dispose(): void;
}

/**
 * Listens to the events of `@sealring/core` and `@sealring/mcp` in this process, and makes metrics and spans of them.
 * One per process: a second one counts everything a second time. Labels take known values only, `_OTHER` for anything
 * else; key ids are hashed; nothing of a token, a state, a principal or a key is looked at.
 *
 * @throws {TypeError} for an unknown option, or a provider that is none.
 *
 * @example
 * ```ts
 * const bridge = createOpenTelemetryBridge();
 * bridge.observe(codec, { ringName: 'payments' });
 * ```
 */
export function createOpenTelemetryBridge(options: OpenTelemetryBridgeOptions = {}): OpenTelemetryBridge {
  refuseUnknownOptions(OWNER, options, ['meterProvider', 'tracerProvider']);
  const { meterProvider, tracerProvider } = options;
  if (meterProvider !== undefined) objectWith(OWNER, 'meterProvider', meterProvider, 'getMeter', 'a MeterProvider');
  if (tracerProvider !== undefined && tracerProvider !== null) {
    objectWith(OWNER, 'tracerProvider', tracerProvider, 'getTracer', 'a TracerProvider or null');
  }
  const meter = (meterProvider ?? metrics).getMeter(SCOPE);
  const tracer = tracerProvider === null ? undefined : (tracerProvider ?? trace).getTracer(SCOPE);
  const recorders = createRecorders(meter);
  const listeners = Object.entries(createReaders()).map(([name, read]) => {
    const channel = name as ChannelName;
    const listen = (event: unknown): void => {
      if (typeof event !== 'object' || event === null) return;
      const happening = read(event);
      recorders[channel](happening);
      if (tracer !== undefined) recordSpan(tracer, channel, happening);
    };
    subscribe(`sealring:${channel}`, listen);
    return { channel, listen };
  });
  const gauges = new HealthGauges(meter);
  let isDisposed = false;
  const dispose = (): void => {
    if (isDisposed) return;
    isDisposed = true;
    for (const { channel, listen } of listeners) unsubscribe(`sealring:${channel}`, listen);
    gauges.dispose();
  };
  return Object.freeze({
    observe: (codec: Pick<KmsCodec, 'health'>, observeOptions: ObserveOptions = {}) => {
      const one = checkObserved(codec, observeOptions, gauges);
      if (!isDisposed) gauges.add(one);
      return () => gauges.remove(one);
    },
    dispose,
    [Symbol.dispose]: dispose,
  });
}

function checkObserved(codec: unknown, options: unknown, others: HealthGauges): Observed {
  const checked = objectWith<Pick<KmsCodec, 'health'>>('observe', 'codec', codec, 'health', 'a KmsCodec');
  refuseUnknownOptions('observe', options, ['ringName', 'clock']);
  const { ringName = 'default', clock = SYSTEM } = options as ObserveOptions;
  const ring = label('observe', 'ringName', ringName);
  objectWith('observe', 'clock', clock, 'wallMs', 'a Clock');
  if (others.has(ring)) {
    throw new RangeError(`observe: a codec is observed under the ringName "${ring}" already`);
  }
  if (others.size >= MAX_OBSERVED) throw new RangeError(`observe: at most ${MAX_OBSERVED} codecs are observed at once`);
  return { codec: checked, ring, clock };
}
