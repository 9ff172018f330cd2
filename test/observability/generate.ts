import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createNoopMeter, type Meter, type MetricOptions } from '@opentelemetry/api';
import { createOpenTelemetryBridge } from '@sealring/otel';
import { type Instrument, withOtlpNames } from './otlp-names.ts';

const FOLDER = join(import.meta.dirname, '../../packages/otel/observability');

/**
 * `alerts.yml` and `grafana-dashboard.json` use the names of OpenTelemetry's own exporter for Prometheus. This program
 * writes the same files with the names of a collector: `npm run observability`.
 */

const SOURCES = ['alerts.yml', 'grafana-dashboard.json'] as const;

/** Each generated file, by its name. */
export function generated(): ReadonlyMap<string, string> {
  const instruments = instrumentsOfTheBridge();
  return new Map(
    SOURCES.map((source) => {
      const text = readFileSync(join(FOLDER, source), 'utf8');
      return [source.replace('.', '-otlp.'), forCollectors(withOtlpNames(text, instruments))];
    }),
  );
}

const KINDS: Readonly<Record<string, Instrument['kind']>> = {
  createCounter: 'counter',
  createHistogram: 'histogram',
  createObservableGauge: 'gauge',
  createObservableUpDownCounter: 'up-down counter',
};

/** The instruments that the bridge creates. */
export function instrumentsOfTheBridge(): readonly Instrument[] {
  const instruments: Instrument[] = [];
  const meter = new Proxy(createNoopMeter(), {
    get(target, method: keyof Meter) {
      const kind = KINDS[method];
      if (kind === undefined) return target[method];
      return (name: string, options: MetricOptions = {}) => {
        instruments.push({ name, unit: options.unit ?? '', kind });
        return (target[method] as Meter['createCounter'])(name, options);
      };
    },
  });
  createOpenTelemetryBridge({ meterProvider: { getMeter: () => meter }, tracerProvider: null }).dispose();
  return instruments;
}

/** The comments at the top of the files. */
function forCollectors(text: string): string {
  return text
    .replace(
      "# OpenTelemetry's own exporter for Prometheus produces these names; alerts-otlp.yml has the names of a collector.",
      '# Generated from alerts.yml: npm run observability. A collector with its default settings produces these names.',
    )
    .replace('"uid": "sealring"', '"uid": "sealring-otlp"')
    .replace('"title": "Sealring"', '"title": "Sealring (OTLP names)"');
}

if (process.argv[1] === import.meta.filename) {
  for (const [name, text] of generated()) writeFileSync(join(FOLDER, name), text);
}
