import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, open, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { cacheDirectory, MissingPrerequisite } from './python-venv.ts';

/** How to start a server and how to detect that it is up. */
export interface ServerRecipe {
  /** Names the log, `.cache/<name>-<pid>.log`, and the server in messages. */
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  /** Added to the environment of this process. */
  readonly env?: Readonly<Record<string, string>>;
  /** Longest wait until it answers, in seconds. */
  readonly readySeconds: number;
  /** Called repeatedly with the server's output so far; returns its address once it answers there. */
  ready(printed: string): Promise<string | undefined>;
}

/** A running server. */
export interface RunningServer {
  readonly address: string;
  /** Ends this one process, by its id. */
  stop(): Promise<void>;
}

const STOP_GRACE_MS = 5000;

/** Starts a server as a child process, its output in a log under `.cache/`, and waits until it answers. */
export async function startServer(recipe: ServerRecipe): Promise<RunningServer> {
  await mkdir(cacheDirectory, { recursive: true });
  const logPath = join(cacheDirectory, `${recipe.name}-${process.pid}.log`);
  const log = await open(logPath, 'w');
  const server = spawn(recipe.command, recipe.args, {
    stdio: ['ignore', log.fd, log.fd],
    env: { ...process.env, ...recipe.env },
  });
  try {
    // Rejects if the command does not exist.
    await once(server, 'spawn');
  } finally {
    await log.close();
  }

  const deadline = performance.now() + recipe.readySeconds * 1000;
  while (performance.now() < deadline && server.exitCode === null) {
    const address = await recipe.ready(await readFile(logPath, 'utf8'));
    if (address !== undefined) {
      return {
        address,
        async stop() {
          await stop(server);
          // A server that failed to start, or was killed, leaves its log.
          await rm(logPath, { force: true });
        },
      };
    }
    await pause(50);
  }
  await stop(server);
  const printed = await readFile(logPath, 'utf8');
  throw new Error(`${recipe.name} did not start: ${printed.slice(-2000)}`);
}

/**
 * Starts a server for a test set-up. If the machine lacks something, prints that in one line and returns undefined, so
 * that the tests are skipped; under `CI=true` that is a failure. `npm test` runs no test that needs a server.
 */
export async function startOrSkip<T extends RunningServer>(start: () => Promise<T>): Promise<T | undefined> {
  if (process.env['SEALRING_TESTS'] === 'test') return undefined;
  try {
    return await start();
  } catch (error) {
    if (!(error instanceof MissingPrerequisite) || process.env['CI'] === 'true') throw error;
    process.stdout.write(`skipping tests: ${error.message}\n`);
    return undefined;
  }
}

async function stop(server: ChildProcess): Promise<void> {
  if (server.pid === undefined || server.exitCode !== null || server.signalCode !== null) return;
  const exited = once(server, 'exit');
  server.kill('SIGTERM');
  const forced = setTimeout(() => server.kill('SIGKILL'), STOP_GRACE_MS);
  await exited;
  clearTimeout(forced);
}
