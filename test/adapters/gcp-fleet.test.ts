import { type KmsCodec, memoryRing, type RingStore, SealUnavailableError, staticRing } from '@sealring/core';
import { createGcpKmsCodec, type GcpKmsClient, type GcpKmsCodecOptions } from '@sealring/gcp-kms';
import { afterAll, describe, expect, test } from 'vitest';
import { kmsBounds } from '../fleet/kms-bounds.ts';
import { clientOf, type RunningGcpKms, realClient, Status, startGcpKms } from '../support/gcp-kms/index.ts';
import { until } from '../support/until.ts';

const payload = new TextEncoder().encode('{"order":"A1"}');
const TO_ENCRYPT = 'cloudkms.cryptoKeyVersions.useToEncrypt';
const TO_DECRYPT = 'cloudkms.cryptoKeyVersions.useToDecrypt';

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
  kmsTimeoutSeconds: 2,
  startTimeoutSeconds: 60,
  keyVersionEverySeconds: 3_600,
  missRefreshSeconds: 10,
};
/** Longest wait for an expected change; the test checks the time afterwards. */
const WAIT_SECONDS = 60;

type Role = 'member' | 'reader';
type Extra = Partial<GcpKmsCodecOptions>;

/** A fake Cloud KMS and a ring; every instance has its own client of the vendor, and a name. */
class World {
  readonly server: RunningGcpKms;
  readonly keyId: string;
  readonly ring: RingStore = memoryRing();
  readonly #closing: (() => Promise<void>)[] = [];

  constructor(server: RunningGcpKms) {
    this.server = server;
    this.keyId = server.kms.createKey();
  }

  static async start(): Promise<World> {
    return new World(await startGcpKms());
  }

  /** A client of the vendor whose requests name the caller. */
  client(caller: string): GcpKmsClient {
    const client = realClient(this.server);
    this.#closing.push(() => client.close());
    return clientOf(caller, client);
  }

  async codec(caller: string, role: Role, extra: Extra = {}): Promise<KmsCodec> {
    const { keyId, ring } = this;
    const codec = await createGcpKmsCodec({ keyId, ring, role, client: this.client(caller), ...extra });
    this.#closing.push(() => codec.close());
    return codec;
  }

  /** Two members and a reader. */
  async fleet(extra: Extra = {}): Promise<[KmsCodec, KmsCodec, KmsCodec]> {
    return [
      await this.codec('a', 'member', extra),
      await this.codec('b', 'member', extra),
      await this.codec('reader', 'reader', extra),
    ];
  }

  /** Requests so far, by caller: `{ a: ['encrypt', 'decrypt'] }`. */
  get calls(): Record<string, string[]> {
    const calls: Record<string, string[]> = {};
    for (const { caller, method } of this.server.kms.requests) (calls[caller] ??= []).push(method);
    return calls;
  }

  /** The key versions in the ring's wraps, sorted. */
  async versionsInRing(): Promise<string[]> {
    const { document = '' } = (await this.ring.read()) ?? {};
    return [...document.matchAll(/cryptoKeyVersions\/(\d+)/g)].map(([, version = '']) => version).toSorted();
  }

