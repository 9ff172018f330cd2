import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { ContainerClient, StorageSharedKeyCredential } from '@azure/storage-blob';
import type { TestProject } from 'vitest/node';
import { installedOnce } from './installed-once.ts';
import { startLocalServer } from './local-server.ts';
import type { TestServer } from './redis.ts';
import { startOrSkip } from './servers.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Address and account of Azurite's Blob Storage; the address is empty if it cannot run. */
    azurite: AzuriteAccount;
  }
}

/** A storage account of Azurite. */
export interface AzuriteAccount {
  /** `http://127.0.0.1:PORT` */
  readonly address: string;
  readonly name: string;
  /** Base64, generated for this run. */
  readonly key: string;
}

/** Azurite, with its one account. */
export interface Azurite extends TestServer {
  readonly account: AzuriteAccount;
}

const VERSION = '3.36.0';
const ACCOUNT = 'sealringtest';

/** A container that exists whenever the server runs. */
const CONTAINER = 'sealring';

/** Azurite 3.36.0 ignores its own option `--blobKeepAliveTimeout`, and closes connections after five seconds. */
const KEEP_CONNECTIONS = new URL('keep-connections.mjs', import.meta.url).href;

/** Starts Azurite's blob service on a free loopback port, with everything in memory. @throws {MissingPrerequisite} */
export async function startAzurite(): Promise<Azurite> {
  const folder = await installedOnce({
    name: `azurite-${VERSION}`,
    command: 'npm',
    args: (own) => ['install', '--prefix', own, '--ignore-scripts', '--no-audit', '--no-fund', `azurite@${VERSION}`],
    missing: 'azurite: npm is missing',
  });
  const key = randomBytes(64).toString('base64');
  const server = await startLocalServer({
    name: 'azurite',
    command: process.execPath,
    args: (port) => [
      '--import',
      KEEP_CONNECTIONS,
      join(folder, 'node_modules', 'azurite', 'dist', 'src', 'blob', 'main.js'),
      '--inMemoryPersistence',
      '--blobHost',
      '127.0.0.1',
      '--blobPort',
      `${port}`,
      '--silent',
      '--disableTelemetry',
      // The SDK is usually newer than the API versions that Azurite knows.
      '--skipApiVersionCheck',
    ],
    env: { AZURITE_ACCOUNTS: `${ACCOUNT}:${key}` },
    readySeconds: 60,
    // Any answer to an unsigned request.
    ready: async (address) => (await fetch(address)).status > 0,
    prepare: async (address) => void (await azuriteClient({ address, name: ACCOUNT, key }).create()),
  });
  return { ...server, account: { address: server.address, name: ACCOUNT, key } };
}

/** A vitest `globalSetup`: tests read the account with `inject('azurite')`. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  let server: Azurite | undefined;
  await startOrSkip(async () => {
    server = await startAzurite();
    return server;
  });
  project.provide('azurite', server?.account ?? { address: '', name: '', key: '' });
  return async () => server?.stop();
}

/** The real SDK, for the shared container, without retries. */
export function azuriteClient({ address, name, key }: AzuriteAccount): ContainerClient {
  const credential = new StorageSharedKeyCredential(name, key);
  return new ContainerClient(`${address}/${name}/${CONTAINER}`, credential, { retryOptions: { maxTries: 1 } });
}
