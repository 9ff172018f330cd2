import { createClient } from 'redis';
import { afterEach, expect, inject, test } from 'vitest';
// @boundaries-ignore the servers that the tests share are not a package
import { startTcpProxy } from '../../../test/support/tcp-proxy.ts';
import { reconnectionMs } from '../src/connection.ts';
import { redisRing, redisSingleUse } from '../src/index.ts';

const redis = inject('redis');
const closing: (() => Promise<unknown> | void | undefined)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

test.each([
  [0, 25, 50],
  [1, 50, 100],
  [5, 800, 1_600],
  [6, 1_000, 2_000],
  [5_000, 1_000, 2_000],
])('after %i retries, the client reconnects within %i to %i ms, with jitter', (retries, least, most) => {
  const drawn = Array.from({ length: 100 }, () => Number(reconnectionMs(retries, new Error('reset'))));
  expect(Math.min(...drawn)).toBeGreaterThanOrEqual(least);
  expect(Math.max(...drawn)).toBeLessThanOrEqual(most);
  expect(new Set(drawn).size).toBeGreaterThan(1);
  expect(reconnectionMs(retries, new Error('WRONGPASS invalid'))).toBe(false);
});

test('a URL where nothing listens is reported by every call before the first connection, but not as a timeout', async () => {
  const ring = redisRing({ url: 'redis://127.0.0.1:1' });
  const store = redisSingleUse({ url: 'redis://127.0.0.1:1' });
  const refused = { kind: 'unavailable', serviceCode: 'ECONNREFUSED' };
  await expect(ring.read()).rejects.toMatchObject(refused);
  await expect(Promise.allSettled([ring.read(), ring.read()])).resolves.toMatchObject([
    { reason: refused },
    { reason: refused },
  ]);
  await expect(store.claim('x', new Date(Date.now() + 1_000))).rejects.toMatchObject(refused);
  // The calls failed for another reason than the connection.
  const controller = new AbortController();
  const aborted = ring.read({ signal: controller.signal });
  controller.abort();
  await expect(aborted).rejects.toMatchObject({ kind: 'unavailable', serviceCode: undefined });
  await ring.close?.();
  await expect(ring.read()).rejects.toMatchObject({ kind: 'unavailable', serviceCode: undefined });
  await store.close();
});

test.skipIf(redis === '')(
  'a lost connection is restored, and calls wait for it and report the cause if that takes too long',
  async () => {
    const proxy = await startTcpProxy(Number(new URL(redis).port));
    closing.push(() => proxy.close());
    const root = await createClient({ url: redis }).connect();
    closing.push(() => root.destroy());
    const open = async () => /db=7 /.test(await root.sendCommand<string>(['CLIENT', 'LIST']));
    const [ring, hasty] = [5, 0.1].map((callTimeoutSeconds) =>
      redisRing({ url: `redis://127.0.0.1:${proxy.port}/7`, callTimeoutSeconds }),
    );
    expect([await ring?.read(), await hasty?.read()]).toEqual([undefined, undefined]);
    expect(await open()).toBe(true);
    let heard = 0;
    const watching = redisRing({ url: `redis://127.0.0.1:${proxy.port}` });
    watching.watch?.(() => heard++);
    await expect.poll(() => heard).toBe(1);
    proxy.cut();
    const codeOfRead = async (): Promise<unknown> => hasty?.read().catch((error) => error.serviceCode);
    await expect.poll(codeOfRead).toBe('ECONNRESET');
    const waiting = ring?.read();
    proxy.mend();
    expect(await waiting).toBeUndefined();
    await expect.poll(() => heard).toBe(2);
    await Promise.all([ring?.close?.(), hasty?.close?.(), watching.close?.()]);
    await expect.poll(open).toBe(false);
  },
);
