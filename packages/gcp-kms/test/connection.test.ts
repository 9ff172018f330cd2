import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { makeClient, ownConnection } from '../src/connection.ts';
import { type GcpKmsClient, gcpKmsKeyWrapper } from '../src/index.ts';
import { context, rejectionOf, sampleKey, World } from './world.ts';

const world = new World();

describe('the wrapper’s own client', () => {
  /** Clients whose initialization has the results in the list. */
  function making(outcomes: (() => Promise<unknown>)[]): {
    make: () => Promise<Required<GcpKmsClient>>;
    made: { closed: number }[];
  } {
    const made: { closed: number }[] = [];
    return {
      made,
      async make() {
        const initialize = outcomes[made.length] ?? (async () => undefined);
        const client = {
          closed: 0,
          initialize,
          encrypt: async () => undefined,
          decrypt: async () => undefined,
          async close() {
            client.closed++;
          },
        };
        made.push(client);
        return client;
      },
    };
  }
  const failing = (): Promise<never> => Promise.reject(new Error('no credentials'));

  test('the wrapper’s own client is created once, at the first call', async () => {
    const { make, made } = making([]);
    const connection = ownConnection(make);
    expect(made).toHaveLength(0);
    const [first, second] = await Promise.all([connection.ready(), connection.ready()]);
    expect(first).toBe(second);
    expect(await connection.ready()).toBe(first);
    expect(made).toHaveLength(1);
  });

  test('a client that did not find credentials is created again, because the SDK’s client never looks again', async () => {
    const { make, made } = making([failing, failing]);
    const connection = ownConnection(make);
    for (const _ of [1, 2]) {
      const both = [connection.ready(), connection.ready()];
      for (const call of both) expect(await rejectionOf(call)).toMatchObject({ message: 'no credentials' });
    }
    expect(await connection.ready()).toBe(made[2]);
    expect(made).toHaveLength(3);
  });

  test('close() does not wait for the search for credentials, after which the client is closed', async () => {
    let found = (): void => {};
    const { make, made } = making([
      () =>
        new Promise<void>((resolve) => {
          found = resolve;
        }),
    ]);
    const connection = ownConnection(make);
    const ready = connection.ready();
    await new Promise(setImmediate);
    await connection.close();
    expect(made).toMatchObject([{ closed: 0 }]);
    found();
    await ready;
    expect(made).toMatchObject([{ closed: 1 }]);
  });

  test('a client that has connected is closed once', async () => {
    const { make, made } = making([]);
    const connection = ownConnection(make);
    await connection.ready();
    await Promise.all([connection.close(), connection.close()]);
    expect(made).toMatchObject([{ closed: 1 }]);
  });

  test('close() does not create the wrapper’s own client, and does not close one that has not connected', async () => {
    const { make, made } = making([failing]);
    await ownConnection(make).close();
    const connection = ownConnection(make);
    const ready = rejectionOf(connection.ready());
    await connection.close();
    await ready;
    expect(made).toMatchObject([{ closed: 0 }]);
  });
});

test('the wrapper’s own client reaches an emulator at an endpoint with http:// over an insecure channel, without credentials', async () => {
  vi.stubEnv('GOOGLE_APPLICATION_CREDENTIALS', '/nonexistent');
  onTestFinished(() => void vi.unstubAllEnvs());
  const endpoint = `http://${world.server.host}:${world.server.port}`;
  const keyWrapper = gcpKmsKeyWrapper({ keyId: world.setUp().keyId, endpoint });
  expect(await keyWrapper.unwrap(await keyWrapper.wrap(sampleKey(), { context }), { context })).toEqual(sampleKey());
  await keyWrapper.close();
});

test.each([
  [undefined, 'cloudkms.googleapis.com', 443],
  ['https://kms.example', 'kms.example', 443],
  ['https://kms.example:8443', 'kms.example', 8443],
  ['http://localhost', 'localhost', 80],
])('the wrapper’s own client for the endpoint %s calls %s on port %i', async (endpoint, host, port) => {
  const client = await makeClient(endpoint === undefined ? undefined : new URL(endpoint));
  expect(client).toMatchObject({ _opts: { servicePath: host, port } });
});

describe('the caller’s client', () => {
  test('a call with a caller’s client that cannot be initialized fails as unavailable, and makes no request', async () => {
    const client: GcpKmsClient = {
      ...world.watchedClient(() => {}),
      initialize: () => Promise.reject(new Error('Could not load the default credentials')),
    };
    const { keyWrapper } = world.setUp({ client, maxAttempts: 2 });
    expect(await rejectionOf(keyWrapper.wrap(sampleKey(), { context }))).toMatchObject({
      kind: 'unavailable',
      summary: { attempts: 2, hint: expect.stringMatching(/credentials/) },
    });
    expect(world.kms.requests).toEqual([]);
  });

  test('a caller’s client that needs no initialization is called at once', async () => {
    const { keyWrapper } = world.setUp({ client: world.watchedClient(() => {}) });
    await keyWrapper.wrap(sampleKey(), { context });
    expect(world.kms.requests).toHaveLength(1);
  });
});

describe('without credentials', () => {
  /** Runs a script in a process without credentials. */
  async function runAlone(name: string): Promise<string> {
    const home = mkdtempSync(join(tmpdir(), 'sealring-gcp-'));
    try {
      const env = { PATH: process.env['PATH'], HOME: home, METADATA_SERVER_DETECTION: 'none' };
      const script = join(import.meta.dirname, name);
      const { stdout, stderr } = await promisify(execFile)(process.execPath, [script], { env });
      return stdout + stderr;
    } finally {
      rmSync(home, { recursive: true });
    }
  }

  test('every call fails as unavailable, but the process, which the SDK alone would end, continues', async () => {
    expect(await runAlone('no-credentials.ts')).toBe(
      ['own client: unavailable, closed', 'given client: unavailable', 'SDK alone: unhandled rejection', ''].join('\n'),
    );
  });

  test('a wrapper that is closed before its first call creates no client, and reports that it is closed', async () => {
    const keyWrapper = gcpKmsKeyWrapper({ keyId: world.setUp().keyId });
    await keyWrapper.close();
    expect(await rejectionOf(keyWrapper.wrap(sampleKey(), { context }))).toMatchObject({
      kind: 'unavailable',
      summary: { attempts: 0, hint: expect.stringMatching(/closed/) },
    });
  });
});
