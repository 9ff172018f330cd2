import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { Fleet, type Member } from '../fleet/fleet.ts';
import { fleetPolicy } from '../fleet/fleet-policy.ts';
import { startRedis } from '../support/redis.ts';

/** How long an instance is frozen, as serverless platforms do between two requests. */
const FROZEN_SECONDS = 120;

test('a process that was stopped for 120 s, ten times sealOutage, serves the first request afterwards', async () => {
  expect(FROZEN_SECONDS).toBeGreaterThanOrEqual(10 * fleetPolicy.sealOutageSeconds);
  const redis = await startRedis();
  const fleet = new Fleet({
    ring: { redis: redis.address, key: 'ring' },
    kms: { masterKey: randomBytes(32).toString('hex') },
    policy: fleetPolicy,
  });
  onTestFinished(async () => {
    fleet.end();
    await redis.stop();
  });
  const [frozen, running] = (await fleet.fork(2)) as [Member, Member];
  await fleet.start([frozen, running]);
  frozen.freeze();
  expect(frozen.isFrozen).toBe(true);
  const end = performance.now() + FROZEN_SECONDS * 1_000;
  // The others continue, and seal with a key that it does not know.
  await running.tell('rotate', { emergency: true });
  await pause(end - performance.now());
  const { sealed } = await running.tell('seal', ['state']);
  expect(sealed).toHaveLength(1);
  frozen.thaw();
  // This is its first order since then, and none of its timers has run in that time.
  const answered = await Promise.all(sealed.map((each) => frozen.tell('serve', each)));
  expect(await running.tell('open', answered)).toEqual([]);
  expect((await frozen.tell('health', undefined)).status).toBe('ok');
});
