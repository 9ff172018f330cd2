import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { installedOnce } from './installed-once.ts';
import { startLocalServer } from './local-server.ts';
import type { TestServer } from './redis.ts';
import { startOrSkip } from './servers.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Address of fake-gcs-server: `http://127.0.0.1:PORT`, or empty if it cannot run. */
    fakeGcs: string;
  }
}

const VERSION = 'v1.56.1';

/** A bucket that exists whenever the server runs. */
export const gcsBucket = 'sealring';

/** Starts fake-gcs-server on a free loopback port, with everything in memory. @throws {MissingPrerequisite} */
export async function startFakeGcs(): Promise<TestServer> {
  const folder = await installedOnce({
    name: `fake-gcs-server-${VERSION}`,
    command: 'go',
    args: () => ['install', `github.com/fsouza/fake-gcs-server@${VERSION}`],
    env: (own) => ({ GOBIN: own }),
    missing: 'fake-gcs-server: go is missing',
  });
  return startLocalServer({
    name: 'fake-gcs-server',
    command: join(folder, 'fake-gcs-server'),
    args: (port) => ['-backend', 'memory', '-scheme', 'http', '-host', '127.0.0.1', '-port', `${port}`],
    readySeconds: 30,
    ready: async (address) => (await fetch(`${address}/_internal/healthcheck`)).ok,
    prepare: (address) => post(`${address}/storage/v1/b?project=test`, JSON.stringify({ name: gcsBucket })),
  });
}

/** A vitest `globalSetup`: tests read the address with `inject('fakeGcs')`. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startOrSkip(startFakeGcs);
  project.provide('fakeGcs', server?.address ?? '');
  return async () => server?.stop();
}

/** Stores any object without a condition, as another tool would. */
export async function putGcsObject(
  address: string,
  bucket: string,
  name: string,
  body: string | Buffer,
): Promise<void> {
  const query = `uploadType=media&name=${encodeURIComponent(name)}`;
  await post(`${address}/upload/storage/v1/b/${bucket}/o?${query}`, body);
}

/** The bytes of an object, as another tool would read them. */
export async function getGcsObject(address: string, bucket: string, name: string): Promise<Buffer> {
  const response = await fetch(`${objectUrl(address, bucket, name)}?alt=media`);
  if (!response.ok) throw new Error(`fake-gcs-server: the read returned ${response.status}`);
  return Buffer.from(await response.arrayBuffer());
}

export async function deleteGcsObject(address: string, bucket: string, name: string): Promise<void> {
  const response = await fetch(objectUrl(address, bucket, name), { method: 'DELETE' });
  if (!response.ok && response.status !== 404)
    throw new Error(`fake-gcs-server: the deletion returned ${response.status}`);
}

function objectUrl(address: string, bucket: string, name: string): string {
  return `${address}/storage/v1/b/${bucket}/o/${encodeURIComponent(name)}`;
}

async function post(url: string, body: string | Buffer): Promise<void> {
  const response = await fetch(url, { method: 'POST', body: new Uint8Array(Buffer.from(body)) });
  if (!response.ok) throw new Error(`fake-gcs-server: ${new URL(url).pathname} answered ${response.status}`);
}
