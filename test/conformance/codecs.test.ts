import { randomBytes } from 'node:crypto';
import { CreateKeyCommand, KMSClient } from '@aws-sdk/client-kms';
import { createAwsKmsCodec } from '@sealring/aws-kms';
import { createAzureKeyVaultCodec } from '@sealring/azure-key-vault';
import { type CodecTarget, runCodecConformance } from '@sealring/conformance';
import {
  AesGcmRequestStateCodec,
  createKmsCodec,
  InvalidRequestState,
  type KmsCodec,
  localKeyWrapper,
  memoryRing,
  type RequestStateCodec,
  type RingStore,
} from '@sealring/core';
import { createGcpKmsCodec } from '@sealring/gcp-kms';
import { createMcpdRequestStateCodec } from '@sealring/mcp/mcpd';
import { createVaultTransitCodec } from '@sealring/vault-transit';
import { afterEach, expect, inject, test } from 'vitest';
import { sdkClients } from '../support/azure-key-vault/clients.ts';
import { FakeKeyVault } from '../support/azure-key-vault/fake-key-vault.ts';
import { expectNoFindings } from '../support/findings.ts';
import { realClient, startGcpKms } from '../support/gcp-kms/index.ts';
import { callOpenBao, startOpenBao } from '../support/openbao.ts';

const cleanUp: (() => void | Promise<void>)[] = [];
afterEach(async () => {
  for (const run of cleanUp.splice(0).toReversed()) await run();
});

/** Codecs of one ring, and of a second one for foreign tokens; shared, so that not every test creates a ring. */
async function ringTarget(
  name: string,
  start: (ring: RingStore, ringName: string) => Promise<KmsCodec>,
): Promise<CodecTarget> {
  const [ours, theirs] = [memoryRing(), memoryRing()];
  for (const founder of [await start(ours, 'ours'), await start(theirs, 'theirs')]) cleanUp.push(() => founder.close());
  const open = async (ring: RingStore, ringName: string) => {
    const codec = await start(ring, ringName);
    return { codec, close: () => codec.close() };
  };
  return {
    name,
    create: () => open(ours, 'ours'),
    createPeer: () => open(ours, 'ours'),
    createStranger: () => open(theirs, 'theirs'),
  };
}

/** mcp.d's wire carries text: payloads are base64 there, behind a letter, because it has no empty state. */
function mcpdTarget(mode: 'signed' | 'encrypted'): Promise<CodecTarget> {
  const [a, b] = [randomBytes(32), randomBytes(32)];
  const who = { subject: 'alice' };
  const open = (key: Uint8Array): { codec: RequestStateCodec } => {
    const wire = createMcpdRequestStateCodec({ key, mode, ttlSeconds: 600 });
    return {
      codec: {
        seal: (payload) => wire.encode(`p${Buffer.from(payload).toString('base64')}`, who),
        unseal(token) {
          const state = wire.decode(token, who);
          if (state === null) throw new InvalidRequestState('authentication failed');
          return Buffer.from(state.slice(1), 'base64');
        },
      },
    };
  };
  return Promise.resolve({
    name: `mcp.d, ${mode}`,
    create: () => open(a),
    createPeer: () => open(a),
    createStranger: () => open(b),
    supports: { confidentiality: mode === 'encrypted' },
  });
}

const TARGETS: Readonly<Record<string, () => Promise<CodecTarget>>> = {
  'mcp.d, signed': () => mcpdTarget('signed'),
  'mcp.d, encrypted': () => mcpdTarget('encrypted'),
  'the codec of the Python SDK': async () => {
    const [a, b] = [randomBytes(32), randomBytes(32)];
    const codec = (...keys: Uint8Array[]) => ({ codec: new AesGcmRequestStateCodec(keys) });
    return {
      name: 'AesGcmRequestStateCodec',
      create: () => codec(a),
      createPeer: () => codec(a),
      createStranger: () => codec(b),
      createRotated: () => codec(b, a),
    };
  },
  'local, native tokens': () => {
    const keyWrapper = localKeyWrapper({ masterKey: randomBytes(32) });
    return ringTarget('local', (ring, ringName) => createKmsCodec({ keyWrapper, ring, ringName }));
  },
  'local, tokens of the Python SDK': () => {
    const keyWrapper = localKeyWrapper({ masterKey: randomBytes(32) });
    return ringTarget('python', (ring, ringName) => createKmsCodec({ keyWrapper, ring, ringName, format: 'python' }));
  },
  'local, a separate purpose': () => {
    const keyWrapper = localKeyWrapper({ masterKey: randomBytes(32) });
    return ringTarget('purpose', async (ring, ringName) => {
      const codec = await createKmsCodec({ keyWrapper, ring, ringName });
      const receipts = codec.for('receipts');
      return Object.assign(codec, {
        seal: (payload: Uint8Array) => receipts.seal(payload),
        unseal: (token: string) => receipts.unseal(token),
      });
    });
  },
  'AWS KMS': async () => {
    const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
    const client = new KMSClient({ endpoint: inject('moto'), region: 'us-east-1', maxAttempts: 1, credentials });
    cleanUp.push(() => client.destroy());
    const keyId = (await client.send(new CreateKeyCommand({}))).KeyMetadata?.Arn ?? '';
    return ringTarget('aws-kms', (ring, ringName) => createAwsKmsCodec({ keyId, client, ring, ringName }));
  },
  'Google Cloud KMS': async () => {
    const server = await startGcpKms();
    const client = realClient(server);
    cleanUp.push(
      () => server.stop(),
      () => client.close(),
    );
    const keyId = server.kms.createKey();
    return ringTarget('gcp-kms', (ring, ringName) => createGcpKmsCodec({ keyId, client, ring, ringName }));
  },
  'Azure Key Vault': async () => {
    const vault = await FakeKeyVault.start();
    cleanUp.push(() => vault.stop());
    const signing = vault.createKey('signing', 'EC');
    const keyId = vault.idOf(vault.createKey('wrapping'));
    const signKeyId = vault.idOf(signing, signing.current);
    const clients = sdkClients(vault, vault.issueToken());
    return ringTarget('azure-key-vault', (ring, ringName) =>
      createAzureKeyVaultCodec({ keyId, signKeyId, clients, ring, ringName }),
    );
  },
  'Vault transit': async () => {
    const server = await startOpenBao();
    cleanUp.push(() => server.close());
    await callOpenBao(server, 'POST', 'sys/mounts/transit', { type: 'transit' });
    await callOpenBao(server, 'POST', 'transit/keys/ring', {});
    const { address, token } = server;
    return ringTarget('vault-transit', (ring, ringName) =>
      createVaultTransitCodec({ address, token, keyId: 'ring', ring, ringName }),
    );
  },
};

for (const [title, start] of Object.entries(TARGETS)) {
  test(`${title} passes the whole conformance kit`, async () => {
    const report = await runCodecConformance(await start());
    expectNoFindings(report);
    expect(report.results.filter(({ status }) => status === 'pass').length).toBeGreaterThan(30);
  });
}
