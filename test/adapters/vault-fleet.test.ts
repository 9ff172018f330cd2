import { randomUUID } from 'node:crypto';
import { type CodecHealth, type KmsCodec, memoryRing, type RingStore } from '@sealring/core';
import { createVaultTransitCodec, type VaultRequest, type VaultTransitCodecOptions } from '@sealring/vault-transit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { callOpenBao, type OpenBao, startOpenBao } from '../support/openbao.ts';
import { startOrSkip } from '../support/servers.ts';

let started: OpenBao | undefined;
await startOrSkip(async () => {
  started = await startOpenBao();
  return started;
});
afterAll(() => started?.close());

const payload = new TextEncoder().encode('{"order":"A1"}');

/** Minutes are shortened to seconds. Every test is shorter than sealOutage, so only a refusal stops sealing. */
const shortPolicy = {
  clockSkewSeconds: 2,
  refreshEverySeconds: 2,
  backoffCapSeconds: 10,
  tokenLifetimeSeconds: 60,
  kmsCheckEverySeconds: 3,
  sealOutageSeconds: 120,
  storeOutageSeconds: 600,
  propagationSeconds: 126,
  rotateEverySeconds: 3_600,
};
/** Longest wait for an expected change. */
const WAIT = { interval: 100 };

type Role = 'member' | 'reader';
type Extra = Partial<VaultTransitCodecOptions>;

/** Its own ring and transit key, on a shared server. */
class World {
  readonly keyId: string;
  readonly ring: RingStore = memoryRing();
  readonly #server: OpenBao;
  readonly #open: KmsCodec[] = [];

  constructor(server: OpenBao) {
    this.#server = server;
    this.keyId = `payments-${randomUUID()}`;
  }

