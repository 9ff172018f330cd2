import { type Clock, type KmsCodec, memoryRing, type RingStore } from '@sealring/core';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
// @boundaries-ignore code that the tests of all packages share is not a package
import { sdkClients } from '../../../test/support/azure-key-vault/clients.ts';
// @boundaries-ignore code that the tests of all packages share is not a package
import { FakeKeyVault, type VaultRight } from '../../../test/support/azure-key-vault/fake-key-vault.ts';
// @boundaries-ignore code that the tests of all packages share is not a package
import type { VaultKey } from '../../../test/support/azure-key-vault/vault-key.ts';
import { type AzureKeyVaultCodecOptions, createAzureKeyVaultCodec } from '../src/index.ts';

const MEMBER: readonly VaultRight[] = ['get', 'wrapKey', 'unwrapKey', 'sign'];
const READER: readonly VaultRight[] = ['get', 'unwrapKey'];
const payload = new TextEncoder().encode('{"order":"A1"}');

let vault: FakeKeyVault;
let rsa: VaultKey;
let signing: VaultKey;
let ring: RingStore;
const open: KmsCodec[] = [];

beforeEach(async () => {
  vault = await FakeKeyVault.start();
  rsa = vault.createKey('wrapping');
  signing = vault.createKey('signing', 'EC');
  ring = memoryRing();
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((codec) => codec.close()));
  await vault.stop();
});

async function start(token: string, extra: Partial<AzureKeyVaultCodecOptions> = {}): Promise<KmsCodec> {
  const codec = await createAzureKeyVaultCodec({
    keyId: vault.idOf(rsa),
    signKeyId: vault.idOf(signing, signing.current),
    clients: sdkClients(vault, token),
    ring,
    ringName: 'payments',
    ...extra,
  });
  open.push(codec);
  return codec;
}

/** The requests to the vault with one token. */
function requestsOf(token: string): string[] {
  return vault.requests
    .filter((request) => request.token === token)
    .map(({ operation, name }) => `${operation} ${name}`);
}

describe('a fleet on Azure Key Vault, through the real SDK', () => {
  test('10 000 seals and unseals add no requests to those of a start with least privilege', async () => {
    const [a, b, c] = [vault.issueToken(MEMBER), vault.issueToken(MEMBER), vault.issueToken(READER)];
    const first = await start(a);
    const second = await start(b);
    const reader = await start(c, { role: 'reader' });
    for (let i = 0; i < 5_000; i++) {
      expect(second.unseal(first.seal(payload))).toHaveLength(payload.length);
      expect(reader.unseal(second.seal(payload))).toHaveLength(payload.length);
    }
    expect(requestsOf(a)).toEqual([
      'get signing',
      'get wrapping',
      'wrapKey wrapping',
      'sign signing',
      'unwrapKey wrapping',
    ]);
    expect(requestsOf(b)).toEqual(['get signing', 'unwrapKey wrapping']);
    expect(requestsOf(c)).toEqual(['get signing', 'unwrapKey wrapping']);
    expect(vault.unauthenticatedBytes).toBe(0);
  });

  test('the key rotates at the vault; new data keys name the new version, and new servers unseal old tokens (F11, F34)', async () => {
    const first = await start(vault.issueToken(MEMBER));
    const second = await start(vault.issueToken(MEMBER));
    const token = first.seal(payload);
    const [old, newer] = [rsa.current.id, rsa.rotate().id];
    // A member caches the version for a while; the server that starts now knows the new one.
    const third = await start(vault.issueToken(MEMBER));
    await third.rotate();
    const document = (await ring.read())?.document ?? '';
    expect(document).toContain(`/keys/wrapping/${old}`);
    expect(document).toContain(`/keys/wrapping/${newer}`);
    await Promise.all([first.refresh(), second.refresh()]);
    const reader = await start(vault.issueToken(READER), { role: 'reader' });
    for (const codec of [first, second, third, reader]) {
      expect(codec.unseal(token)).toEqual(new Uint8Array(payload));
      expect(codec.health().keys).toHaveLength(2);
    }
  });

  test('a server that cannot unwrap at its start writes nothing and makes no key (F9)', async () => {
    await start(vault.issueToken(MEMBER));
    const before = await ring.read();
    for (const rights of [['get', 'wrapKey', 'sign'], []] as const) {
      await expect(start(vault.issueToken(rights))).rejects.toMatchObject({ kind: 'denied' });
    }
    expect(await ring.read()).toEqual(before);
  });
});

