import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { type AddressInfo, connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { TestProject } from 'vitest/node';
import { freezeProcess } from './freeze.ts';
import { MissingPrerequisite } from './python-venv.ts';
import { startOrSkip } from './servers.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Address of Redis: `redis://127.0.0.1:PORT`, or empty if it cannot run. */
    redis: string;
  }
}

const READY_MS = 10_000;

/** A server that can be stopped, started again on its port, and frozen. */
export interface TestServer {
  readonly address: string;
  readonly host: string;
  readonly port: number;
  /** Kills it without a clean shutdown. */
  kill(): Promise<void>;
  /** Starts it again on the same port. */
  start(): Promise<void>;
  /** Stops its processes: connections stay open and nothing answers. */
  freeze(): void;
  thaw(): void;
  stop(): Promise<void>;
}

/** Starts Redis on a free loopback port, with nothing on disk. @throws {MissingPrerequisite} */
export async function startRedis(args: readonly string[] = []): Promise<TestServer> {
  await requireCommand('redis-server', 'redis-server');
  const directory = await mkdtemp(join(tmpdir(), 'sealring-redis-'));
  const port = await freePort();
  let server: ChildProcess | undefined;

  async function start(): Promise<void> {
    const fixed = [
      '--port',
      String(port),
      '--bind',
      '127.0.0.1',
      '--save',
      '',
      '--appendonly',
      'no',
      '--dir',
      directory,
    ];
    server = spawn('redis-server', [...fixed, ...args], { stdio: 'ignore' });
    const until = performance.now() + READY_MS;
    while (!(await answersPing(port))) {
      if (performance.now() > until || server.exitCode !== null) throw new Error('redis did not start');
      await pause(20);
    }
  }

  async function kill(): Promise<void> {
    if (server === undefined || server.exitCode !== null || server.signalCode !== null) return;
    const exited = once(server, 'exit');
    server.kill('SIGKILL');
    await exited;
  }

  await start();
  return {
    address: `redis://127.0.0.1:${port}`,
    host: '127.0.0.1',
    port,
    start,
    kill,
    freeze: () => freezeProcess(server),
    thaw: () => void server?.kill('SIGCONT'),
    async stop() {
      await kill();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** A vitest `globalSetup`: tests read the address with `inject('redis')`. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const redis = await startOrSkip(() => startRedis());
  project.provide('redis', redis?.address ?? '');
  return async () => redis?.stop();
}

/**
 * Makes a command of a Debian package available: installs it on Debian, as root. @throws {MissingPrerequisite} if it is
 * still missing.
 */
export async function requireCommand(command: string, debianPackage: string): Promise<void> {
  if (isInstalled(command)) return;
  if (process.getuid?.() === 0 && isInstalled('apt-get')) {
    process.stdout.write(`installing the Debian package ${debianPackage} (once)\n`);
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    // Its service must not start: the tests start their own servers, on their own ports.
    const install = ['-y', '--no-install-recommends', '-o', 'DPkg::Lock::Timeout=120', 'install', debianPackage];
    spawnSync('apt-get', ['-q', 'update'], { env, stdio: 'ignore' });
    spawnSync('apt-get', ['-q', ...install], { env: { ...env, RUNLEVEL: '1' }, stdio: 'ignore' });
  }
  if (!isInstalled(command)) {
    throw new MissingPrerequisite(`${command} is missing: install the Debian package ${debianPackage}`);
  }
}

/** A port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

function isInstalled(command: string): boolean {
  return spawnSync('sh', ['-c', 'command -v "$1"', 'sh', command], { stdio: 'ignore' }).status === 0;
}

function answersPing(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const end = (answer: boolean): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.setTimeout(500, () => end(false));
    socket.once('error', () => end(false));
    // A server that requires a password is also up.
    socket.once('data', (reply) => end(/^(\+PONG|-NOAUTH)/.test(reply.toString('latin1'))));
    socket.once('connect', () => socket.write('PING\r\n'));
  });
}
