import { channel } from 'node:diagnostics_channel';
import type { CodecHealth } from '@sealring/core';
import { createOpenTelemetryBridge } from '@sealring/otel';
import { createServices, join } from '../support/failing-services.ts';
import { startScrapedMeter } from '../support/prometheus-exporter.ts';
import { traffic } from './desk.ts';

/** The bridge's metrics, as Prometheus sees them: the labels of each. */
export type Exported = ReadonlyMap<string, ReadonlySet<string>>;

/** A process in which every event happened; its metrics as a page for Prometheus. */
export interface BusyProcess extends AsyncDisposable {
  page(): Promise<string>;
}

export async function startBusyProcess(): Promise<BusyProcess> {
  const meter = await startScrapedMeter();
  const bridge = createOpenTelemetryBridge({ meterProvider: meter.meterProvider, tracerProvider: null });
  const services = createServices();
  const codec = await join(services);
  bridge.observe(codec, { ringName: 'payments' });
  await traffic(codec);
  services.kmsFailing = 'denied';
  await Promise.allSettled([codec.rotate()]);
  services.storeDown = true;
  await Promise.allSettled([codec.refresh()]);
  // Other tests cause these.
  channel('sealring:key-version').publish({ ringName: 'payments', provider: 'local', version: 'x' });
  channel('sealring:principal-without-subject').publish({ client: 'x' });
  const problems: CodecHealth['problems'] = [{ kind: 'contested', detail: '', remedy: '' }];
  bridge.observe({ health: () => ({ ...codec.health(), problems }) }, { ringName: 'contested' });
  return {
    page: () => meter.scrape(),
    async [Symbol.asyncDispose]() {
      bridge.dispose();
      await codec.close();
      await meter[Symbol.asyncDispose]();
    },
  };
}

/** The metrics of a page, and their labels. */
export function exportedMetrics(page: string): Exported {
  const exported = new Map<string, Set<string>>();
  for (const [, name = '', labels = ''] of page.matchAll(/^([a-z_]+)(?:\{(.*)\})? \S+$/gm)) {
    const known = exported.get(name) ?? new Set<string>();
    exported.set(name, known);
    for (const [, label = ''] of labels.matchAll(/([a-z_]+)="/g)) known.add(label);
  }
  return exported;
}
