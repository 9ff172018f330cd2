import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { inspect } from 'node:util';
import { RingConflictError, type RingStoreErrorKind } from '@sealring/core';
import { createClient, createClientPool } from 'redis';
import { afterEach, describe, expect, inject, test } from 'vitest';
// @boundaries-ignore the servers that the tests share are not a package
import { startRedis, type TestServer } from '../../../test/support/redis.ts';
// @boundaries-ignore the servers that the tests share are not a package
import { startTcpProxy } from '../../../test/support/tcp-proxy.ts';
import { type RedisClient, redisRing, redisSingleUse } from '../src/index.ts';

const url = inject('redis');
const failed = (kind: RingStoreErrorKind) => ({ name: 'RingStoreError', kind });
const inAnHour = (): Date => new Date(Date.now() + 3_600_000);

const closing: (() => Promise<unknown> | void | undefined)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

async function connected(at: string = url, options: object = {}) {
  const client = createClient({ url: at, ...options });
  client.on('error', () => undefined);
  await client.connect();
  closing.push(() => (client.isOpen ? client.destroy() : undefined));
  return client;
}

async function server(args: readonly string[]): Promise<TestServer> {
  const started = await startRedis(args);
  closing.push(() => started.stop());
  return started;
}

/** The rules of a user in the README, for this test's key. */
async function rightsOfReadme(): Promise<(user: string, key: string) => string> {
  const readme = await readFile(new URL('../README.md', import.meta.url), 'utf8');
  return (user, key) => {
    const [, rules = 'off'] = new RegExp(`^ACL SETUSER ${user} (.+)$`, 'm').exec(readme) ?? [];
    return rules.replaceAll('sealring:payments', key).replace('PASSWORD', 'secret');
  };
}

const freshKey = (): string => `test:${randomUUID()}`;