/** The clock runs a hundred times as fast: the ring's times are real, including the interval between refusals. */
const SPEED = 100;

const policy = {
  clockSkewSeconds: 300,
  refreshEverySeconds: 30,
  backoffCapSeconds: 30,
  kmsCheckEverySeconds: 30,
  sealOutageSeconds: 2_000,
  storeOutageSeconds: 4_000,
  rotateEverySeconds: 40_000,
  // Three seconds of real time.
  kmsTimeoutSeconds: 300,
};

function fastClock(): Clock {
  const startedMs = performance.now();
  const wallMs = Date.now();
  const passedMs = (): number => (performance.now() - startedMs) * SPEED;
  return {
    wallMs: () => wallMs + passedMs(),
    monotonicNs: () => BigInt(Math.round(passedMs() * 1e6)),
    schedule: (callback, delayMs) => {
      const timer = setTimeout(callback, delayMs / SPEED);
      timer.unref();
      return () => clearTimeout(timer);
    },
  };
}

const patient = { interval: 50 };

describe('the kill switch, on a clock that runs a hundred times as fast (F10)', () => {
  let members: KmsCodec[];
  let reader: KmsCodec;

  beforeEach(async () => {
    const clock = fastClock();
    vault.now = () => clock.wallMs();
    const extra = { clock, policy, create: 'now' } as const;
    members = [await start(vault.issueToken(MEMBER), extra), await start(vault.issueToken(MEMBER), extra)];
    reader = await start(vault.issueToken(READER), { ...extra, role: 'reader' });
  });

  test.each([
    ['the key is disabled', () => rsa.set({ enabled: false }), () => rsa.set({ enabled: true })],
    ['no server may use the key', () => vault.deny(), () => vault.heal()],
    ['the key is deleted', () => (rsa.state = 'deleted'), () => (rsa.state = 'present')],
  ])(
    'when %s, sealing and then unsealing stop on every server, and both resume once the change is undone',
    async (_, kill, undo) => {
      const token = members[0]?.seal(payload) ?? '';
      kill();
      await expect.poll(() => members.map((codec) => codec.health().canSeal), patient).toEqual([false, false]);
      for (const codec of members) expect(() => codec.seal(payload)).toThrow('key refused by the kms');
      const fleet = [...members, reader];
      await expect.poll(() => fleet.map((codec) => codec.health().canUnseal), patient).toEqual([false, false, false]);
      for (const codec of fleet) expect(() => codec.unseal(token)).toThrow('unknown key');
      undo();
      await expect.poll(() => members.map((codec) => codec.health().canSeal), patient).toEqual([true, true]);
      await expect.poll(() => fleet.map((codec) => codec.health().canUnseal), patient).toEqual([true, true, true]);
      for (const codec of fleet) expect(codec.unseal(token)).toEqual(new Uint8Array(payload));
    },
  );

  test('a disabled signing key does not stop a server, because signatures are checked without the vault', async () => {
    signing.set({ enabled: false });
    const token = members[0]?.seal(payload) ?? '';
    await expect(members[0]?.rotate()).rejects.toMatchObject({ kind: 'disabled', summary: { operation: 'sign' } });
    await Promise.all([...members, reader].map((codec) => codec.refresh()));
    for (const codec of [...members, reader]) expect(codec.unseal(token)).toEqual(new Uint8Array(payload));
  });
});
