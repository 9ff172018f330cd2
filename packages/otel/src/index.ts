/**
 * Turns what Sealring publishes on `node:diagnostics_channel` into OpenTelemetry metrics and traces:
 * {@link createOpenTelemetryBridge}.
 *
 * @packageDocumentation
 */

export {
  createOpenTelemetryBridge,
  type ObserveOptions,
  type OpenTelemetryBridge,
  type OpenTelemetryBridgeOptions,
} from './bridge.ts';
