import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, open, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { freezeProcess } from './freeze.ts';
import { cacheDirectory } from './python-venv.ts';
import { freePort, type TestServer } from './redis.ts';

/** How to start a server on a given port, and how to detect that it is up. */
export interface LocalServerRecipe {
  /** Names the log, `.cache/<name>-<port>.log`, and the server in messages. */
  readonly name: string;
  readonly command: string;
  args(port: number): readonly string[];
  /** Added to the environment of this process. */
  readonly env?: Readonly<Record<string, string>>;
  /** Longest wait until it is ready, in seconds. */
  readonly readySeconds: number;
  /** Whether it answers there. Called repeatedly; an exception means no. */
  ready(address: string): Promise<boolean>;
  /** Called after every start, before callers are notified: to restore what it forgets when it dies. */
  prepare?(address: string): Promise<void>;
}

/** Starts an HTTP server on a free loopback port, as a process that can be killed, frozen, and started again. */
export async function startLocalServer(recipe: LocalServerRecipe): Promise<TestServer> {
  const port = await freePort();
  const address = `http://127.0.0.1:${port}`;
  await mkdir(cacheDirectory, { recursive: true });
  const logPath = join(cacheDirectory, `${recipe.name}-${port}.log`);
  let server: ChildProcess | undefined;

  async function start(): Promise<void> {
    const log = await open(logPath, 'w');
    server = spawn(recipe.command, recipe.args(port), {
      stdio: ['ignore', log.fd, log.fd],
      env: { ...process.env, ...recipe.env },
    });
    try {
      // Rejects if the command does not exist.
      await once(server, 'spawn');
    } finally {
      await log.close();
    }
    const until = performance.now() + recipe.readySeconds * 1000;
    while (!(await recipe.ready(address).catch(() => false))) {
      if (performance.now() > until || server.exitCode !== null) {
        await kill();
        throw new Error(`${recipe.name} did not start: ${(await readFile(logPath, 'utf8')).slice(-2000)}`);
      }
      await pause(20);
    }
    await recipe.prepare?.(address);
  }

  async function kill(): Promise<void> {
    if (server === undefined || server.exitCode !== null || server.signalCode !== null) return;
    const exited = once(server, 'exit');
    server.kill('SIGKILL');
    await exited;
  }

  await start();
  return {
    address,
    host: '127.0.0.1',
    port,
    start,
    kill,
    freeze: () => freezeProcess(server),
    thaw: () => void server?.kill('SIGCONT'),
    async stop() {
      await kill();
      await rm(logPath, { force: true });
    },
  };
}