// Skipped only if this machine lacks Redis; under CI=true the set-up fails instead.
describe.skipIf(url === '')('redisRing on Redis', () => {
  test.each([2, 3] as const)('the caller’s client is used and not closed (RESP %i)', async (RESP) => {
    const client = await connected(url, { RESP });
    const ring = redisRing({ client, key: freshKey() });
    let heard = 0;
    ring.watch?.(() => heard++);
    const { revision } = await ring.write('{}\n€', { expected: undefined });
    expect(await ring.read()).toEqual({ document: '{}\n€', revision });
    await expect.poll(() => heard).toBeGreaterThan(0);
    await ring.close?.();
    await expect(ring.read()).rejects.toMatchObject(failed('unavailable'));
    expect(await client.ping()).toBe('PONG');
  });

  test('a pool of clients works without push, and so does a client that returns strings', async () => {
    const pool = createClientPool({ url });
    pool.on('error', () => undefined);
    await pool.connect();
    closing.push(() => pool.close());
    const key = freshKey();
    const ring = redisRing({ client: pool, key });
    expect(ring).not.toHaveProperty('watch');
    const { revision } = await ring.write('x', { expected: undefined });
    const strings: RedisClient = { sendCommand: (args) => pool.execute((client) => client.sendCommand(args)) };
    expect(await redisRing({ client: strings, key }).read()).toEqual({ document: 'x', revision });
  });

  test('a call over a client that is not connected is reported as unavailable', async () => {
    const ring = redisRing({ client: createClient({ url }) });
    await expect(ring.read()).rejects.toMatchObject(failed('unavailable'));
    await expect(ring.write('x', { expected: undefined })).rejects.toMatchObject(failed('unavailable'));
  });

  test.each([
    ['a string', ['SET', '%', '{}']],
    ['a list', ['RPUSH', '%', '{}']],
    ['a hash of something else', ['HSET', '%', 'user', '7']],
    ['a hash without a revision', ['HSET', '%', 'document', '{}']],
    ['a hash without a document', ['HSET', '%', 'revision', 'x']],
    ['a hash that claims to be absent', ['HSET', '%', 'document', '{}', 'revision', 'foreign']],
    ['a revision that no write could have made', ['HSET', '%', 'document', '{}', 'revision', 'x'.repeat(65)]],
  ])('%s at the key is reported as corrupt, never as absent (F9)', async (_, command) => {
    const client = await connected();
    const key = freshKey();
    await client.sendCommand(command.map((word) => (word === '%' ? key : word)));
    const ring = redisRing({ client, key });
    await expect(ring.read()).rejects.toMatchObject(failed('corrupt'));
    await expect(ring.write('x', { expected: undefined })).rejects.toBeInstanceOf(RingConflictError);
    await expect(ring.write('x', { expected: 'y' })).rejects.toBeInstanceOf(RingConflictError);
    await expect(ring.read()).rejects.toMatchObject(failed('corrupt'));
    // One of the members that know the ring overwrites it.
    const { revision: expected } = Object(await ring.read().catch((thrown: unknown) => thrown));
    const writes = await Promise.allSettled(Array.from({ length: 8 }, () => ring.write('x', { expected })));
    expect(writes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect(await ring.read()).toMatchObject({ document: 'x' });
    await expect(ring.write('late', { expected })).rejects.toBeInstanceOf(RingConflictError);
  });

  test('a write with the revision of a foreign value conflicts if the key has a ring or is absent', async () => {
    const ring = redisRing({ client: await connected(), key: freshKey() });
    await expect(ring.write('x', { expected: 'foreign' })).rejects.toBeInstanceOf(RingConflictError);
    await ring.write('x', { expected: undefined });
    await expect(ring.write('y', { expected: 'foreign' })).rejects.toBeInstanceOf(RingConflictError);
  });

  test('bytes that are not UTF-8 are reported as corrupt (F9)', async () => {
    const client = await connected();
    const key = freshKey();
    await client.sendCommand(['HSET', key, 'document', Buffer.from([0x7b, 0xff, 0x7d]), 'revision', 'x']);
    const ring = redisRing({ client, key });
    await expect(ring.read()).rejects.toMatchObject({ ...failed('corrupt'), revision: 'x' });
    await ring.write('{}', { expected: 'x' });
    expect(await ring.read()).toMatchObject({ document: '{}' });
  });

  test('a document over the limit is not transferred (F23)', async () => {
    const client = await connected();
    const key = freshKey();
    await client.sendCommand(['HSET', key, 'document', 'x'.repeat(2 ** 24), 'revision', 'x']);
    const bytesOut = async (): Promise<number> =>
      Number(/total_net_output_bytes:(\d+)/.exec(await client.info('stats'))?.[1]);
    const before = await bytesOut();
    const ring = redisRing({ client, key });
    await expect(ring.read()).rejects.toMatchObject({ ...failed('too-large'), revision: 'x' });
    await ring.write('{}', { expected: 'x' });
    expect((await bytesOut()) - before).toBeLessThan(100_000);
  });

  test('a replica is reported as unavailable, because it may be behind (F9, F31)', async () => {
    const primary = await server(['--repl-diskless-sync-delay', '0']);
    const replica = await server(['--replicaof', `127.0.0.1 ${primary.port}`]);
    const key = freshKey();
    const ring = redisRing({ client: await connected(primary.address), key });
    const { revision } = await ring.write('x', { expected: undefined });
    const client = await connected(replica.address);
    await expect.poll(() => client.exists(key)).toBe(1);
    const behind = redisRing({ client, key });
    await expect(behind.read()).rejects.toMatchObject(failed('unavailable'));
    await expect(behind.write('y', { expected: revision })).rejects.toMatchObject(failed('unavailable'));
    await expect(redisRing({ client, key: freshKey() }).read()).rejects.toMatchObject(failed('unavailable'));
    // A failover: now it is the primary.
    await client.sendCommand(['REPLICAOF', 'NO', 'ONE']);
    expect(await behind.read()).toEqual({ document: 'x', revision });
  });

  test('a server that is out of memory is unavailable for writes, but still readable', async () => {
    const { address } = await server([]);
    const client = await connected(address);
    const ring = redisRing({ client });
    const { revision } = await ring.write('x', { expected: undefined });
    await client.configSet('maxmemory', '1');
    await expect(ring.write('y', { expected: revision })).rejects.toMatchObject(failed('unavailable'));
    expect(await ring.read()).toEqual({ document: 'x', revision });
  });

  test('a missing or wrong password is reported as denied, and no error shows a password from a URL', async () => {
    const { port } = await server(['--requirepass', 'right']);
    const wrong = `redis://:canary-password@127.0.0.1:${port}`;
    const anonymous = await connected(`redis://127.0.0.1:${port}`, { RESP: 2, disableClientInfo: true });
    await expect(redisRing({ client: anonymous }).read()).rejects.toMatchObject(failed('denied'));
    const ring = redisRing({ url: wrong });
    closing.push(() => ring.close?.());
    for (const call of [ring.read(), ring.write('x', { expected: undefined }), ring.read()]) {
      const error: unknown = await call.catch((thrown: unknown) => thrown);
      expect(error).toMatchObject(failed('denied'));
      expect(inspect(error, { depth: null, showHidden: true })).not.toContain('canary');
    }
    expect(inspect(ring, { depth: null, showHidden: true })).not.toContain('canary');
    const right = redisRing({ url: `redis://:right@127.0.0.1:${port}` });
    closing.push(() => right.close?.());
    expect(await right.read()).toBeUndefined();
  });

  test('the permissions in the README are sufficient, and a call that lacks one of them is denied', async () => {
    const root = await connected();
    const key = freshKey();
    const rights = await rightsOfReadme();
    const member = rights('payments', key);
    const as = async (user: string, rules: string) => {
      await root.sendCommand(['ACL', 'SETUSER', user, 'reset', ...rules.split(' ')]);
      const client = await connected(url, { username: user, password: 'secret', disableClientInfo: true });
      const store = redisRing({ client, key });
      closing.push(() => store.close?.());
      return store;
    };
    const ring = await as('member', member);
    let heard = 0;
    ring.watch?.(() => heard++);
    await expect.poll(() => heard).toBe(1);
    const { revision } = await ring.write('x', { expected: undefined });
    await expect.poll(() => heard).toBe(2);
    const onlyReads = await as('reader', rights('payments-reader', key));
    const dates: Date[] = [];
    const read = await onlyReads.read({ onServiceDate: (date) => void dates.push(date) });
    expect(read).toEqual({ document: 'x', revision });
    expect(dates).toEqual([expect.any(Date)]);
    await expect(onlyReads.write('y', { expected: revision })).rejects.toMatchObject(failed('denied'));
    expect(await ring.read()).toEqual({ document: 'x', revision });
    for (const command of ['evalsha_ro', 'info', 'type', 'hstrlen', 'hmget']) {
      const less = await as(`without-${command}`, `${member} -${command}`);
      await expect(less.read(), command).rejects.toMatchObject(failed('denied'));
    }
    // A denied push must not make a successful write look like a failed one.
    const silent = await as('silent', `${member} -publish`);
    const written = await silent.write('z', { expected: revision });
    expect(await ring.read()).toEqual({ document: 'z', revision: written.revision });
    // The server that overwrites an invalid value removes it.
    await root.sendCommand(['SET', key, 'junk']);
    const undeleting = await as('undeleting', `${member} -del`);
    await expect(undeleting.write('z', { expected: 'foreign' })).rejects.toMatchObject(failed('denied'));
    await ring.write('z', { expected: 'foreign' });
    const elsewhere = redisRing({
      client: await connected(url, { username: 'member', password: 'secret' }),
      key: freshKey(),
    });
    await expect(elsewhere.read()).rejects.toMatchObject(failed('denied'));
  });

  test('a write that was abandoned before it was sent is never sent', async () => {
    const proxy = await startTcpProxy(Number(new URL(url).port));
    closing.push(() => proxy.close());
    const client = await connected(`redis://127.0.0.1:${proxy.port}`);
    const ring = redisRing({ client, key: freshKey(), callTimeoutSeconds: 0.2 });
    const store = redisSingleUse({ client, callTimeoutSeconds: 0.2 });
    const id = randomUUID();
    // From here on the server has the script: a call that is sent late would run.
    await expect(ring.write('x', { expected: 'y' })).rejects.toBeInstanceOf(RingConflictError);
    proxy.cut();
    await expect.poll(() => client.isReady).toBe(false);
    await expect(ring.write('late', { expected: undefined })).rejects.toMatchObject(failed('unavailable'));
    await expect(store.claim(id, inAnHour())).rejects.toMatchObject({ kind: 'unavailable' });
    proxy.mend();
    await expect.poll(() => client.isReady).toBe(true);
    expect(await ring.read()).toBeUndefined();
    expect(await client.exists(`sealring:used:${id}`)).toBe(0);
  });
});

describe.skipIf(url === '')('redisSingleUse on Redis', () => {
  test('exactly one of 51 concurrent claims over several connections resolves to true', async () => {
    const stores = [1, 2, 3].map(() => redisSingleUse({ url }));
    for (const store of stores) closing.push(() => store.close());
    for (let round = 0; round < 20; round++) {
      const id = randomUUID();
      const claims = Array.from({ length: 17 }, () => stores.map((store) => store.claim(id, inAnHour()))).flat();
      expect((await Promise.all(claims)).filter(Boolean)).toHaveLength(1);
    }
  });

  test('a claim is kept exactly until its end and the clock skew have passed, to the millisecond (F48)', async () => {
    const client = await connected();
    const store = redisSingleUse({ client, prefix: 'p:' });
    const [id, brief] = [randomUUID(), randomUUID()];
    expect(await store.claim(id, new Date(Date.now() + 60_000))).toBe(true);
    expect(await client.pTTL(`p:${id}`)).toBeGreaterThan(359_000);
    expect(await client.pTTL(`p:${id}`)).toBeLessThanOrEqual(360_000);
    const exact = redisSingleUse({ client, prefix: 'p:', clockSkewSeconds: 0 });
    expect(await exact.claim(brief, new Date(Date.now() + 100))).toBe(true);
    await expect.poll(() => client.exists(`p:${brief}`)).toBe(0);
  });

  test('a claim returns false and stores nothing once its end and the clock skew have passed (F48)', async () => {
    const client = await connected();
    const id = randomUUID();
    expect(await redisSingleUse({ client }).claim(id, new Date(Date.now() - 300_001))).toBe(false);
    expect(await client.exists(`sealring:used:${id}`)).toBe(0);
  });

  test('a claim rejects if the store is down, is full or denies access', async () => {
    const redis = await server(['--requirepass', 'right']);
    const client = await connected(redis.address.replace('//', '//:right@'));
    const store = redisSingleUse({ client, callTimeoutSeconds: 0.3 });
    const rejection = (kind: RingStoreErrorKind) => ({ name: 'SingleUseStoreError', kind });
    await client.configSet('maxmemory', '1');
    await expect(store.claim(randomUUID(), inAnHour())).rejects.toMatchObject(rejection('unavailable'));
    await client.configSet('maxmemory', '0');
    expect(await store.claim(randomUUID(), inAnHour())).toBe(true);
    const anonymous = redisSingleUse({ client: await connected(redis.address, { RESP: 2, disableClientInfo: true }) });
    await expect(anonymous.claim(randomUUID(), inAnHour())).rejects.toMatchObject(rejection('denied'));
    await redis.kill();
    await expect(store.claim(randomUUID(), inAnHour())).rejects.toMatchObject(rejection('unavailable'));
    await store.close();
    await expect(store.claim(randomUUID(), inAnHour())).rejects.toMatchObject(rejection('unavailable'));
  });

  test('the permissions in the README are sufficient', async () => {
    const root = await connected();
    const rights = await rightsOfReadme();
    await root.sendCommand(['ACL', 'SETUSER', 'claims', 'reset', ...rights('payments-claims', 'sealring').split(' ')]);
    const client = await connected(url, { username: 'claims', password: 'secret', disableClientInfo: true });
    expect(await redisSingleUse({ client }).claim(randomUUID(), inAnHour())).toBe(true);
    const other = redisSingleUse({ client, prefix: 'other:' });
    await expect(other.claim(randomUUID(), inAnHour())).rejects.toMatchObject({ kind: 'denied' });
  });
});
