/**
 * Turns what Sealring publishes on `node:diagnostics_channel` into OpenTelemetry metrics and traces:
 * {@link createOpenTelemetryBridge}, or {@link SealringInstrumentation} for `registerInstrumentations`.
 *
 * @packageDocumentation
 */

export {
  createOpenTelemetryBridge,
  type ObserveOptions,
  type OpenTelemetryBridge,
  type OpenTelemetryBridgeOptions,
} from './bridge.ts';
export { SealringInstrumentation, type SealringInstrumentationConfig } from './instrumentation.ts';
