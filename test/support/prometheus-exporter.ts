import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus';
import { MeterProvider } from '@opentelemetry/sdk-metrics';

/** The exporter for Prometheus, scraped over a socket. */
export interface ScrapedMeter extends AsyncDisposable {
  readonly meterProvider: MeterProvider;
  readonly url: string;
  /** The page as Prometheus gets it, without what it says of itself. */
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

async function listening(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

async function closed(server: Server): Promise<void> {
  server.closeAllConnections();
  await new Promise((done) => server.close(done));
}
