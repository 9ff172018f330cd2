import { createServer } from 'node:http';
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import { closed, listening } from './loopback.ts';

/** The exporter for Prometheus, scraped over a socket. */
export interface ScrapedMeter extends AsyncDisposable {
  readonly meterProvider: MeterProvider;
  readonly url: string;
  /** The page as Prometheus gets it, without the exporter's own metrics. */
  scrape(): Promise<string>;
  /** The samples of the page: `name{labels}` and value, without the labels of the exporter's own. */
  samples(): Promise<ReadonlyMap<string, number>>;
}

export async function startScrapedMeter(): Promise<ScrapedMeter> {
  const exporter = new PrometheusExporter({
    preventServerStart: true,
    withoutScopeInfo: true,
    withoutTargetInfo: true,
  });
  const meterProvider = new MeterProvider({ readers: [exporter] });
  const server = createServer((request, response) => exporter.getMetricsRequestHandler(request, response));
  const url = await listening(server);
  const scrape = async (): Promise<string> => (await fetch(url)).text();
  return {
    meterProvider,
    url,
    scrape,
    async samples() {
      const lines = (await scrape()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
      return new Map(
        lines.map((line) => {
          const at = line.lastIndexOf(' ');
          return [line.slice(0, at), Number(line.slice(at + 1))];
        }),
      );
    },
    async [Symbol.asyncDispose]() {
      await meterProvider.shutdown();
      await closed(server);
    },
  };
}
