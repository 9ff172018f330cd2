import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { type MeterProvider, metrics, type TracerProvider, trace } from '@opentelemetry/api';
import type { Clock, KmsCodec } from '@sealring/core';
import { option } from '@sealring/core/adapter';
import { ATTRIBUTE } from './attributes.ts';
import { type ChannelName, createReaders } from './happenings.ts';
import { HealthGauges, type Observed } from './health-gauges.ts';
import { createRecorders } from './metrics.ts';
import { SCOPE, SCOPE_VERSION } from './scope.ts';
import { recordSpan } from './traces.ts';

/** The label of a ring without a name. */
export const DEFAULT_RING_NAME = 'default';
const OWNER = 'createOpenTelemetryBridge';
/** Maximum number of rings that can be observed at once: each ring adds a set of labels. */
const MAX_OBSERVED = 64;
const SYSTEM: Pick<Clock, 'wallMs'> = { wallMs: () => Date.now() };

/** Options of {@link createOpenTelemetryBridge}. */
export interface OpenTelemetryBridgeOptions {
  /** The meter provider. Default: the global provider, which must be registered first. */
  readonly meterProvider?: MeterProvider | undefined;
  /** The tracer provider; null to emit no traces. Default: the global provider. */
  readonly tracerProvider?: TracerProvider | null | undefined;
}

/** Options of {@link OpenTelemetryBridge.observe}. */
export interface ObserveOptions {
  /**
   * The value of the ring label. Use the `ringName` of the codec. 1 to 64 characters of `[A-Za-z0-9._-]`. Default:
   * `default`.
   */
  readonly ringName?: string | undefined;
  /** The clock of the codec, if you gave it one. Default: the system clock. */
  readonly clock?: Pick<Clock, 'wallMs'> | undefined;
}

/** Reports Sealring's events and health to OpenTelemetry, until it is disposed. */
export interface OpenTelemetryBridge extends Disposable {
  /**
   * Reports the health of a codec at each collection, until the codec is closed or you call the returned function.
   * @throws {TypeError | RangeError} for invalid options, a second codec with the same name, or more than 64 codecs.
   */
  observe(codec: Pick<KmsCodec, 'health'>, options?: ObserveOptions): () => void;
  /**
   * Stops listening and reporting. It does not shut down the providers, and an SDK may continue to export the last values.
   * A second call has no effect.
   */
  dispose(): void;
}

/**
 * Turns the events of `@sealring/core` and `@sealring/mcp` in this process into metrics and spans. Create one per process:
 * a second one would count every event again. Labels contain only known values; any other value becomes `_OTHER`. Key
 * ids are hashed. No part of a token, a state, a principal or a key is reported.
 *
 * @throws {TypeError} for an unknown option, or an invalid provider.
 *
 * @example
 * ```ts
 * const bridge = createOpenTelemetryBridge();
 * bridge.observe(codec, { ringName: 'payments' });
 * ```
 */
export function createOpenTelemetryBridge(options: OpenTelemetryBridgeOptions = {}): OpenTelemetryBridge {
  option.refuseUnknown(OWNER, options, ['meterProvider', 'tracerProvider']);
  const { meterProvider, tracerProvider } = options;
  if (meterProvider !== undefined)
    option.objectWith(OWNER, 'meterProvider', meterProvider, 'getMeter', 'a MeterProvider');
  if (tracerProvider !== undefined && tracerProvider !== null) {
    option.objectWith(OWNER, 'tracerProvider', tracerProvider, 'getTracer', 'a TracerProvider or null');
  }
  const meter = (meterProvider ?? metrics).getMeter(SCOPE, SCOPE_VERSION);
  const tracer = tracerProvider === null ? undefined : (tracerProvider ?? trace).getTracer(SCOPE, SCOPE_VERSION);
  const recorders = createRecorders(meter);
  const listeners = Object.entries(createReaders()).map(([name, read]) => {
    const channel = name as ChannelName;
    const listen = (event: unknown): void => {
      if (typeof event !== 'object' || event === null) return;
      const happening = read(event);
      const ringName = happening.attributes[ATTRIBUTE.ring];
      if (typeof ringName === 'string') recorders.startRing(ringName);
      recorders.of[channel](happening);
      if (tracer !== undefined) recordSpan(tracer, channel, happening);
    };
    subscribe(`sealring:${channel}`, listen);
    return { channel, listen };
  });
  const gauges = new HealthGauges(meter);
  let isDisposed = false;
  const dispose = (): void => {
    isDisposed = true;
    for (const { channel, listen } of listeners) unsubscribe(`sealring:${channel}`, listen);
    gauges.dispose();
  };
  return Object.freeze({
    observe: (codec: Pick<KmsCodec, 'health'>, observeOptions: ObserveOptions = {}) => {
      const one = checkObserved(codec, observeOptions, gauges);
      if (!isDisposed) {
        gauges.add(one);
        recorders.startRing(one.ring);
      }
      return () => gauges.remove(one);
    },
    dispose,
    [Symbol.dispose]: dispose,
  });
}

/** @throws {TypeError | RangeError} as {@link OpenTelemetryBridge.observe}. */
export function checkObserved(
  codec: unknown,
  options: unknown,
  others: { readonly size: number; has(ring: string): boolean },
): Observed {
  const checked = option.objectWith<Pick<KmsCodec, 'health'>>('observe', 'codec', codec, 'health', 'a KmsCodec');
  option.refuseUnknown('observe', options, ['ringName', 'clock']);
  const { ringName = DEFAULT_RING_NAME, clock = SYSTEM } = options as ObserveOptions;
  const ring = option.label('observe', 'ringName', ringName);
  option.objectWith('observe', 'clock', clock, 'wallMs', 'a Clock');
  if (others.has(ring)) {
    throw option.rangeError(`observe: a codec with the ringName "${ring}" is already being observed`);
  }
  if (others.size >= MAX_OBSERVED) throw option.rangeError(`observe: at most ${MAX_OBSERVED} codecs can be observed`);
  return { codec: checked, ring, clock };
}
