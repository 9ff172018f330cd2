import { describe, expect, test } from 'vitest';
import { redisRing, redisSingleUse } from '../src/index.ts';

const client = { sendCommand: async () => ['absent'] };

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
    [{ client, callTimeoutSeconds: '5' }, TypeError],
    [{ client, callTimeoutSeconds: 0 }, RangeError],
    [{ client, callTimeoutSeconds: 61 }, RangeError],
    [{ client, callTimeoutSeconds: Number.NaN }, RangeError],
    [{ client, timeoutMs: 5 }, TypeError],
  ])('%o is rejected by both stores, without showing a secret', (options, type) => {
    for (const make of [redisRing, redisSingleUse]) {
      const attempt = () => Reflect.apply(make, undefined, [options]);
      expect(attempt).toThrow(type);
      expect(attempt).not.toThrow(/canary/);
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

  test('the constructor does not connect, and later changes of the options have no effect', async () => {
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

describe('answers that no real server gives', () => {
  test.each([[null], ['OK'], [[]], [['held']], [['held', 'x']], [['held', 7, 'x']], [['done']], [{}]])(
    '%o is an error, never absent and never written (F9)',
    async (answer) => {
      const ring = redisRing({ client: { sendCommand: async () => answer } });
      await expect(ring.read()).rejects.toMatchObject({ name: 'RingStoreError', kind: 'unavailable' });
      await expect(ring.write('x', { expected: undefined })).rejects.toMatchObject({ name: 'RingStoreError' });
    },
  );

  test.each([[undefined], ['QUEUED'], [1], [[]]])('%o claims nothing', async (answer) => {
    const store = redisSingleUse({ client: { sendCommand: async () => answer } });
    await expect(store.claim('x', new Date(Date.now() + 1000))).rejects.toMatchObject({ kind: 'unavailable' });
  });
});