  async close(): Promise<void> {
    this.server.kms.heal();
    for (const close of this.#closing.toReversed()) await close();
    await this.server.stop();
  }
}

const worlds: World[] = [];
async function newWorld(): Promise<World> {
  const world = await World.start();
  worlds.push(world);
  return world;
}
afterAll(() => Promise.all(worlds.map((world) => world.close())));

function refusalOfSeal(codec: KmsCodec): string | undefined {
  try {
    codec.seal(payload);
    return undefined;
  } catch (error) {
    if (!(error instanceof SealUnavailableError)) throw error;
    return error.reason;
  }
}

function opens(codec: KmsCodec, token: string): boolean {
  try {
    return Buffer.from(codec.unseal(token)).equals(payload);
  } catch {
    return false;
  }
}

describe('a fleet on Google Cloud KMS, through the vendor’s own client', () => {
  test('10 000 seals and unseals make only the first wrap and its unwraps', async () => {
    const world = await newWorld();
    const [a, b, reader] = await world.fleet();
    for (let i = 0; i < 5_000; i++) {
      b.unseal(a.seal(payload));
      reader.unseal(b.seal(payload));
    }
    // The creator's wrap and its check, and one unwrap by each later member.
    expect(world.calls).toEqual({ a: ['encrypt', 'decrypt'], b: ['decrypt'], reader: ['decrypt'] });
  });

  test('a token is unsealed everywhere after two rotations of the ring and one of the KMS key (F8, F11)', async () => {
    const world = await newWorld();
    const [a, b, reader] = await world.fleet();
    const token = a.seal(payload);
    await a.rotate();
    world.server.kms.rotate(world.keyId);
    await b.rotate({ emergency: true });
    expect(await world.versionsInRing()).toEqual(['1', '1', '2']);
    const late = await world.codec('late', 'member');
    for (const codec of [a, b, reader]) await codec.refresh();
    for (const codec of [a, b, reader, late]) expect(opens(codec, token)).toBe(true);
    expect(late.health().keys.map(({ state }) => state)).toEqual(['active', 'propagating', 'propagating']);
  });

  test('a token of a ring with another name is never unsealed, even with the same KMS key (F25)', async () => {
    const world = await newWorld();
    const payments = await world.codec('a', 'member', { ringName: 'payments' });
    const refunds = await world.codec('b', 'member', { ringName: 'refunds', ring: memoryRing() });
    expect(() => refunds.unseal(payments.seal(payload))).toThrow('unknown key');
  });

  test('a ring with one name is not read under another, even with the same KMS key (F25, F15)', async () => {
    const world = await newWorld();
    await world.codec('a', 'member', { ringName: 'payments' });
    const start = world.codec('b', 'member', { ringName: 'refunds', policy: { startTimeoutSeconds: 1 } });
    await expect(start).rejects.toMatchObject({ kind: 'corrupt' });
  });

  test('a wrap relabelled with another key version is rejected, though Cloud KMS would decrypt it (F26)', async () => {
    const world = await newWorld();
    await world.codec('a', 'member');
    const { document = '' } = (await world.ring.read()) ?? {};
    const unchanged = await world.codec('b', 'reader', { ring: staticRing(document) });
    expect(unchanged.health().canUnseal).toBe(true);
    const changed = document.replaceAll('/cryptoKeyVersions/1"', '/cryptoKeyVersions/2"');
    expect(changed).not.toBe(document);
    const policy = { startTimeoutSeconds: 1 };
    const start = world.codec('c', 'reader', { ring: staticRing(changed), policy });
    await expect(start).rejects.toMatchObject({ kind: 'corrupt' });
  });

  test('a fleet moves to another KMS key with alsoUnwrap, without losing a token', async () => {
    const world = await newWorld();
    const { kms } = world.server;
    const old = await world.codec('old', 'member');
    const token = old.seal(payload);
    const keyId = kms.createKey('successor');
    const moved = await world.codec('moved', 'member', { keyId, alsoUnwrap: [world.keyId] });
    expect(opens(moved, token)).toBe(true);
    await moved.rotate({ emergency: true });
    const { document = '' } = (await world.ring.read()) ?? {};
    expect(document).toContain(`${keyId}/cryptoKeyVersions/1`);
    expect(opens(await world.codec('late', 'reader', { keyId, alsoUnwrap: [world.keyId] }), token)).toBe(true);
  });

  test('a rotation while Cloud KMS is down changes nothing, and no token fails (F7)', async () => {
    const world = await newWorld();
    const [a, b] = await world.fleet();
    const before = await world.ring.read();
    world.server.kms.failAlways({ code: Status.UNAVAILABLE, details: 'down' });
    await expect(a.rotate()).rejects.toMatchObject({ kind: 'unavailable' });
    expect(await world.ring.read()).toEqual(before);
    expect(opens(b, a.seal(payload))).toBe(true);
    world.server.kms.heal();
    await a.rotate();
    expect(await world.versionsInRing()).toEqual(['1', '1']);
  });

  test('a start while Cloud KMS fails writes nothing (F9)', async () => {
    const world = await newWorld();
    await world.codec('a', 'member');
    const before = await world.ring.read();
    world.server.kms.failAlways({ code: Status.UNAVAILABLE, details: 'down' });
    const start = world.codec('b', 'member', { policy: { startTimeoutSeconds: 1 } });
    await expect(start).rejects.toMatchObject({ kind: 'unavailable' });
    expect(await world.ring.read()).toEqual(before);
  });
});

describe('least privilege', () => {
  /** Starts an instance with only these permissions, and lets it do the work of its role. */
  async function work(world: World, role: Role, rights: readonly string[]): Promise<KmsCodec> {
    const caller = `${role} with ${rights.length === 0 ? 'nothing' : rights.join()}`;
    world.server.kms.grant(caller, rights);
    const codec = await world.codec(caller, role, { policy: { startTimeoutSeconds: 1 } });
    // A rotator needs no more permissions than a member.
    if (role === 'member') await codec.rotate();
    return codec;
  }

  test.each([
    ['a member', 'member', [TO_ENCRYPT, TO_DECRYPT]],
    ['a reader', 'reader', [TO_DECRYPT]],
  ] as const)('%s works with its permissions, and is denied if it lacks any one of them', async (_, role, rights) => {
    const world = await newWorld();
    world.server.kms.grant('founder', [TO_ENCRYPT, TO_DECRYPT]);
    const founder = await world.codec('founder', 'member');
    expect(opens(await work(world, role, rights), founder.seal(payload))).toBe(true);
    for (const right of rights) {
      const less = rights.filter((each) => each !== right);
      await expect(work(world, role, less)).rejects.toMatchObject({ kind: 'denied' });
    }
  });
});

// These run concurrently, because each waits for half a minute.
describe.concurrent('a key that a fleet may no longer use (F10)', () => {
  test.each<[string, string, (world: World) => void, (world: World) => void]>([
    [
      'disabled',
      'disabled',
      ({ server, keyId }) => server.kms.disable(keyId),
      ({ server, keyId }) => server.kms.enable(keyId),
    ],
    ['denied', 'denied', ({ server }) => server.kms.deny(), ({ server }) => server.kms.heal()],
  ])(
    '%s: sealing and then unsealing stop within their bounds, and both resume when the key is allowed again',
    async (_, kind, stop, allow) => {
      const world = await newWorld();
      const policy = shortPolicy;
      const { refused } = kmsBounds(policy);
      const fleet = await world.fleet({ policy });
      const [a, b] = fleet;
      const token = a.seal(payload);
      const keys = fleet.map((codec) => codec.health().keys);

      const stoppedMs = Date.now();
      stop(world);
      let lastSealMs = stoppedMs;
      let lastOpenMs = stoppedMs;
      await until(() => {
        if ([a, b].some((codec) => refusalOfSeal(codec) === undefined)) lastSealMs = Date.now();
        const opened = fleet.some((codec) => opens(codec, token));
        if (opened) lastOpenMs = Date.now();
        return !opened;
      }, WAIT_SECONDS);
      // A third denial must count before sealing stops: 10 s more.
      const more = kind === 'disabled' ? 0 : 10;
      expect((lastSealMs - stoppedMs) / 1_000).toBeLessThanOrEqual(refused.lastSeal + more);
      expect((lastOpenMs - stoppedMs) / 1_000).toBeLessThanOrEqual(refused.lastOpen + more);
      // A single refusal stops no server.
      expect((lastSealMs - stoppedMs) / 1_000).toBeGreaterThan(8);
      for (const codec of [a, b]) expect(refusalOfSeal(codec)).toBe('key refused by the kms');
      for (const codec of fleet) {
        expect(codec.health()).toMatchObject({
          status: 'failing',
          ready: false,
          canSeal: false,
          canUnseal: false,
          lastError: { source: 'kms', kind },
        });
      }

      allow(world);
      await until(() => [a, b].every((codec) => refusalOfSeal(codec) === undefined), WAIT_SECONDS);
      await until(() => fleet.every((codec) => opens(codec, token)), WAIT_SECONDS);
      expect(fleet.map((codec) => codec.health().keys)).toEqual(keys);
    },
  );
});
