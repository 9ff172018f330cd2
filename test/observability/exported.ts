import { channel } from 'node:diagnostics_channel';
import { createOpenTelemetryBridge } from '@sealring/otel';
import { createServices, join } from '../support/failing-services.ts';
import { startScrapedMeter } from '../support/prometheus-exporter.ts';
import { traffic } from './desk.ts';

/** What the bridge exports, as Prometheus sees it: the labels of every metric. */
export type Exported = ReadonlyMap<string, ReadonlySet<string>>;

/** Scrapes the bridge of a process in which everything happened that can. */
export async function exportedMetrics(): Promise<Exported> {
  await using meter = await startScrapedMeter();
  using bridge = createOpenTelemetryBridge({ meterProvider: meter.meterProvider, tracerProvider: null });
  const services = createServices();
  const codec = await join(services);
  bridge.observe(codec, { ringName: 'payments' });
  await traffic(codec);
  services.kmsFailing = 'denied';
  await Promise.allSettled([codec.rotate()]);
  services.storeDown = true;
  await Promise.allSettled([codec.refresh()]);
  // Their own conditions are other tests'.
  channel('sealring:key-version').publish({ provider: 'local', version: 'x' });
  channel('sealring:principal-without-subject').publish({ client: 'x' });
  const exported = new Map<string, Set<string>>();
  for (const sample of (await meter.samples()).keys()) {
    const [, name = '', labels = ''] = /^([a-z_]+)(?:\{(.*)\})?$/.exec(sample) ?? [];
    const known = exported.get(name) ?? new Set<string>();
    exported.set(name, known);
    for (const [, label = ''] of labels.matchAll(/([a-z_]+)="/g)) known.add(label);
  }
  await codec.close();
  return exported;
}
