import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';

import { closed, listening } from '../support/loopback.ts';
import { freePort } from '../support/redis.ts';

/** A Prometheus that scrapes one page every second. */
export interface Prometheus extends AsyncDisposable {
  /** The series that a query returns now. */
  query(text: string): Promise<readonly unknown[]>;
}

export async function startPrometheus(program: string, page: () => Promise<string>): Promise<Prometheus> {
  const target = createServer((_request, response) => {
    void page().then((text) => response.setHeader('content-type', 'text/plain; version=0.0.4').end(text));
  });
  const { host } = new URL(await listening(target));
  const folder = mkdtempSync(join(tmpdir(), 'sealring-prometheus-'));
  const config = {
    scrape_configs: [
      { job_name: 'members', scrape_interval: '1s', scrape_timeout: '1s', static_configs: [{ targets: [host] }] },
    ],
  };
  // JSON is YAML.
  writeFileSync(join(folder, 'prometheus.yml'), JSON.stringify(config));
  const port = await freePort();
  const address = `127.0.0.1:${port}`;
  const server = spawn(
    program,
    [
      '--config.file=prometheus.yml',
      `--web.listen-address=${address}`,
      '--storage.tsdb.path=data',
      '--log.level=error',
    ],
    { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] },
  );
  const ended = once(server, 'exit');
  const isReady = async (): Promise<boolean> => (await fetch(`http://${address}/-/ready`)).ok;
  await expect.poll(() => isReady().catch(() => false), { interval: 100 }).toBe(true);
  return {
    async query(text) {
      const response = await fetch(`http://${address}/api/v1/query`, {
        method: 'POST',
        body: new URLSearchParams({ query: text }),
      });
      const answer = await response.json();
      if (!response.ok) throw new Error(`Prometheus answered: ${JSON.stringify(answer)}`);
      return Reflect.get(Object(Reflect.get(Object(answer), 'data')), 'result') as readonly unknown[];
    },
    async [Symbol.asyncDispose]() {
      server.kill('SIGTERM');
      await ended;
      await closed(target);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
