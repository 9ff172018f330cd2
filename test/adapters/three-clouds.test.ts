import { setTimeout as pause } from 'node:timers/promises';
import { CreateKeyCommand, KMSClient } from '@aws-sdk/client-kms';
import { awsKmsKeyWrapper } from '@sealring/aws-kms';
import { azureKeyVaultKeyWrapper, fetchAzureSignPublicKeys } from '@sealring/azure-key-vault';
import {
  createKmsCodec,
  type KeyWrapper,
  KeyWrapperError,
  type KmsCodec,
  type KmsCodecOptions,
  memoryRing,
  type RingStore,
} from '@sealring/core';
import { gcpKmsKeyWrapper } from '@sealring/gcp-kms';
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest';
import { sdkClients } from '../support/azure-key-vault/clients.ts';
import { FakeKeyVault } from '../support/azure-key-vault/fake-key-vault.ts';
import { type RunningGcpKms, realClient, startGcpKms } from '../support/gcp-kms/index.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';

const payload = new TextEncoder().encode('{"order":"A1"}');
const CLOUDS = ['aws', 'gcp', 'azure'] as const;
type Cloud = (typeof CLOUDS)[number];
type Failure = 'cut' | 'hang';
type PublicKeys = Awaited<ReturnType<typeof fetchAzureSignPublicKeys>>;

/** Minutes become seconds; sealing stops 6 s after the last KMS check by any cloud. */
const policy = {
  clockSkewSeconds: 1,
  refreshEverySeconds: 1,
  backoffCapSeconds: 1,
  tokenLifetimeSeconds: 60,
  kmsCheckEverySeconds: 1,
  sealOutageSeconds: 6,
  storeOutageSeconds: 600,
  propagationSeconds: 9,
  rotateEverySeconds: 3_600,
  kmsTimeoutSeconds: 1,
  startTimeoutSeconds: 10,
};

/** One key in each of three clouds; each cloud can be made unreachable. */
class ThreeClouds {
  readonly ring: RingStore = memoryRing();
  readonly #gcp: RunningGcpKms;
  readonly #vault: FakeKeyVault;
  readonly #aws: TcpProxy;
  readonly #gcpProxy: TcpProxy;
  readonly #closing: (() => void | Promise<void>)[] = [];
  #keys: { readonly aws: string; readonly gcp: string; readonly azure: string; readonly azureSign: string } | undefined;

  private constructor(gcp: RunningGcpKms, vault: FakeKeyVault, aws: TcpProxy, gcpProxy: TcpProxy) {
    this.#gcp = gcp;
    this.#vault = vault;
    this.#aws = aws;
    this.#gcpProxy = gcpProxy;
  }

