import { channel } from 'node:diagnostics_channel';
import { BOUNDARY_EVENTS, type BoundaryEvents, CARRIER_METHODS, REJECT_REASONS } from '@sealring/mcp';
import { createOpenTelemetryBridge } from '@sealring/otel';
import { expect, test } from 'vitest';
import { startScrapedMeter } from '../support/prometheus-exporter.ts';

function publish<Name extends keyof BoundaryEvents>(name: Name, event: BoundaryEvents[Name]): void {
  channel(name).publish(event);
}

test('the bridge knows every event, method and reason that @sealring/mcp exports', async () => {
  await using meter = await startScrapedMeter();
  using bridge = createOpenTelemetryBridge({ meterProvider: meter.meterProvider, tracerProvider: null });
  expect(bridge).toBeDefined();
  expect(BOUNDARY_EVENTS.filter((name) => !channel(name).hasSubscribers)).toEqual([]);
  for (const method of CARRIER_METHODS) {
    publish('sealring:boundary-sealed', { method });
    publish('sealring:boundary-unsealed', { method });
  }
  for (const direction of ['inbound', 'outbound'] as const) {
    for (const method of [...CARRIER_METHODS, 'unknown'] as const) {
      for (const reason of REJECT_REASONS) publish('sealring:boundary-refused', { direction, method, reason });
    }
  }
  const counted = [...(await meter.samples()).keys()].filter((sample) => sample.startsWith('sealring_boundary_'));
  expect(counted.filter((sample) => sample.includes('refused'))).toHaveLength(2 * 4 * REJECT_REASONS.length);
  expect(counted.filter((sample) => sample.includes('_OTHER'))).toEqual([]);
});
