import {
  CancelKeyDeletionCommand,
  CreateKeyCommand,
  DisableKeyCommand,
  EnableKeyCommand,
  ScheduleKeyDeletionCommand,
} from '@aws-sdk/client-kms';
import { createAwsKmsCodec } from '@sealring/aws-kms';
import { memoryRing } from '@sealring/core';
import { afterAll, describe, expect, test } from 'vitest';
import { startLocalstack } from '../support/localstack.ts';
import { startOrSkip } from '../support/servers.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { kmsBounds } from './kms-bounds.ts';
import { emulatorClient, KmsFleet, type Observed } from './kms-fleet.ts';

const localstack = await startOrSkip(startLocalstack);
const address = localstack?.address ?? '';
const admin = emulatorClient(address);
const closing: (() => Promise<void>)[] = [];
afterAll(async () => {
  for (const close of closing.toReversed()) await close();
  admin.destroy();
  await localstack?.stop();
});

async function createKey(): Promise<string> {
  const { KeyMetadata } = await admin.send(new CreateKeyCommand({}));
  return KeyMetadata?.Arn ?? '';
}

async function startFleet(options: Parameters<typeof KmsFleet.start>[0]): Promise<KmsFleet> {
  const fleet = await KmsFleet.start(options);
  closing.push(() => fleet.close());
  await fleet.until(() => fleet.works, WAIT_SECONDS);
  return fleet;
}

async function startProxy(): Promise<TcpProxy> {
  const proxy = await startTcpProxy(Number(new URL(address).port));
  closing.push(() => proxy.close());
  return proxy;
}

/** Seconds from one moment to another, both in milliseconds. */
function secondsFrom(fromMs: number, toMs: number): number {
  return (toMs - fromMs) / 1_000;
}

/** Longest wait for an expected change; the test checks the time afterwards. */
const WAIT_SECONDS = 60;

/** Two refusals that count are at least this far apart (lifecycle, "The KMS refuses"). */
const REFUSALS_APART_SECONDS = 8;

/**
 * Minutes are shortened to seconds. The kill switch cannot be scaled: a member repeats the call 10 s after a refusal.
 */
const shortPolicy = {
  clockSkewSeconds: 2,
  refreshEverySeconds: 2,
  // The smallest value for which the bounds hold: the second refusal must come within it.
  backoffCapSeconds: 10,
  tokenLifetimeSeconds: 60,
  kmsCheckEverySeconds: 3,
  // Far longer than the kill switch takes, so that the kill switch stops them.
  sealOutageSeconds: 120,
  storeOutageSeconds: 600,
  propagationSeconds: 126,
  rotateEverySeconds: 3_600,
  createAfterSeconds: 0,
  kmsTimeoutSeconds: 2,
  startTimeoutSeconds: 60,
  keyVersionEverySeconds: 3_600,
  missRefreshSeconds: 10,
};

const shortOutagePolicy = {
  ...shortPolicy,
  clockSkewSeconds: 1,
  refreshEverySeconds: 1,
  backoffCapSeconds: 1,
  tokenLifetimeSeconds: 3,
  kmsCheckEverySeconds: 1,
  sealOutageSeconds: 12,
  propagationSeconds: 15,
  kmsTimeoutSeconds: 1,
};

test('the default policy has the documented bounds (F10)', () => {
  const defaults = {
    ...shortPolicy,
    clockSkewSeconds: 300,
    refreshEverySeconds: 300,
    backoffCapSeconds: 60,
    tokenLifetimeSeconds: 3_600,
    kmsCheckEverySeconds: 900,
    sealOutageSeconds: 3_600,
    kmsTimeoutSeconds: 5,
  };
  expect(kmsBounds(defaults)).toEqual({
    refused: { lastSeal: 980, lastOpen: 1_580 },
    unreachable: { lastSeal: 3_600, lastOpen: 7_800 },
    toleratedOutage: 2_620,
  });
});

