import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { KeeperProcess } from '../support/keeper-process.ts';
import { startRedis } from '../support/redis.ts';
import { startOrSkip } from '../support/servers.ts';
import { until } from '../support/until.ts';
import { emptyProject } from './proxy-process.ts';

/* The command `sealring keeper` while its ring store is down. */

const redis = await startOrSkip(() => startRedis());
const project = emptyProject();
afterAll(async () => {
  project.remove();
  await redis?.stop();
});

/** @returns the status of a path of the keeper's health server. */
async function probesOf(keeper: KeeperProcess): Promise<(path: string) => Promise<number>> {
  const { url } = await keeper.reported('health');
  return async (path) => (await fetch(`${url}${path}`)).status;
}

describe.skipIf(redis === undefined)('the keeper, with a ring in Redis', () => {
  const store = redis as NonNullable<typeof redis>;
  beforeAll(() => writeFileSync(join(project.cwd, 'sealring.config.mjs'), configFor(store.address)));

  test('the keeper is not ready while the store is down at its start, and ready once the store answers', async () => {
    await store.kill();
    await using keeper = new KeeperProcess(project.cwd, ['--health-port', '0']);
    const get = await probesOf(keeper);
    expect([await get('/livez'), await get('/readyz')]).toEqual([200, 503]);
    // Once the store has been empty for a second, the keeper creates the ring.
    await store.start();
    await until(async () => (await get('/readyz')) === 200, 30);
    expect(await keeper.terminate()).toBe(0);
  });

  test('reports an outage of the store, is live and not ready, and writes the ring again afterwards', async () => {
    await using keeper = new KeeperProcess(project.cwd, ['--health-port', '0']);
    const get = await probesOf(keeper);
    await keeper.reported('started');
    // Redis stores nothing on disk.
    await store.kill();
    await keeper.reported('status', ({ lastError }) => lastError === 'store unavailable');
    await until(async () => (await get('/readyz')) === 503, 30);
    expect(await get('/livez')).toBe(200);
    await store.start();
    await until(async () => (await get('/readyz')) === 200, 30);
    expect(await keeper.reported('repair')).toMatchObject({ keys: 1 });
    await keeper.reported('status', ({ status }) => status === 'ok');
    expect(await keeper.terminate()).toBe(0);
  });
});

/** A ring with times short enough that an outage of seconds counts. */
function configFor(address: string): string {
  return `import { localKeyWrapper } from '@sealring/core';
import { redisRing } from '@sealring/redis';
export default {
  ring: redisRing({ url: '${address}' }),
  keyWrapper: localKeyWrapper({ masterKey: '${randomBytes(32).toString('base64url')}' }),
  policy: { clockSkewSeconds: 0, refreshEverySeconds: 0.5, backoffCapSeconds: 0.5, kmsCheckEverySeconds: 1,
    sealOutageSeconds: 3, storeOutageSeconds: 3, rotateEverySeconds: 600, tokenLifetimeSeconds: 60, missRefreshSeconds: 0 },
};
`;
}