  static async start(): Promise<ThreeClouds> {
    const gcp = await startGcpKms();
    const aws = await startTcpProxy(Number(new URL(inject('moto')).port));
    const clouds = new ThreeClouds(gcp, await FakeKeyVault.start(), aws, await startTcpProxy(gcp.port));
    const { KeyMetadata } = await clouds.#awsClient().send(new CreateKeyCommand({}));
    const signing = clouds.#vault.createKey('signing', 'EC');
    clouds.#keys = {
      aws: KeyMetadata?.Arn ?? '',
      gcp: gcp.kms.createKey(),
      azure: clouds.#vault.idOf(clouds.#vault.createKey('wrapping')),
      azureSign: clouds.#vault.idOf(signing, signing.current),
    };
    return clouds;
  }

  /** A key wrapper for each cloud, in this order. The public key of Azure's signing key is pinned at deployment. */
  async wrappers(): Promise<KeyWrapper[]> {
    const keys = this.#keys;
    if (keys === undefined) throw new Error('the clouds have no keys yet');
    const client = realClient(this.#gcpProxy);
    this.#closing.push(() => client.close());
    const access = { clients: sdkClients(this.#vault, this.#vault.issueToken()) };
    const signPublicKeys = await this.#publicKeys(keys.azureSign);
    return [
      awsKmsKeyWrapper({ keyId: keys.aws, client: this.#awsClient(), maxAttempts: 1 }),
      gcpKmsKeyWrapper({ keyId: keys.gcp, client, maxAttempts: 1 }),
      azureKeyVaultKeyWrapper({
        keyId: keys.azure,
        signKeyId: keys.azureSign,
        signPublicKeys,
        maxAttempts: 1,
        ...access,
      }),
    ];
  }

  #pinned: PublicKeys | undefined;

  async #publicKeys(signKeyId: string): Promise<PublicKeys> {
    const clients = sdkClients(this.#vault, this.#vault.issueToken());
    this.#pinned ??= await fetchAzureSignPublicKeys({ signKeyIds: [signKeyId], clients });
    return this.#pinned;
  }

  async codec(options: Partial<KmsCodecOptions> = {}): Promise<KmsCodec> {
    const keyWrapper = await this.wrappers();
    const codec = await createKmsCodec({ keyWrapper, ring: this.ring, ringName: 'payments', policy, ...options });
    this.#closing.push(() => codec.close());
    return codec;
  }

  fail(cloud: Cloud, how: Failure): void {
    if (cloud !== 'azure') this.#proxyOf(cloud)[how]();
    else if (how === 'cut') this.#vault.reset();
    else this.#vault.hang();
  }

  mend(cloud: Cloud): void {
    if (cloud === 'azure') this.#vault.heal();
    else this.#proxyOf(cloud).mend();
  }

  /** Wraps of each key in the ring, by provider. */
  async wrapsInRing(): Promise<string[][]> {
    const { document = '' } = (await this.ring.read()) ?? {};
    const { keys }: { keys: { wraps: { provider: string }[] }[] } = JSON.parse(document);
    return keys.map(({ wraps }) => wraps.map(({ provider }) => provider).toSorted());
  }

  async close(): Promise<void> {
    for (const cloud of CLOUDS) this.mend(cloud);
    for (const close of this.#closing.toReversed()) await close();
    await Promise.all([this.#gcp.stop(), this.#vault.stop(), this.#aws.close(), this.#gcpProxy.close()]);
  }

  #proxyOf(cloud: 'aws' | 'gcp'): TcpProxy {
    return cloud === 'aws' ? this.#aws : this.#gcpProxy;
  }

  #awsClient(): KMSClient {
    const client = new KMSClient({
      endpoint: `http://127.0.0.1:${this.#aws.port}`,
      region: 'us-east-1',
      maxAttempts: 1,
      credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
    });
    this.#closing.push(() => client.destroy());
    return client;
  }
}

let clouds: ThreeClouds;

beforeEach(async () => {
  clouds = await ThreeClouds.start();
});
afterEach(() => clouds.close());

/** Seals at one and unseals at the other, both ways, every 5 ms until `end`. @returns how often, and the failures */
async function underLoad(
  codecs: readonly KmsCodec[],
  end: Promise<unknown>,
): Promise<{ sealed: number; failed: string[] }> {
  const seen = { sealed: 0, failed: [] as string[] };
  const running = { ended: false };
  const done = (): void => {
    running.ended = true;
  };
  end.then(done, done);
  while (!running.ended) {
    for (const from of codecs) {
      for (const to of codecs) {
        try {
          to.unseal(from.seal(payload));
          seen.sealed += 1;
        } catch (error) {
          seen.failed.push(String(error));
        }
      }
    }
    await pause(5);
  }
  await end;
  return seen;
}

describe('one ring wrapped by AWS, Google Cloud and Azure at once', () => {
  test('every key has a wrap by each cloud', async () => {
    await clouds.codec();
    expect(await clouds.wrapsInRing()).toEqual([['aws-kms', 'azure-key-vault', 'gcp-kms']]);
  });

  for (const how of ['cut', 'hang'] as const) {
    test(`no seal and no unseal fails while each cloud in turn ${how === 'cut' ? 'refuses connections' : 'hangs'} for longer than sealing lasts without a KMS check (F7, F29)`, async () => {
      const fleet = [await clouds.codec(), await clouds.codec()];
      const outages = async (): Promise<void> => {
        for (const cloud of CLOUDS) {
          clouds.fail(cloud, how);
          await pause((policy.sealOutageSeconds + 1) * 1_000);
          clouds.mend(cloud);
          await pause(1_500);
        }
      };
      const { sealed, failed } = await underLoad(fleet, outages());
      expect(failed).toEqual([]);
      expect(sealed).toBeGreaterThan(1_000);
    });
  }

  for (const cloud of CLOUDS) {
    test(`an instance starts with only ${cloud} reachable`, async () => {
      const first = await clouds.codec();
      for (const other of CLOUDS.filter((one) => one !== cloud)) clouds.fail(other, 'cut');
      const second = await clouds.codec();
      expect(second.unseal(first.seal(payload))).toEqual(payload);
      expect(first.unseal(second.seal(payload))).toEqual(payload);
    });
  }

  test('a start without any reachable cloud fails in time, with the error of each cloud', async () => {
    await clouds.codec();
    for (const cloud of CLOUDS) clouds.fail(cloud, 'cut');
    const error: unknown = await clouds.codec({ policy: { ...policy, startTimeoutSeconds: 3 } }).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    if (!(error instanceof KeyWrapperError)) throw new Error(`unexpected: ${String(error)}`);
    expect(error.kind).toBe('unavailable');
    expect(error.summary.causes?.map(({ kind, summary }) => [summary.provider, summary.operation, kind])).toEqual([
      ['aws-kms', 'unwrap', 'unavailable'],
      ['gcp-kms', 'unwrap', 'unavailable'],
      ['azure-key-vault', 'unwrap', 'unavailable'],
    ]);
    for (const provider of ['aws-kms', 'gcp-kms', 'azure-key-vault'])
      expect(error.message).toContain(`${provider} unwrap`);
  });

  for (const cloud of CLOUDS) {
    test(`with a quorum of two, a key is published without ${cloud}, which wraps it later`, async () => {
      // A key is not published if writing it takes longer than refreshEvery.
      const patient = { ...policy, refreshEverySeconds: 4, propagationSeconds: 15 };
      const codec = await clouds.codec({ wrapQuorum: 2, policy: patient });
      clouds.fail(cloud, 'cut');
      await codec.rotate();
      const wraps = await clouds.wrapsInRing();
      expect(wraps.map((providers) => providers.length)).toEqual([3, 2]);
      clouds.mend(cloud);
      for (let i = 0; i < 100 && (await clouds.wrapsInRing()).flat().length < 6; i++) await pause(100);
      expect((await clouds.wrapsInRing()).map((providers) => providers.length)).toEqual([3, 3]);
    });
  }

  test('nothing is published without a quorum while one cloud is down, and the old key continues to seal', async () => {
    const codec = await clouds.codec();
    clouds.fail('gcp', 'cut');
    await expect(codec.rotate()).rejects.toMatchObject({ name: 'KeyWrapperError', kind: 'unavailable' });
    expect(await clouds.wrapsInRing()).toHaveLength(1);
    expect(codec.unseal(codec.seal(payload))).toEqual(payload);
  });
});