  /** A token with only the permissions of the role. */
  async createToken(role: Role): Promise<string> {
    const operations = role === 'member' ? ['encrypt', 'decrypt'] : ['decrypt'];
    const rights = operations.map((each) => `path "transit/${each}/${this.keyId}" { capabilities = ["update"] }`);
    const policy = `${role}-${randomUUID()}`;
    await callOpenBao(this.#server, 'PUT', `sys/policies/acl/${policy}`, { policy: rights.join('\n') });
    const options = { policies: [policy], no_default_policy: true };
    const made = await callOpenBao(this.#server, 'POST', 'auth/token/create', options);
    return String(Object(made).auth.client_token);
  }

  /** An instance with its own token, whose requests are counted. */
  async start(role: Role, extra: Extra = {}): Promise<{ codec: KmsCodec; counts: Record<string, number> }> {
    const counts: Record<string, number> = {};
    const client = {
      fetch(url: string, request: VaultRequest) {
        const operation = new URL(url).pathname.split('/').at(-2) ?? '';
        counts[operation] = (counts[operation] ?? 0) + 1;
        return fetch(url, request);
      },
    };
    const { keyId, ring } = this;
    const token = await this.createToken(role);
    const { address } = this.#server;
    const codec = await createVaultTransitCodec({ address, keyId, token, client, ring, role, ...extra });
    this.#open.push(codec);
    return { codec, counts };
  }

  /** Two members and a reader. */
  async startFleet(extra: Extra = {}): Promise<KmsCodec[]> {
    const fleet: KmsCodec[] = [];
    for (const role of ['member', 'member', 'reader'] as const) fleet.push((await this.start(role, extra)).codec);
    return fleet;
  }

  /** The exact versions of the transit key in the ring's wraps, sorted. */
  async wrapsInRing(): Promise<string[]> {
    const stored = await this.ring.read();
    const [line = ''] = stored?.document.split('\n') ?? [];
    const { keys }: { keys: { wraps: { keyId: string }[] }[] } = JSON.parse(line);
    return keys.flatMap(({ wraps }) => wraps.map(({ keyId }) => keyId)).toSorted();
  }

  async close(): Promise<void> {
    await Promise.all(this.#open.map((codec) => codec.close()));
  }
}

// Skipped only if this machine cannot run it; under CI=true the set-up fails instead.
describe.skipIf(started === undefined)('a fleet on a real OpenBao', () => {
  const server = started as OpenBao;
  const worlds: World[] = [];
  beforeAll(() => callOpenBao(server, 'POST', 'sys/mounts/transit', { type: 'transit' }));
  afterAll(() => Promise.all(worlds.map((world) => world.close())));

  async function newWorld(): Promise<World> {
    const world = new World(server);
    worlds.push(world);
    await callOpenBao(server, 'POST', `transit/keys/${world.keyId}`);
    return world;
  }

  test('10 000 seals and unseals make only the first wrap and its unwraps', async () => {
    const world = await newWorld();
    const [a, b, c] = [await world.start('member'), await world.start('member'), await world.start('reader')];
    for (let i = 0; i < 5_000; i++) {
      b.codec.unseal(a.codec.seal(payload));
      c.codec.unseal(b.codec.seal(payload));
    }
    expect([a.counts, b.counts, c.counts]).toEqual([{ encrypt: 1, decrypt: 1 }, { decrypt: 1 }, { decrypt: 1 }]);
  });

  test('a token is unsealed everywhere after two rotations of the ring and one of the transit key (F8, F11)', async () => {
    const world = await newWorld();
    const keyPath = `transit/keys/${world.keyId}`;
    const [a, b] = [(await world.start('member')).codec, (await world.start('member')).codec];
    const token = a.seal(payload);
    await a.rotate();
    await callOpenBao(server, 'POST', `${keyPath}/rotate`);
    await b.rotate({ emergency: true });
    const late = (await world.start('reader')).codec;
    await a.refresh();
    for (const instance of [a, b, late]) expect(instance.unseal(token)).toEqual(payload);
    expect(await world.wrapsInRing()).toEqual([`${keyPath}:v1`, `${keyPath}:v1`, `${keyPath}:v2`]);
  });

  test('a ring with another name under the same transit key unseals no token and cannot be read (F25)', async () => {
    const world = await newWorld();
    const { codec } = await world.start('member', { ringName: 'payments' });
    const other = await world.start('member', { ringName: 'refunds', ring: memoryRing() });
    expect(() => other.codec.unseal(codec.seal(payload))).toThrow('unknown key');
    await expect(world.start('reader', { ringName: 'refunds' })).rejects.toThrow('corrupt');
  });

  test.each([
    { what: 'sealed', stop: () => server.seal(), restore: () => server.unseal() },
    { what: 'stopped', stop: () => server.stop(), restore: () => server.start() },
  ])(
    'the fleet continues while OpenBao is $what, reports the outage, and recovers by itself (F7)',
    async ({ stop, restore }) => {
      const fleet = await (await newWorld()).startFleet({ policy: shortPolicy });
      const before = fleet[0]?.seal(payload) ?? '';
      await stop();
      try {
        await expect.poll(() => errorsOf(fleet), WAIT).toEqual(Array(3).fill('kms unavailable'));
        everybodyWorks(fleet, before);
        await expect(fleet[0]?.rotate()).rejects.toMatchObject({ kind: 'unavailable' });
        everybodyWorks(fleet, before);
      } finally {
        await restore();
      }
      await expect.poll(() => fleet.map(statusOf), WAIT).toEqual(['ok', 'ok', 'ok']);
      await fleet[0]?.rotate();
      everybodyWorks(fleet, before);
    },
  );

  // Concurrently: each waits for the second or third refusal that counts.
  describe.concurrent('refusals by OpenBao (F10)', () => {
    test('a soft-deleted transit key stops sealing everywhere, until it is restored', async () => {
      const world = await newWorld();
      const fleet = await world.startFleet({ policy: shortPolicy });
      const members = fleet.slice(0, 2);
      const before = members[0]?.seal(payload) ?? '';
      const path = `transit/keys/${world.keyId}`;
      await callOpenBao(server, 'DELETE', `${path}/soft-delete`);
      await expect.poll(() => members.map((codec) => codec.health().canSeal), WAIT).toEqual([false, false]);
      expect(() => members[0]?.seal(payload)).toThrow('key refused by the kms');
      expect(errorsOf(fleet)).toEqual(Array(3).fill('kms disabled'));
      await callOpenBao(server, 'POST', `${path}/soft-delete-restore`);
      await expect.poll(() => fleet.map(statusOf), WAIT).toEqual(['ok', 'ok', 'ok']);
      everybodyWorks(fleet, before);
    });

    test('a revoked token stops only its own instance', async () => {
      const world = await newWorld();
      const token = await world.createToken('member');
      const { codec: one } = await world.start('member', { policy: shortPolicy, token });
      const { codec: other } = await world.start('member', { policy: shortPolicy });
      await callOpenBao(server, 'POST', 'auth/token/revoke', { token });
      await expect.poll(() => one.health().canSeal, WAIT).toBe(false);
      expect(errorsOf([one, other])).toEqual(['kms denied', undefined]);
      expect(other.health()).toMatchObject({ status: 'ok', canSeal: true });
    });
  });
});

function errorsOf(fleet: readonly KmsCodec[]): (string | undefined)[] {
  return fleet.map((codec) => {
    const { lastError } = codec.health();
    return lastError && `${lastError.source} ${lastError.kind}`;
  });
}

function statusOf(codec: KmsCodec): CodecHealth['status'] {
  return codec.health().status;
}

/** The two members seal, and all three unseal these tokens and earlier ones. */
function everybodyWorks(fleet: readonly KmsCodec[], before: string): void {
  const tokens = [before, ...fleet.slice(0, 2).map((codec) => codec.seal(payload))];
  for (const codec of fleet) for (const token of tokens) expect(codec.unseal(token)).toEqual(payload);
}
