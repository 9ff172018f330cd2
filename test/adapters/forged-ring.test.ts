import { randomBytes } from 'node:crypto';
import { CreateKeyCommand, KMSClient } from '@aws-sdk/client-kms';
import { awsKmsKeyWrapper } from '@sealring/aws-kms';
import { createKmsCodec, type KeyWrapper, type KmsCodec, localKeyWrapper, memoryRing } from '@sealring/core';
import { gcpKmsKeyWrapper } from '@sealring/gcp-kms';
import { vaultTransitKeyWrapper } from '@sealring/vault-transit';
import { afterEach, describe, expect, inject, test } from 'vitest';
import { realClient, startGcpKms } from '../support/gcp-kms/index.ts';
import { callOpenBao, startOpenBao } from '../support/openbao.ts';

/*
 * If wrapping needs a permission, an attacker who can only write to the store wraps a data key with their own KMS key.
 * Azure, where anyone can create RSA wraps, has its own file.
 */

/** The fleet's key, the attacker's key in the same service, and the number of calls to the service. */
interface Service {
  readonly ours: () => KeyWrapper;
  readonly theirs: () => KeyWrapper;
  stop(): Promise<void>;
}

const SERVICES: Readonly<Record<string, () => Promise<Service>>> = {
  local: async () => {
    const [ours, theirs] = [randomBytes(32), randomBytes(32)];
    return {
      ours: () => localKeyWrapper({ masterKey: ours }),
      theirs: () => localKeyWrapper({ masterKey: theirs }),
      stop: async () => undefined,
    };
  },
  'aws-kms': async () => {
    const client = new KMSClient({
      endpoint: inject('moto'),
      region: 'us-east-1',
      maxAttempts: 1,
      credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
    });
    const newKey = async (): Promise<string> => (await client.send(new CreateKeyCommand({}))).KeyMetadata?.Arn ?? '';
    const [ours, theirs] = [await newKey(), await newKey()];
    return {
      ours: () => awsKmsKeyWrapper({ keyId: ours, client }),
      theirs: () => awsKmsKeyWrapper({ keyId: theirs, client }),
      stop: async () => client.destroy(),
    };
  },
  'gcp-kms': async () => {
    const server = await startGcpKms();
    const client = realClient(server);
    const [ours, theirs] = [server.kms.createKey('ours'), server.kms.createKey('theirs')];
    return {
      ours: () => gcpKmsKeyWrapper({ keyId: ours, client }),
      theirs: () => gcpKmsKeyWrapper({ keyId: theirs, client }),
      stop: async () => {
        await client.close();
        await server.stop();
      },
    };
  },
  'vault-transit': async () => {
    const server = await startOpenBao();
    await callOpenBao(server, 'POST', 'sys/mounts/transit', { type: 'transit' });
    for (const name of ['ours', 'theirs']) await callOpenBao(server, 'POST', `transit/keys/${name}`, {});
    const { address, token } = server;
    return {
      ours: () => vaultTransitKeyWrapper({ address, token, keyId: 'ours' }),
      theirs: () => vaultTransitKeyWrapper({ address, token, keyId: 'theirs' }),
      stop: () => server.close(),
    };
  },
};

const payload = new TextEncoder().encode('{"order":"A1"}');
const policy = { startTimeoutSeconds: 1, kmsTimeoutSeconds: 5, createAfterSeconds: 0 };
const ringName = 'payments';
const cleanUp: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const run of cleanUp.splice(0).toReversed()) await run();
});

async function start(keyWrapper: KeyWrapper, ring = memoryRing()): Promise<KmsCodec> {
  const codec = await createKmsCodec({ keyWrapper, ring, ringName, policy });
  cleanUp.push(() => codec.close());
  return codec;
}

/** The exact key that a ring's only key is wrapped with. */
async function keyIdIn(ring: ReturnType<typeof memoryRing>): Promise<string> {
  const { document = '' } = (await ring.read()) ?? {};
  const { keys }: { keys: { wraps: { keyId: string }[] }[] } = JSON.parse(document);
  return keys[0]?.wraps[0]?.keyId ?? '';
}

for (const [provider, startService] of Object.entries(SERVICES)) {
  describe(`a ring that an attacker wrapped, ${provider} (F26, F35)`, () => {
    test('is refused by a starting server, whichever key it names, and a running fleet keeps its own ring', async () => {
      const service = await startService();
      cleanUp.push(() => service.stop());
      const ours = memoryRing();
      const fleet = await start(service.ours(), ours);
      const forged = memoryRing();
      const attacker = await start(service.theirs(), forged);
      const { document = '' } = (await forged.read()) ?? {};
      const relabelled = document.replaceAll(await keyIdIn(forged), await keyIdIn(ours));
      expect(relabelled).not.toBe(document);
      // moto returns AccessDenied where the service returns IncorrectKeyException.
      const refused = { kind: expect.stringMatching(provider === 'aws-kms' ? /^(?:corrupt|denied)$/ : /^corrupt$/) };

      for (const text of new Set([document, relabelled])) {
        const planted = memoryRing();
        await planted.write(text, { expected: undefined });
        await expect(start(service.ours(), planted)).rejects.toMatchObject(refused);
        expect((await planted.read())?.document).toBe(text);

        const before = await ours.read();
        await ours.write(text, { expected: before?.revision });
        await expect(fleet.refresh()).rejects.toMatchObject({ kind: 'corrupt' });
        expect(fleet.unseal(fleet.seal(payload))).toEqual(payload);
        expect(() => fleet.unseal(attacker.seal(payload))).toThrow('unknown key');
        await ours.write(before?.document ?? '', { expected: (await ours.read())?.revision });
      }
    });
  });
}
