import { createClient, createClientPool, createCluster, createSentinel } from 'redis';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { redisRing, redisSingleUse } from '../src/index.ts';

const client = { sendCommand: async () => ['absent'] };
afterEach(() => void vi.useRealTimers());

describe('options', () => {
  test.each([
    [undefined, TypeError],
    [null, TypeError],
    [[], TypeError],
    [{}, TypeError],
    [{ client, url: 'redis://127.0.0.1' }, TypeError],
    [{ client: null }, TypeError],
    [{ client: {} }, TypeError],
    [{ url: 7 }, TypeError],
    [{ url: 'http://:canary@127.0.0.1' }, RangeError],
    [{ url: 'canary' }, RangeError],
    [{ url: 'redis://canary:10%25ok%zz@127.0.0.1' }, RangeError],
    [{ url: 'redis://%zz:canary@127.0.0.1' }, RangeError],
    [{ url: 'redis://:canary@127.0.0.1/name' }, RangeError],
    [{ url: 'redis:canary' }, RangeError],
    [{ client: createCluster({ rootNodes: [{ url: 'redis://127.0.0.1:1' }] }) }, TypeError],
    [{ client: createSentinel({ name: 'm', sentinelRootNodes: [{ host: '127.0.0.1', port: 1 }] }) }, TypeError],
    [{ client, callTimeoutSeconds: '5' }, TypeError],
    [{ client, callTimeoutSeconds: 0 }, RangeError],
    [{ client, callTimeoutSeconds: 61 }, RangeError],
    [{ client, callTimeoutSeconds: Number.NaN }, RangeError],
    [{ client, timeoutMs: 5 }, TypeError],
  ])('both stores reject %o without showing a secret', (options, type) => {
    for (const make of [redisRing, redisSingleUse]) {
      const attempt = () => Reflect.apply(make, undefined, [options]);
      expect(attempt).toThrow(type);
      expect(attempt).toThrow(new RegExp(`^${make.name}: `));
      expect(attempt).not.toThrow(/canary/);
    }
  });

  test.each([
    ['client', { client: {} }, /sendCommand/],
    ['url', { url: 7 }, /a string/],
    ['url', { url: 'http://127.0.0.1' }, /redis:\/\//],
    ['url', { url: 'redis://:10%zz@127.0.0.1' }, /in which % begins an escape/],
    ['client', { client: createCluster({ rootNodes: [] }) }, /the client of one server/],
    ['key', { client, key: '' }, /1 to 512/],
    ['client', {}, /or url/],
  ])('the error about a wrong %s names the option and the expected value', (name, options, wanted) => {
    expect(() => Reflect.apply(redisRing, undefined, [options])).toThrow(wanted);
    expect(() => Reflect.apply(redisRing, undefined, [options])).toThrow(name);
  });

  test.each([
    [{ url: 'rediss://user:canary@127.0.0.1:7/3' }, 'rediss://127.0.0.1:7, key sealring:ring'],
    [{ client, key: 'k' }, 'redis key k'],
    [{ client: createClient(), key: 'k' }, 'redis key k'],
    [{ client: createClientPool(), key: 'k' }, 'redis key k'],
    [{ url: 'redis://user:10%25@127.0.0.1' }, 'redis://127.0.0.1, key sealring:ring'],
    [{ url: 'redis://127.0.0.1/' }, 'redis://127.0.0.1, key sealring:ring'],
  ])(
    'a ring with the options %j shows its place but no secret, is frozen, and can be closed before it connects',
    async (options, at) => {
      const ring = redisRing(options);
      expect(ring).toMatchObject({ kind: 'redis', location: at });
      expect(Object.isFrozen(ring)).toBe(true);
      await ring.close?.();
      await expect(ring.read()).rejects.toMatchObject({ kind: 'unavailable', detail: 'the store is closed' });
    },
  );

  test('a wrong argument is rejected before any call, with an error that names the function (F17)', async () => {
    const duplicate = (): never => expect.unreachable();
    const ring = redisRing({ client: { sendCommand: async () => expect.unreachable(), duplicate } });
    const call = async (name: string, ...given: unknown[]) => Reflect.apply(Reflect.get(ring, name), ring, given);
    for (const wrong of [call('read', { key: 'k' }), call('write', 7, { expected: undefined }), call('watch', 7)]) {
      await expect(wrong).rejects.toBeInstanceOf(TypeError);
      await expect(wrong).rejects.toThrow(/^redisRing: /);
    }
  });

  test.each([
    [7, TypeError],
    [null, TypeError],
    ['', RangeError],
    ['x'.repeat(513), RangeError],
    ['\ud800', RangeError],
  ])('%o is rejected as a key and as a prefix', (name, type) => {
    expect(() => Reflect.apply(redisRing, undefined, [{ client, key: name }])).toThrow(type);
    expect(() => Reflect.apply(redisSingleUse, undefined, [{ client, prefix: name }])).toThrow(type);
  });

  test('the constructor does not connect, and later changes to the options have no effect', async () => {
    const keys: unknown[] = [];
    const options = {
      key: 'a',
      client: {
        async sendCommand(args: readonly string[]) {
          keys.push(args[3]);
          return ['absent'];
        },
      },
    };
    const ring = redisRing(options);
    expect(keys).toEqual([]);
    options.key = 'b';
    expect(await ring.read()).toBeUndefined();
    expect(keys).toEqual(['a']);
  });
});

test('the time of the server is reported in seconds (F13)', async () => {
  const dates: Date[] = [];
  const onServiceDate = (date: Date): void => void dates.push(date);
  const answers = [['absent', Buffer.from('1795000000')], ['absent', ''], ['absent']];
  const ring = redisRing({ client: { sendCommand: async () => answers.shift() } });
  while (answers.length > 0) await ring.read({ onServiceDate });
  expect(dates).toEqual([new Date(1_795_000_000_000)]);
});

test('a claim sends one SET with the remaining time, and nothing once no time remains (F48)', async () => {
  const sent: unknown[] = [];
  const store = redisSingleUse({ client: { sendCommand: async (...given) => sent.push(given) && 'OK' } });
  expect(store.clockSkewSeconds).toBe(300);
  vi.useFakeTimers();
  expect(await store.claim('x', new Date(Date.now() - 299_999))).toBe(true);
  expect(await store.claim('x', new Date(Date.now() - 300_000))).toBe(false);
  const abortSignal = expect.any(AbortSignal);
  expect(sent).toEqual([[['SET', 'sealring:used:x', '', 'NX', 'PX', '1'], { abortSignal }]]);
  await expect(store.claim('', new Date())).rejects.toThrow(/^redisSingleUse: id/);
  await store.close();
  await expect(store.claim('x', new Date())).rejects.toMatchObject({ kind: 'unavailable' });
});

test.each([
  [['foreign', '7', 'r'], 'corrupt', /^the key holds something other/, 'r'],
  [['too-large', '7', 'r'], 'too-large', /^the ring document is larger than/, 'r'],
  [['replica'], 'unavailable', /^the server is a replica/, undefined],
  [['held', '7', 'r', Buffer.from([0xff])], 'corrupt', /^the key is not UTF-8/, 'r'],
  [['held', '7', 'r', ''], 'corrupt', /^the key is empty/, 'r'],
])('the answer %j to a read is reported as %s', async (answer, kind, detail, revision) => {
  const read = redisRing({ client: { sendCommand: async () => answer } }).read();
  await expect(read).rejects.toMatchObject({ kind, detail: expect.stringMatching(detail), revision });
});

describe('answers that no real server gives', () => {
  test.each([
    [null],
    ['OK'],
    [[]],
    [['held']],
    [['held', 'x']],
    [['held', 7, 'x']],
    [['held', 7, 'x', 7]],
    [['done']],
    [{}],
  ])('%o is reported as an error, never as an absent ring or a successful write (F9)', async (answer) => {
    const ring = redisRing({ client: { sendCommand: async () => answer } });
    await expect(ring.read()).rejects.toMatchObject({ name: 'RingStoreError', kind: 'unavailable' });
    await expect(ring.write('x', { expected: undefined })).rejects.toMatchObject({ name: 'RingStoreError' });
  });

  test.each([[undefined], ['QUEUED'], [1], [[]]])('a claim rejects if the answer is %o', async (answer) => {
    const store = redisSingleUse({ client: { sendCommand: async () => answer } });
    await expect(store.claim('x', new Date(Date.now() + 1000))).rejects.toMatchObject({ kind: 'unavailable' });
  });
});
