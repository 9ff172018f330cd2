export {
  createOpenTelemetryBridge,
  type ObserveOptions,
  type OpenTelemetryBridge,
  type OpenTelemetryBridgeOptions,
} from './bridge.ts';
