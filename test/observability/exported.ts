import { randomBytes } from 'node:crypto';
import { channel } from 'node:diagnostics_channel';
import { createKmsCodec, KeyWrapperError, localKeyWrapper, memoryRing, RingStoreError } from '@sealring/core';
import { createOpenTelemetryBridge } from '@sealring/otel';
import { startScrapedMeter } from '../support/prometheus-exporter.ts';
import { traffic } from './desk.ts';

/** What the bridge exports, as Prometheus sees it: the labels of every metric. */
export type Exported = ReadonlyMap<string, ReadonlySet<string>>;

/** Scrapes the bridge of a process in which everything happened that can. */
export async function exportedMetrics(): Promise<Exported> {
  await using meter = await startScrapedMeter();
  using bridge = createOpenTelemetryBridge({ meterProvider: meter.meterProvider, tracerProvider: null });
  const services = failingServices();
  const codec = await createKmsCodec({ ...services.options, ringName: 'payments' });
  bridge.observe(codec, { ringName: 'payments' });
  await traffic(codec);
  services.failing.kms = true;
  await Promise.allSettled([codec.rotate()]);
  services.failing.store = true;
  await Promise.allSettled([codec.refresh()]);
  // Its own conditions are another test's.
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

/** A KMS and a store that work until told to fail. */
function failingServices() {
  const inner = localKeyWrapper({ masterKey: randomBytes(32) });
  const store = memoryRing();
  const failing = { kms: false, store: false };
  const refuse = (operation: 'wrap' | 'unwrap'): void => {
    if (failing.kms) throw new KeyWrapperError('denied', { provider: 'local', operation });
  };
  return {
    failing,
    options: {
      keyWrapper: {
        provider: inner.provider,
        keyId: inner.keyId,
        supports: inner.supports,
        wrap: async (...args: Parameters<typeof inner.wrap>) => {
          refuse('wrap');
          return inner.wrap(...args);
        },
        unwrap: async (...args: Parameters<typeof inner.unwrap>) => {
          refuse('unwrap');
          return inner.unwrap(...args);
        },
      },
      ring: {
        kind: store.kind,
        read: async () => {
          if (failing.store) throw new RingStoreError('unavailable', 'down');
          return store.read();
        },
        write: (...args: Parameters<typeof store.write>) => store.write(...args),
      },
    },
  };
}
