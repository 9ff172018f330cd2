import { randomUUID } from 'node:crypto';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { setTimeout as pause } from 'node:timers/promises';
import { createAzureKeyVaultCodec } from '@sealring/azure-key-vault';
import { type KmsCodec, type KmsCodecOptions, memoryRing, type RingStore } from '@sealring/core';
import { createGcpKmsCodec } from '@sealring/gcp-kms';
import { createVaultTransitCodec } from '@sealring/vault-transit';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { sdkClients } from '../support/azure-key-vault/clients.ts';
import { FakeKeyVault } from '../support/azure-key-vault/fake-key-vault.ts';
import { realClient, startGcpKms } from '../support/gcp-kms/index.ts';
import { callOpenBao, startOpenBao } from '../support/openbao.ts';
import { startOrSkip } from '../support/servers.ts';

const payload = new TextEncoder().encode('{"order":"A1"}');

/** Hours are shortened to seconds, and no key expires. */
const policy = {
  clockSkewSeconds: 1,
  refreshEverySeconds: 0.5,
  backoffCapSeconds: 1,
  kmsCheckEverySeconds: 0.5,
  sealOutageSeconds: 30,
  storeOutageSeconds: 60,
  propagationSeconds: 32,
  rotateEverySeconds: 3_600,
  keyVersionEverySeconds: 2,
};
/** Several checks by every member, plus the wait before a rotation that a check may cause. */
const LOOKS_MS = 5_000;
const WAIT = { interval: 50 };

type Options = Pick<KmsCodecOptions, 'ring' | 'policy' | 'create'>;

/** A KMS key that can get a new version. */
interface KmsKey {
  /** The version that a wrap names now. */
  readonly current: () => string;
  readonly rotate: () => Promise<void> | void;
  /** A member with its own client. */
  readonly start: (options: Options) => Promise<KmsCodec>;
  readonly end: () => Promise<void>;
}

/** Creates a key on the emulator of each service; undefined if this machine cannot run it. */
const PROVIDERS: Readonly<Record<string, () => Promise<KmsKey | undefined>>> = {
  async 'gcp-kms'() {
    const server = await startGcpKms();
    const keyId = server.kms.createKey();
    const closing: (() => Promise<void>)[] = [];
    let current = `${keyId}/cryptoKeyVersions/1`;
    return {
      current: () => current,
      rotate() {
        current = server.kms.rotate(keyId);
      },
      async start(options) {
        const client = realClient(server);
        closing.push(() => client.close());
        return createGcpKmsCodec({ keyId, client, ...options });
      },
      async end() {
        for (const close of closing) await close();
        await server.stop();
      },
    };
  },
  async 'azure-key-vault'() {
    const vault = await FakeKeyVault.start();
    const [rsa, signing] = [vault.createKey('wrapping'), vault.createKey('signing', 'EC')];
    return {
      current: () => vault.idOf(rsa, rsa.current),
      rotate: () => void rsa.rotate(),
      start: (options) =>
        createAzureKeyVaultCodec({
          keyId: vault.idOf(rsa),
          signKeyId: vault.idOf(signing, signing.current),
          clients: sdkClients(vault, vault.issueToken(['get', 'wrapKey', 'unwrapKey', 'sign'])),
          ...options,
        }),
      end: () => vault.stop(),
    };
  },
  async 'vault-transit'() {
    let started: Awaited<ReturnType<typeof startOpenBao>> | undefined;
    await startOrSkip(async () => {
      started = await startOpenBao();
      return started;
    });
    if (started === undefined) return undefined;
    const server = started;
    const keyId = `payments-${randomUUID()}`;
    await callOpenBao(server, 'POST', 'sys/mounts/transit', { type: 'transit' });
    await callOpenBao(server, 'POST', `transit/keys/${keyId}`);
    let version = 1;
    return {
      current: () => `transit/keys/${keyId}:v${version}`,
      async rotate() {
        await callOpenBao(server, 'POST', `transit/keys/${keyId}/rotate`);
        version += 1;
      },
      start: (options) => createVaultTransitCodec({ address: server.address, keyId, token: server.token, ...options }),
      end: () => server.close(),
    };
  },
};

/** The version in the wrap of every key of a ring, oldest key first. */
async function versionsIn(ring: RingStore): Promise<string[]> {
  const { document = '' } = (await ring.read()) ?? {};
  const { keys } = JSON.parse(document) as { keys: { created: string; wraps: { keyId: string }[] }[] };
  const byAge = keys.toSorted((a, b) => (a.created < b.created ? -1 : 1));
  return byAge.flatMap(({ wraps }) => wraps.map(({ keyId }) => keyId));
}

describe.each(Object.entries(PROVIDERS))('a new version of a KMS key of %s', (provider, makeKey) => {
  const members: KmsCodec[] = [];
  const noticed: unknown[] = [];
  const reasons: unknown[] = [];
  const notice = (event: unknown): void => void noticed.push(event);
  const rotated = (event: unknown): void => void reasons.push(Reflect.get(Object(event), 'reason'));
  let key: KmsKey | undefined;

  beforeEach(async () => {
    key = await makeKey();
    subscribe('sealring:key-version', notice);
    subscribe('sealring:rotation', rotated);
  });
  afterEach(async () => {
    unsubscribe('sealring:key-version', notice);
    unsubscribe('sealring:rotation', rotated);
    noticed.length = 0;
    reasons.length = 0;
    await Promise.all(members.splice(0).map((codec) => codec.close()));
    await key?.end();
  });

  test('a running member notices the new version and rotates once', async ({ skip }) => {
    if (key === undefined) return skip('its server cannot run here');
    const ring = memoryRing();
    const { start, rotate, current } = key;
    // A member that has wrapped caches Azure's current version for minutes; the second member has not wrapped.
    for (let i = 0; i < 2; i++) members.push(await start({ ring, policy, create: 'now' }));
    const [founder, other] = members as [KmsCodec, KmsCodec];
    const token = founder.seal(payload);
    const old = current();
    await rotate();
    expect(current()).not.toBe(old);

    await expect.poll(() => versionsIn(ring), WAIT).toEqual([old, current()]);
    expect(noticed).not.toEqual([]);
    for (const event of noticed) expect(event).toEqual({ ringName: 'default', provider, version: current() });
    expect(reasons).toEqual(['initial', 'key-version']);
    // No member asks for the version that the ring already has. One that has not yet read the ring may still do so.
    await Promise.all([founder.refresh(), other.refresh()]);
    const told = noticed.length;
    await pause(LOOKS_MS);
    expect(noticed).toHaveLength(told);
    expect(await versionsIn(ring)).toEqual([old, current()]);

    await Promise.all([founder.refresh(), other.refresh()]);
    for (const codec of members) {
      expect(codec.unseal(token)).toEqual(new Uint8Array(payload));
      expect(codec.health()).toMatchObject({ status: 'ok', problems: [] });
      expect(codec.health().keys.map(({ state }) => state)).toEqual(['active', 'propagating']);
    }
  });

  test('no member notices a new version if the policy turns the check off', async ({ skip }) => {
    if (key === undefined) return skip('its server cannot run here');
    const ring = memoryRing();
    members.push(await key.start({ ring, policy: { ...policy, keyVersionEverySeconds: 0 } }));
    const old = key.current();
    await key.rotate();
    await pause(LOOKS_MS);
    expect(noticed).toEqual([]);
    expect(await versionsIn(ring)).toEqual([old]);
  });
});
