import type { MeterProvider, TracerProvider } from '@opentelemetry/api';
import type { KmsCodec } from '@sealring/core';
import { option } from '@sealring/core/adapter';
import {
  checkObserved,
  createOpenTelemetryBridge,
  DEFAULT_RING_NAME,
  type ObserveOptions,
  type OpenTelemetryBridge,
} from './bridge.ts';
import { healthOf } from './health-gauges.ts';
import { SCOPE, SCOPE_VERSION } from './scope.ts';

/** Options of {@link SealringInstrumentation}, as OpenTelemetry defines them for every instrumentation. */
export interface SealringInstrumentationConfig {
  /** Whether the instrumentation reports from the start. Default: true. */
  enabled?: boolean;
}

/** A codec that stays observed when the providers change. */
interface Observation {
  readonly codec: Pick<KmsCodec, 'health'>;
  readonly options: ObserveOptions | undefined;
  stop: (() => void) | undefined;
}

/**
 * The bridge as an instrumentation, for `registerInstrumentations` and the `instrumentations` of OpenTelemetry's `NodeSDK`,
 * which set its providers. Create one instrumentation per process, and no separate bridge.
 *
 * @example
 * ```ts
 * const sealring = new SealringInstrumentation();
 * new NodeSDK({ instrumentations: [sealring] }).start();
 * sealring.observe(codec, { ringName: 'payments' });
 * ```
 */
export class SealringInstrumentation {
  readonly instrumentationName: string = SCOPE;
  readonly instrumentationVersion: string = SCOPE_VERSION;
  /** Keyed by ring name. A codec with the name of a closed codec replaces it. */
  readonly #observed = new Map<string, Observation>();
  #config: SealringInstrumentationConfig = {};
  #meterProvider: MeterProvider | undefined;
  #tracerProvider: TracerProvider | undefined;
  #bridge: OpenTelemetryBridge | undefined;

  /** @throws {TypeError} for an unknown option. */
  constructor(config: SealringInstrumentationConfig = {}) {
    this.setConfig(config);
    if (config.enabled !== false) this.enable();
  }

  /** Starts to report. A second call has no effect. */
  enable(): void {
    if (this.#bridge === undefined) this.#start();
  }

  /** Stops reporting, until {@link SealringInstrumentation.enable} is called. */
  disable(): void {
    this.#bridge?.dispose();
    this.#bridge = undefined;
  }

  setMeterProvider(provider: MeterProvider): void {
    this.#meterProvider = provider;
    this.#restart();
  }

  setTracerProvider(provider: TracerProvider): void {
    this.#tracerProvider = provider;
    this.#restart();
  }

  /** Stores the options. This does not enable or disable the instrumentation. */
  setConfig(config: SealringInstrumentationConfig): void {
    option.refuseUnknown('SealringInstrumentation', config, ['enabled']);
    this.#config = { ...config };
  }

  getConfig(): SealringInstrumentationConfig {
    return this.#config;
  }

  /**
   * Reports the health of a codec at each collection, as {@link OpenTelemetryBridge.observe} does, and continues
   * when another provider is set.
   * @throws {TypeError | RangeError} for the same reasons as {@link OpenTelemetryBridge.observe}.
   */
  observe(codec: Pick<KmsCodec, 'health'>, options?: ObserveOptions): () => void {
    const observation: Observation = { codec, options, stop: undefined };
    if (this.#bridge === undefined) checkObserved(codec, options ?? {}, this.#withoutClosed());
    else observation.stop = this.#bridge.observe(codec, options);
    const name = options?.ringName ?? DEFAULT_RING_NAME;
    this.#observed.set(name, observation);
    return () => {
      if (this.#observed.get(name) === observation) this.#observed.delete(name);
      observation.stop?.();
    };
  }

  /** Without a bridge, nothing else notices that a codec was closed, which frees its name. */
  #withoutClosed(): ReadonlyMap<string, Observation> {
    for (const [name, { codec }] of this.#observed) if (healthOf({ codec }) === undefined) this.#observed.delete(name);
    return this.#observed;
  }

  #restart(): void {
    if (this.#bridge === undefined) return;
    this.disable();
    this.#start();
  }

  #start(): void {
    const providers = { meterProvider: this.#meterProvider, tracerProvider: this.#tracerProvider };
    const bridge = createOpenTelemetryBridge(providers);
    this.#bridge = bridge;
    for (const observation of this.#observed.values()) {
      observation.stop = bridge.observe(observation.codec, observation.options);
    }
  }
}
