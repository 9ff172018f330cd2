import { spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { Push } from '@sealring/core/adapter';
import { Client } from 'pg';
import { afterEach, describe, expect, inject, test, vi } from 'vitest';
// @boundaries-ignore the servers that the tests share are not a package
import { startTcpProxy, type TcpProxy } from '../../../test/support/tcp-proxy.ts';
import type { PostgresListener } from '../src/index.ts';
import { channelOf, pushListener } from '../src/push.ts';

const connectionString = inject('postgres');
const closing: (() => Promise<unknown> | void)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

async function startProxy(): Promise<{ proxy: TcpProxy; connect: () => PostgresListener }> {
  const url = new URL(connectionString);
  const proxy = await startTcpProxy(Number(url.port));
  closing.push(() => proxy.close());
  url.port = String(proxy.port);
  return { proxy, connect: () => new Client({ connectionString: url.href, connectionTimeoutMillis: 1_000 }) };
}

async function notifier(channel: string): Promise<() => Promise<unknown>> {
  const client = new Client({ connectionString });
  await client.connect();
  closing.push(() => client.end());
  return () => client.query(`NOTIFY "${channel}"`);
}

test('a listener reports writes and the loss of its connection, and its channel is specific to the ring', async () => {
  const calls: unknown[] = [];
  const note = async (...call: unknown[]): Promise<void> => void calls.push(call);
  const unref = (): void => void calls.push(['unref']);
  const given = {
    connect: () => note('connect'),
    query: note,
    end: () => note('end').then(() => Promise.reject(new Error('ended'))),
    unref,
  };
  const client: PostgresListener = Object.assign(new EventEmitter(), given);
  const [changed, lost] = [vi.fn<() => void>(), vi.fn<() => void>()];
  const listener = pushListener(client, channelOf('"sealring_ring"', 'default'));
  await listener.start(changed, lost);
  await listener.check();
  listener.end();
  expect(calls).toEqual([
    ['connect'],
    ['unref'],
    ['LISTEN "sealring_e966ae83214e86782c1e61848e3f28e6"'],
    ['SELECT 1'],
    ['end'],
  ]);
  Object(client).emit('notification');
  Object(client).emit('error');
  expect([changed.mock.calls, lost.mock.calls]).toEqual([[[]], [[]]]);
  await pushListener(Object.assign(client, { unref: undefined }), 'c').start(changed, lost);
});

describe.skipIf(connectionString === '')('push over PostgreSQL', () => {
  test('a connection that hangs is detected and replaced (F29)', async () => {
    const { proxy, connect } = await startProxy();
    const push = new Push({ connect: () => pushListener(connect(), 'hangs'), timeoutMs: 1_000, heartbeatMs: 100 });
    closing.push(() => push.close());
    const notify = await notifier('hangs');
    let heard = 0;
    push.add(() => heard++);
    await expect.poll(() => heard).toBe(1);
    // An answered heartbeat changes nothing.
    const before = proxy.answers;
    await expect.poll(() => proxy.answers).toBeGreaterThanOrEqual(before + 3);
    expect([proxy.accepted, heard]).toEqual([1, 1]);
    proxy.hang();
    await expect.poll(() => proxy.accepted).toBeGreaterThan(1);
    expect(heard).toBe(1);
    proxy.mend();
    await expect.poll(() => heard).toBe(2);
    await notify();
    await expect.poll(() => heard).toBe(3);
  });

  test('a connection that is reset is replaced at once, and watchers are notified of possibly missed changes', async () => {
    const { proxy, connect } = await startProxy();
    const push = new Push({ connect: () => pushListener(connect(), 'reset'), timeoutMs: 2_000 });
    closing.push(() => push.close());
    let heard = 0;
    push.add(() => heard++);
    await expect.poll(() => heard).toBe(1);
    proxy.reset();
    await expect.poll(() => heard).toBe(2);
  });

  test('a watcher does not keep the process alive', async () => {
    const source = `
      import { postgresRing } from ${JSON.stringify(new URL('../src/index.ts', import.meta.url).href)};
      const ring = postgresRing({ connectionString: ${JSON.stringify(connectionString)} });
      await new Promise((resolve) => { ring.watch(resolve); setTimeout(() => process.exit(1), 5000).unref(); setTimeout(resolve, 1000); });
    `;
    const child = spawn(process.execPath, ['--input-type=module', '-e', source], {
      cwd: import.meta.dirname,
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    const timer = setTimeout(() => child.kill('SIGKILL'), 15_000);
    expect(await once(child, 'exit')).toEqual([0, null]);
    clearTimeout(timer);
  });
});
