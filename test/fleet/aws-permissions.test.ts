import { readFileSync } from 'node:fs';
import { CreateKeyCommand, KMSClient } from '@aws-sdk/client-kms';
import { awsKmsKeyWrapper } from '@sealring/aws-kms';
import { createKmsCodec, type KeyWrapper, type KmsCodecOptions, memoryRing, type RingStore } from '@sealring/core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Credentials, createUser, enforcePolicies, startMoto } from '../support/moto.ts';
import { startOrSkip } from '../support/servers.ts';

// A separate moto server, because the whole server enforces the policies.
const moto = await startOrSkip(startMoto);
const address = moto?.address ?? '';
const clients: KMSClient[] = [];
afterAll(async () => {
  for (const client of clients) client.destroy();
  await moto?.stop();
});

function newClient({ accessKeyId, secretAccessKey }: Credentials): KMSClient {
  const credentials = { accessKeyId, secretAccessKey };
  const client = new KMSClient({ endpoint: address, region: 'us-east-1', maxAttempts: 1, credentials });
  clients.push(client);
  return client;
}

/** Starts a codec, and closes it after `use`. */
async function withCodec(
  options: KmsCodecOptions,
  use: (codec: Awaited<ReturnType<typeof createKmsCodec>>) => Promise<void> | void,
): Promise<void> {
  // A denial is immediate; do not wait for any other failure.
  await using codec = await createKmsCodec({ ...options, policy: { startTimeoutSeconds: 5 } });
  await use(codec);
}

const payload = new TextEncoder().encode('state');

const readme = readFileSync(new URL('../../packages/aws-kms/README.md', import.meta.url), 'utf8');

/** The permissions that "Least privilege" in the README grants to a role. */
function permissionsOf(role: string): readonly string[] {
  const row = new RegExp(`^\\| ${role} \\|(.*)$`, 'm').exec(readme)?.[1];
  return row?.match(/kms:\w+/g) ?? [];
}

/** A role of the README, and all the work that it does with its permissions. */
interface Role {
  readonly name: string;
  readonly work: (own: KeyWrapper, given: { readonly ring: RingStore; readonly token: string }) => Promise<void>;
}

/** A fleet's policies name one KMS key and one ring; moto supports only the resource `*`, and ignores conditions. */
const ROLES: readonly Role[] = [
  {
    name: 'member',
    async work(keyWrapper, { ring, token }) {
      await withCodec({ keyWrapper, ring }, async (codec) => {
        expect(codec.unseal(token)).toEqual(payload);
        expect(codec.unseal(codec.seal(payload))).toEqual(payload);
        // The rotation that the member would start by itself once it is due.
        await codec.rotate();
      });
      await withCodec({ keyWrapper, ring: memoryRing() }, (founder) => void founder.seal(payload));
    },
  },
  {
    name: 'reader',
    async work(keyWrapper, { ring, token }) {
      await withCodec({ keyWrapper, ring, role: 'reader' }, (codec) => {
        expect(codec.unseal(token)).toEqual(payload);
      });
    },
  },
  {
    name: 'rotator',
    async work(keyWrapper, { ring }) {
      await withCodec({ keyWrapper, ring, create: 'never' }, async (codec) => {
        await codec.rotate({ emergency: true });
        await codec.revokeAllBefore(new Date(Date.now() + 1_000));
        expect(codec.health().status).toBe('ok');
      });
    },
  },
  {
    name: 'second key wrapper',
    async work(keyWrapper) {
      const ring = memoryRing();
      await withCodec({ keyWrapper: [firstWrapper, keyWrapper], ring }, async (codec) => {
        await codec.rotate();
        const token = codec.seal(payload);
        await withCodec({ keyWrapper, ring, role: 'reader' }, (reader) => {
          expect(reader.unseal(token)).toEqual(payload);
        });
      });
    },
  },
];

const CASES = ROLES.map((role) => ({ ...role, permissions: permissionsOf(role.name) }));
const LACKING = CASES.flatMap(({ permissions, ...role }) =>
  permissions.map((permission) => ({ ...role, permissions, permission })),
);

