import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { createClient } from 'redis';
import { afterAll, describe, expect, type TestContext, test } from 'vitest';
import { startRedis, type TestServer } from '../support/redis.ts';
import { startOrSkip } from '../support/servers.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import { Fleet, type Member } from './fleet.ts';
import { fleetPolicy } from './fleet-policy.ts';
import type { Sealed } from './member-process.ts';

const OTHERS = 3;

/** The shortest possible propagation: two seconds for members that were cut off, two for reading, one for clocks. */
const policy = {
  ...fleetPolicy,
  sealOutageSeconds: 6,
  propagationSeconds: 9,
  kmsTimeoutSeconds: 2,
  createAfterSeconds: 2,
};

let redis: TestServer | undefined;
await startOrSkip(async () => {
  redis = await startRedis();
  return redis;
});
const url = redis?.address ?? '';
afterAll(() => redis?.stop());

/** Some members, and one that will publish: none of them sees a change before it reads. */
async function startFleet(
  { onTestFinished }: TestContext,
  key: string,
  publisherAt = url,
): Promise<{ fleet: Fleet; publisher: Member }> {
  const kms = { masterKey: randomBytes(32).toString('hex') };
  const fleet = new Fleet({ ring: { redis: url, key, push: false }, kms, policy });
  onTestFinished(() => fleet.end());
  await fleet.start(await fleet.fork(OTHERS));
  const [publisher] = await fleet.fork(1);
  if (publisher === undefined) throw new Error('no member was started');
  await fleet.start([publisher], { ring: { redis: publisherAt, key, push: false }, kms, policy });
  return { fleet, publisher };
}

async function storedKeyIds(key: string): Promise<string[]> {
  const client = await createClient({ url }).connect();
  try {
    const document = await client.hGet(key, 'document');
    return (JSON.parse(document ?? '{"keys":[]}') as { keys: { id: string }[] }).keys.map(({ id }) => id);
  } finally {
    client.destroy();
  }
}

/** Every member seals, ready or not; those that are ready unseal all tokens. Returns who sealed with which key. */
async function round(members: readonly Member[], failures: string[]): Promise<ReadonlyMap<Member, string>> {
  const usedKeys = new Map<Member, string>();
  const fresh = await Promise.all(
    members.map(async (member): Promise<readonly Sealed[]> => {
      const { sealed } = await member.tell('seal', [`a token of ${member.name}`]);
      for (const { token } of sealed) usedKeys.set(member, token.slice(4, 16));
      return sealed;
    }),
  );
  const opened = await Promise.all(members.map((member) => member.tell('openIfReady', fresh.flat())));
  for (const [i, each] of opened.entries()) {
    failures.push(...each.failures.map((failure) => `${members[i]?.name}: ${failure}`));
  }
  return usedKeys;
}

/** Repeats these rounds until `condition` holds. */
async function roundsUntil(
  members: readonly Member[],
  failures: string[],
  condition: (usedKeys: ReadonlyMap<Member, string>) => boolean | Promise<boolean>,
): Promise<void> {
  const end = performance.now() + 60_000;
  while (!(await condition(await round(members, failures)))) {
    if (performance.now() > end) throw new Error(`not within a minute: ${String(condition)}`);
    await pause(20);
  }
}

describe.skipIf(redis === undefined).concurrent('a publication that takes longer than propagation (F41)', () => {
  test('causes no refusal by a ready member if the process was stopped after it made the key', async (context) => {
    const key = 'sealring:stopped';
    const { fleet, publisher } = await startFleet(context, key);
    const others = fleet.members.slice(0, OTHERS);
    const failures: string[] = [];
    await publisher.tell('stopAtNextKey', undefined);
    const rotating = publisher.tell('rotate', { emergency: false }).catch((error: Error) => error.message);
    await roundsUntil(others, failures, () => publisher.isFrozen);
    const frozen = performance.now();
    await roundsUntil(others, failures, () => performance.now() - frozen > 1_000 * (policy.propagationSeconds + 1));
    const [founded] = await storedKeyIds(key);
    publisher.thaw();
    // Its key would have been active for a second; the member must make a new decision instead.
    const said = await rotating;
    const thawed = performance.now();
    await roundsUntil(fleet.members, failures, async () => {
      const { ready } = await publisher.tell('health', undefined);
      return ready && performance.now() - thawed > 4_000 * policy.refreshEverySeconds;
    });
    expect(failures).toEqual([]);
    expect(said).toEqual(expect.stringContaining('delayed for too long'));
    expect(await storedKeyIds(key)).toEqual([founded]);
    // Its next key is published normally.
    await publisher.tell('rotate', { emergency: false });
    const next = (await storedKeyIds(key)).at(-1);
    await roundsUntil(fleet.members, failures, (used) => fleet.members.every((member) => used.get(member) === next));
    expect(failures).toEqual([]);
  });

  test('causes no refusal by a ready member if the network delivers the write late', async (context) => {
    const key = 'sealring:held';
    const proxy = await startTcpProxy(redis?.port ?? 0);
    context.onTestFinished(() => proxy.close());
    const { fleet, publisher } = await startFleet(context, key, `redis://${proxy.host}:${proxy.port}`);
    const others = fleet.members.slice(0, OTHERS);
    const failures: string[] = [];
    // The first request with a document in it; reads have none.
    let isHeld = false;
    void proxy.holdFrom('"opensUntil"').then(() => {
      isHeld = true;
    });
    const rotating = publisher.tell('rotate', { emergency: false }).catch((error: Error) => error.message);
    await roundsUntil(others, failures, () => isHeld);
    const held = performance.now();
    await roundsUntil(
      fleet.members,
      failures,
      () => performance.now() - held > 1_000 * (policy.propagationSeconds + 1),
    );
    expect(await rotating).toEqual(expect.stringContaining('unavailable'));
    expect(await storedKeyIds(key)).toHaveLength(1);
    proxy.mend();
    await roundsUntil(fleet.members, failures, async () => (await storedKeyIds(key)).length === 2);
    const late = (await storedKeyIds(key)).at(-1);
    await roundsUntil(fleet.members, failures, (used) => fleet.members.every((member) => used.get(member) === late));
    expect(failures).toEqual([]);
  });
});