// These run concurrently, because each waits for half a minute. They are skipped only if this machine lacks Python.
describe.skipIf(localstack === undefined).concurrent('a KMS key that a fleet may no longer use (F10)', () => {
  test.each([
    {
      state: 'disabled',
      stop: (KeyId: string) => admin.send(new DisableKeyCommand({ KeyId })),
      restore: (KeyId: string) => admin.send(new EnableKeyCommand({ KeyId })),
    },
    {
      state: 'pending deletion',
      stop: (KeyId: string) => admin.send(new ScheduleKeyDeletionCommand({ KeyId, PendingWindowInDays: 7 })),
      restore: async (KeyId: string) => {
        await admin.send(new CancelKeyDeletionCommand({ KeyId }));
        await admin.send(new EnableKeyCommand({ KeyId }));
      },
    },
  ])(
    '$state: the last seal and the last unseal are within the bounds, and all servers resume once the key is enabled again (F10)',
    async ({ stop, restore }) => {
      const policy = shortPolicy;
      const { refused } = kmsBounds(policy);
      const keyId = await createKey();
      const ring = memoryRing();
      const fleet = await startFleet({ keyId, policy, ring, endpoints: [address, address, address] });
      const keys = fleet.all.map((each) => each.health().keys);

      // Right after a KMS check, when the next one is furthest away.
      const [member] = fleet.members as [Observed];
      const provedMs = member.lastKmsCheckMs;
      await fleet.until(() => member.lastKmsCheckMs !== provedMs, WAIT_SECONDS);
      const stoppedMs = Date.now();
      await stop(keyId);
      const refusedMs = Date.now();
      // Refusals of requested checks in quick succession count as one.
      await fleet.until(() => member.health().lastError !== undefined, WAIT_SECONDS);
      for (let i = 0; i < 5; i++) await expect(member.refresh()).rejects.toMatchObject({ kind: 'disabled' });
      await fleet.until(() => fleet.opensNothing, WAIT_SECONDS);

      for (const { name, lastSealMs, sealRefusal } of fleet.members) {
        const lastSeal = secondsFrom(stoppedMs, lastSealMs);
        expect(lastSeal, name).toBeLessThanOrEqual(refused.lastSeal);
        // A single refusal stops no server.
        expect(secondsFrom(refusedMs, lastSealMs), name).toBeGreaterThan(REFUSALS_APART_SECONDS);
        expect(sealRefusal, name).toBe('key refused by the kms');
      }
      for (const { name, lastSealMs, lastOpenMs, openRefusal } of fleet.all) {
        expect(secondsFrom(stoppedMs, lastOpenMs), name).toBeLessThanOrEqual(refused.lastOpen);
        expect(secondsFrom(refusedMs, lastOpenMs), name).toBeGreaterThan(REFUSALS_APART_SECONDS);
        // Unsealing continues for clockSkew + refreshEvery = 4 s; a slow machine shows at least a second of it.
        expect(secondsFrom(lastSealMs, lastOpenMs), name).toBeGreaterThan(1);
        expect(openRefusal, name).toBe('unknown key');
      }
      for (const each of fleet.all) {
        expect(each.health(), each.name).toMatchObject({
          status: 'failing',
          ready: false,
          canSeal: false,
          canUnseal: false,
          sealingKey: undefined,
          lastError: { source: 'kms', kind: 'disabled' },
        });
        await expect(each.refresh(), each.name).rejects.toMatchObject({ kind: 'disabled' });
      }
      const { document } = (await ring.read()) ?? {};
      const client = emulatorClient(address);
      await expect(createAwsKmsCodec({ keyId, client, ring, policy })).rejects.toMatchObject({ kind: 'disabled' });
      client.destroy();

      await restore(keyId);
      await fleet.until(() => fleet.works, WAIT_SECONDS);
      expect(fleet.all.map((each) => each.health().keys)).toEqual(keys);
      expect((await ring.read())?.document).toBe(document);
    },
  );

  test('with an unreachable, resetting or silent KMS, sealing and unsealing stop within the outage limits, and all servers recover (F10)', async () => {
    const policy = shortOutagePolicy;
    const { unreachable, toleratedOutage } = kmsBounds(policy);
    const keyId = await createKey();
    const proxies = [await startProxy(), await startProxy()] as const;
    const [first, second] = proxies.map(({ port }) => `http://127.0.0.1:${port}`) as [string, string];
    const fleet = await startFleet({ keyId, policy, endpoints: [first, second, first] });
    const keys = fleet.all.map((each) => each.health().keys);

    const cutMs = Date.now();
    proxies[0].cut();
    proxies[1].hang();
    // Both at once: by the time the KMS answers again, it refuses.
    await admin.send(new DisableKeyCommand({ KeyId: keyId }));
    await fleet.until(() => fleet.opensNothing, WAIT_SECONDS);

    for (const each of fleet.all) {
      expect(secondsFrom(cutMs, each.lastKmsCheckMs), each.name).toBeLessThanOrEqual(policy.kmsTimeoutSeconds);
      expect(secondsFrom(each.lastKmsCheckMs, each.lastOpenMs), each.name).toBeLessThanOrEqual(unreachable.lastOpen);
      expect(secondsFrom(cutMs, each.lastOpenMs), each.name).toBeGreaterThan(unreachable.lastSeal);
      expect(each.health(), each.name).toMatchObject({
        status: 'failing',
        canSeal: false,
        canUnseal: false,
        lastError: { source: 'kms', kind: 'unavailable' },
      });
    }
    for (const { name, lastKmsCheckMs, lastSealMs, sealRefusal } of fleet.members) {
      expect(secondsFrom(lastKmsCheckMs, lastSealMs), name).toBeLessThanOrEqual(unreachable.lastSeal);
      expect(secondsFrom(cutMs, lastSealMs), name).toBeGreaterThan(toleratedOutage);
      expect(sealRefusal, name).toBe('KMS check too old');
    }

    for (const proxy of proxies) proxy.mend();
    await fleet.until(() => fleet.all.every((each) => each.health().lastError?.kind === 'disabled'), WAIT_SECONDS);
    expect(fleet.opensNothing).toBe(true);
    expect(fleet.members.map(({ sealRefusal }) => sealRefusal)).not.toContain(undefined);
    await admin.send(new EnableKeyCommand({ KeyId: keyId }));
    await fleet.until(() => fleet.works, WAIT_SECONDS);
    expect(fleet.all.map((each) => each.health().keys)).toEqual(keys);
  });
});