let keyId: string;
let firstWrapper: KeyWrapper;
/** A wrapper for every set of permissions, by {@link setOf}: users cannot be created once the policies are enforced. */
const wrappers = new Map<string, KeyWrapper>();

function setOf(permissions: readonly string[]): string {
  return permissions.toSorted().join(' ');
}

function wrapperWith(permissions: readonly string[]): KeyWrapper {
  const wrapper = wrappers.get(setOf(permissions));
  if (wrapper === undefined) throw new Error(`no user has ${setOf(permissions)}`);
  return wrapper;
}

describe.skipIf(moto === undefined)('KMS with IAM policies', () => {
  beforeAll(async () => {
    const admin = newClient({ accessKeyId: 'test', secretAccessKey: 'test' });
    const newKey = async (): Promise<string> => (await admin.send(new CreateKeyCommand({}))).KeyMetadata?.Arn ?? '';
    const newWrapper = async (key: string, name: string, permissions: readonly string[]): Promise<KeyWrapper> =>
      awsKmsKeyWrapper({ keyId: key, client: newClient(await createUser(address, name, permissions)), maxAttempts: 1 });
    keyId = await newKey();
    firstWrapper = await newWrapper(await newKey(), 'first', permissionsOf('member'));
    const sets = [
      ...CASES.map(({ permissions }) => permissions),
      ...LACKING.map(({ permissions, permission }) => permissions.filter((each) => each !== permission)),
    ];
    for (const permissions of sets) {
      if (wrappers.has(setOf(permissions))) continue;
      wrappers.set(setOf(permissions), await newWrapper(keyId, `user-${wrappers.size}`, permissions));
    }
    await enforcePolicies(address);
  });

  /** A ring that a member created, with a token sealed by that member. */
  async function foundRing(): Promise<{ ring: RingStore; token: string }> {
    const ring = memoryRing();
    let token = '';
    const keyWrapper = wrapperWith(permissionsOf('member'));
    await withCodec({ keyWrapper, ring }, (codec) => {
      token = codec.seal(payload);
    });
    return { ring, token };
  }

  test.each(CASES)('a $name does all its work with $permissions', async ({ permissions, work }) => {
    await expect(work(wrapperWith(permissions), await foundRing())).resolves.toBeUndefined();
  });

  test.each(LACKING)(
    'a $name without $permission is denied, and writes nothing (F9)',
    async ({ permissions, permission, work }) => {
      const given = await foundRing();
      const before = await given.ring.read();
      const keyWrapper = wrapperWith(permissions.filter((each) => each !== permission));
      await expect(work(keyWrapper, given)).rejects.toMatchObject({ name: 'KeyWrapperError', kind: 'denied' });
      expect(await given.ring.read()).toEqual(before);
    },
  );

  test('a member without kms:GenerateDataKey works with the existing ring, even after rotate() is denied', async () => {
    const { ring, token } = await foundRing();
    await withCodec({ keyWrapper: wrapperWith(['kms:Decrypt']), ring }, async (codec) => {
      await expect(codec.rotate()).rejects.toMatchObject({ kind: 'denied' });
      // The denial does not count: only a refused unwrap shows that the key may no longer be used.
      expect(codec.health().status).toBe('ok');
      expect(codec.unseal(token)).toEqual(payload);
      expect(codec.unseal(codec.seal(payload))).toEqual(payload);
    });
  });

  test('a reader cannot make a data key, and a server with only Encrypt unseals nothing', async () => {
    const context = { 'sealring:ring': 'default' };
    const reader = wrapperWith(permissionsOf('reader'));
    const denied = { kind: 'denied' };
    await expect(reader.generate?.({ context })).rejects.toMatchObject(denied);
    const dataKey = Uint8Array.from({ length: 32 }, (_, i) => i);
    await expect(reader.wrap(dataKey, { context })).rejects.toMatchObject(denied);
    const writer = wrapperWith(['kms:Encrypt']);
    const wrapped = await writer.wrap(dataKey, { context });
    await expect(writer.unwrap(wrapped, { context })).rejects.toMatchObject(denied);
    expect(await reader.unwrap(wrapped, { context })).toEqual(dataKey);
  });
});
