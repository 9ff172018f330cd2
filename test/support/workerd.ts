import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { builtinModules, createRequire } from 'node:module';
import { join } from 'node:path';
import { rolldown } from 'rolldown';
import { esmExternalRequirePlugin } from 'rolldown/plugins';
import { freePort } from './redis.ts';
import { until } from './until.ts';

/** Whether the binary of workerd runs on this machine. */
export const hasWorkerd = process.platform === 'linux' && ['x64', 'arm64'].includes(process.arch);

/** A program in workerd. */
export interface Worker {
  /** The bundle, a file in the folder of the configuration. */
  readonly file: string;
  /** Variables of its `env`. */
  readonly bindings: Readonly<Record<string, string>>;
}

export interface RunningWorkers {
  /** `http://127.0.0.1:PORT`, one for each worker. */
  readonly origins: readonly string[];
  /** The output of workerd. */
  output(): string;
  stop(): Promise<void>;
}

/**
 * Bundles a program for workerd into one file of the folder.
 *
 * @param conditions - `worker`: the conditions of Wrangler. `node`: the conditions of Node.js.
 * @returns the name of the file.
 */
export async function bundleForWorkerd(input: string, folder: string, conditions: 'worker' | 'node'): Promise<string> {
  const isWorker = conditions === 'worker';
  const built = await rolldown({
    input,
    platform: isWorker ? 'browser' : 'node',
    external: [/^cloudflare:/],
    // The conditions that Wrangler sets.
    ...(isWorker && {
      resolve: {
        conditionNames: ['workerd', 'worker', 'browser'],
        mainFields: ['browser', 'module', 'main'],
      },
    }),
    plugins: [esmExternalRequirePlugin({ external: [/^node:/, ...builtinModules] })],
  });
  const { output } = await built.write({
    dir: folder,
    entryFileNames: `[name].${conditions}.js`,
    format: 'esm',
    codeSplitting: false,
  });
  await built.close();
  const [{ fileName, code }] = output;
  // A module of a Worker has no address.
  writeFileSync(join(folder, fileName), code.replaceAll('import.meta.url', '"file:///worker.js"'));
  return fileName;
}

/** Starts workers in one process of workerd, each on its own port. */
export async function startWorkers(folder: string, workers: readonly Worker[]): Promise<RunningWorkers> {
  const ports = await Promise.all(workers.map(() => freePort()));
  const config = join(folder, 'config.capnp');
  writeFileSync(config, configurationOf(workers, ports));
  const require = createRequire(import.meta.resolve('workerd/package.json'));
  const binary = require.resolve(`@cloudflare/workerd-linux-${process.arch === 'x64' ? '64' : 'arm64'}/bin/workerd`);
  const running = spawn(binary, ['serve', config]);
  let printed = '';
  for (const stream of [running.stdout, running.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      printed += text;
    });
  }
  const origins = ports.map((port) => `http://127.0.0.1:${port}`);
  for (const origin of origins) {
    await until(async () => {
      if (running.exitCode !== null) throw new Error(`workerd ended: ${printed}`);
      return await fetch(`${origin}/none`, { method: 'HEAD' }).then(
        () => true,
        () => false,
      );
    });
  }
  return {
    origins,
    output: () => printed,
    async stop() {
      if (running.exitCode !== null) return;
      const exited = once(running, 'exit');
      running.kill();
      await exited;
    },
  };
}

function configurationOf(workers: readonly Worker[], ports: readonly number[]): string {
  const services = workers.map((_, at) => `(name = "worker${at}", worker = .worker${at})`);
  const sockets = ports.map(
    (port, at) => `(name = "socket${at}", address = "127.0.0.1:${port}", http = (), service = "worker${at}")`,
  );
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [${services.join()}, (name = "network", network = (allow = ["private", "local"]))],
  sockets = [${sockets.join()}],
);
${workers.map(workerOf).join('')}`;
}

function workerOf({ file, bindings }: Worker, at: number): string {
  const texts = Object.entries(bindings).map(([name, text]) => `(name = "${name}", text = ${JSON.stringify(text)})`);
  return `const worker${at} :Workerd.Worker = (
  modules = [(name = "worker.js", esModule = embed "${file}")],
  compatibilityDate = "2026-11-01",
  globalOutbound = "network",
  bindings = [${texts.join()}],
);
`;
}
