import { spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { Push } from '@sealring/core/adapter';
import { createClient } from 'redis';
import { afterEach, describe, expect, inject, test, vi } from 'vitest';
// @boundaries-ignore the servers that the tests share are not a package
import { startTcpProxy } from '../../../test/support/tcp-proxy.ts';
import type { RedisSubscriber } from '../src/index.ts';
import { pushListener } from '../src/push.ts';

const url = inject('redis');
const closing: (() => Promise<unknown> | void | undefined)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

async function publisher(channel: string): Promise<() => Promise<unknown>> {
  const client = await createClient({ url }).connect();
  closing.push(() => client.destroy());
  return () => client.publish(channel, '');
}

test('a listener reports writes and reconnections, sends pings, and destroys only a connected client', async () => {
  const calls: unknown[] = [];
  const note = (...call: unknown[]): Promise<void> => Promise.resolve(void calls.push(call));
  const subscriber: RedisSubscriber = Object.assign(new EventEmitter(), {
    isOpen: true,
    connect: () => note('connect'),
    subscribe: (channel: string, listener: (message: string) => void) => note('subscribe', channel, listener),
    sendCommand: (args: string[]) => note(args),
    destroy: () => void note('destroy'),
  });
  const changed = vi.fn<() => void>();
  const listener = pushListener(subscriber, 'c');
  await listener.start(changed, () => expect.unreachable());
  await listener.check();
  listener.end();
  Object.assign(subscriber, { isOpen: false });
  listener.end();
  expect(calls).toEqual([['connect'], ['subscribe', 'c', changed], [['PING']], ['destroy']]);
  Object(subscriber).emit('error', new Error('reset'));
  Object(subscriber).emit('ready');
  expect(changed).toHaveBeenCalledOnce();
});

describe.skipIf(url === '')('push over Redis', () => {
  test.each([2, 3] as const)('a connection that hangs is detected and replaced (RESP %i) (F29)', async (RESP) => {
    const proxy = await startTcpProxy(Number(new URL(url).port));
    closing.push(() => proxy.close());
    const connect = (): RedisSubscriber =>
      createClient({ url: `redis://127.0.0.1:${proxy.port}`, RESP, socket: { reconnectStrategy: false } });
    const push = new Push({ connect: () => pushListener(connect(), `c${RESP}`), timeoutMs: 1_000, heartbeatMs: 100 });
    closing.push(() => push.close());
    const publish = await publisher(`c${RESP}`);
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
    await publish();
    await expect.poll(() => heard).toBe(3);
  });

  test('all watchers share one connection, which closes with the last watcher', async () => {
    const proxy = await startTcpProxy(Number(new URL(url).port));
    closing.push(() => proxy.close());
    let made = 0;
    let open: RedisSubscriber | undefined;
    const connect = (): RedisSubscriber => {
      made++;
      open = createClient({ url: `redis://127.0.0.1:${proxy.port}` });
      return open;
    };
    const push = new Push({ connect: () => pushListener(connect(), 'shared'), timeoutMs: 2_000 });
    const publish = await publisher('shared');
    let heard = 0;
    const changed = (): void => void heard++;
    const [endOne, endOther] = [push.add(changed), push.add(changed)];
    await expect.poll(() => heard).toBe(2);
    await publish();
    await expect.poll(() => heard).toBe(4);
    endOne();
    endOne();
    await publish();
    await expect.poll(() => heard).toBe(5);
    expect(made).toBe(1);
    endOther();
    expect(open?.isOpen).toBe(false);
    push.add(changed)();
    await expect.poll(() => open?.isOpen).toBe(false);
    expect([made, heard]).toEqual([2, 5]);
  });

  test('creating or connecting a client is retried later if it fails', async () => {
    let attempts = 0;
    const connect = (): RedisSubscriber => {
      attempts++;
      if (attempts < 3) throw new Error('no client');
      return createClient({ url: attempts < 5 ? 'redis://127.0.0.1:1' : url, socket: { reconnectStrategy: false } });
    };
    const push = new Push({ connect: () => pushListener(connect(), 'c'), timeoutMs: 2_000 });
    closing.push(() => push.close());
    let heard = 0;
    push.add(() => heard++);
    await expect.poll(() => heard).toBe(1);
    expect(attempts).toBe(5);
  });

  test('a watcher does not keep the process alive', async () => {
    const source = `
      import { createClient } from 'redis';
      import { redisRing } from ${JSON.stringify(new URL('../src/index.ts', import.meta.url).href)};
      const client = await createClient({ url: ${JSON.stringify(url)} }).connect();
      redisRing({ client }).watch(() => client.isOpen && client.destroy());
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
