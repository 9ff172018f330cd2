import { spawnSync } from 'node:child_process';
import { chmodSync, readFileSync } from 'node:fs';
import { chown, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { MissingPrerequisite } from './python-venv.ts';
import { freePort, requireCommand, type TestServer } from './redis.ts';
import { startOrSkip } from './servers.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Address of PostgreSQL: `postgres://app@127.0.0.1:PORT/postgres`, or empty if it cannot run. */
    postgres: string;
  }
}

/** PostgreSQL, which can also be made a standby. */
export interface PostgresServer extends TestServer {
  /** Restarts it as a standby without a primary: it answers reads and refuses writes. */
  demote(): Promise<void>;
  promote(): Promise<void>;
}

/** Debian keeps the server's programs off the path, one directory per version. */
const PROGRAMS = '/usr/lib/postgresql';
const VERSION = 15;

/**
 * Starts PostgreSQL on a free loopback port, with a temporary data directory. The superuser is `app`, without
 * a password.
 * @throws {MissingPrerequisite}
 */
export async function startPostgres(settings: readonly string[] = []): Promise<PostgresServer> {
  const bin = await programs();
  const directory = await mkdtemp(join(tmpdir(), 'sealring-postgres-'));
  // PostgreSQL refuses to run as root, so its own user needs access.
  chmodSync(directory, 0o777);
  const data = join(directory, 'data');
  const port = await freePort();

  function run(program: string, args: readonly string[]): void {
    const asOther = process.getuid?.() === 0 ? ['runuser', '-u', 'postgres', '--'] : [];
    const [command = '', ...rest] = [...asOther, join(bin, program), ...args];
    const { status, stderr } = spawnSync(command, rest, { cwd: directory, stdio: ['ignore', 'ignore', 'pipe'] });
    if (status !== 0) throw new Error(`${program} failed: ${String(stderr).slice(-1000)}`);
  }

  function startSync(): void {
    const options = [
      `-p ${port}`,
      ...['listen_addresses=127.0.0.1', `unix_socket_directories=${directory}`, 'fsync=off', ...settings].map(
        (setting) => `-c ${setting}`,
      ),
    ];
    run('pg_ctl', ['-D', data, '-w', '-l', join(directory, 'log'), '-o', options.join(' '), 'start']);
  }

  /** The postmaster and its children. */
  function processes(): number[] {
    const postmaster = Number(readFileSync(join(data, 'postmaster.pid'), 'latin1').split('\n')[0]);
    const children = spawnSync('ps', ['-o', 'pid=', '--ppid', String(postmaster)], { encoding: 'latin1' }).stdout;
    return [
      postmaster,
      ...children
        .split('\n')
        .map(Number)
        .filter((pid) => pid > 0),
    ];
  }

  function signalAll(signal: NodeJS.Signals): void {
    for (const pid of processes()) {
      try {
        process.kill(pid, signal);
      } catch {
        // It ended by itself.
      }
    }
  }

  async function kill(): Promise<void> {
    try {
      run('pg_ctl', ['-D', data, '-m', 'immediate', '-w', 'stop']);
    } catch {
      // It was not running.
    }
  }

  run('initdb', ['-D', data, '-U', 'app', '-A', 'trust', '--no-sync', '--encoding=UTF8', '--locale=C']);
  startSync();
  return {
    address: `postgres://app@127.0.0.1:${port}/postgres`,
    host: '127.0.0.1',
    port,
    kill,
    async start() {
      startSync();
    },
    async demote() {
      run('pg_ctl', ['-D', data, '-m', 'fast', '-w', 'stop']);
      // Only the presence of this file counts (PostgreSQL documentation, 20.5.5, "Archive Recovery").
      await writeFile(join(data, 'standby.signal'), '');
      await chown(join(data, 'standby.signal'), ...(await ownerOf(data)));
      startSync();
    },
    async promote() {
      run('pg_ctl', ['-D', data, '-w', 'promote']);
    },
    freeze: () => signalAll('SIGSTOP'),
    thaw: () => signalAll('SIGCONT'),
    async stop() {
      await kill();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** A vitest `globalSetup`: tests read the address with `inject('postgres')`. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const postgres = await startOrSkip(() => startPostgres());
  project.provide('postgres', postgres?.address ?? '');
  return async () => postgres?.stop();
}

async function ownerOf(path: string): Promise<[number, number]> {
  const { uid, gid } = await stat(path);
  return [uid, gid];
}

async function programs(): Promise<string> {
  const found = await newestPrograms();
  if (found !== undefined) return found;
  await requireCommand(`${PROGRAMS}/${VERSION}/bin/initdb`, `postgresql-${VERSION}`);
  const installed = await newestPrograms();
  if (installed === undefined) throw new MissingPrerequisite(`postgres: ${PROGRAMS} is empty`);
  return installed;
}

async function newestPrograms(): Promise<string | undefined> {
  try {
    const versions = (await readdir(PROGRAMS)).map(Number).filter((version) => version >= 13);
    return versions.length === 0 ? undefined : join(PROGRAMS, String(Math.max(...versions)), 'bin');
  } catch {
    return undefined;
  }
}
