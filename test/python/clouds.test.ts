import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CreateKeyCommand, KMSClient } from '@aws-sdk/client-kms';
import { awsKmsKeyWrapper } from '@sealring/aws-kms';
import { azureKeyVaultKeyWrapper } from '@sealring/azure-key-vault';
import { createKmsCodec, fileRing, type KeyWrapper, type KmsCodec } from '@sealring/core';
import { gcpKmsKeyWrapper } from '@sealring/gcp-kms';
import { vaultTransitKeyWrapper } from '@sealring/vault-transit';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { publicHalf, sdkClients } from '../support/azure-key-vault/clients.ts';
import { FakeKeyVault } from '../support/azure-key-vault/fake-key-vault.ts';
import { realClient } from '../support/gcp-kms/client.ts';
import { type RunningGcpKms, startGcpKms } from '../support/gcp-kms/server.ts';
import { startMoto } from '../support/moto.ts';
import { type OpenBao, startOpenBao } from '../support/openbao.ts';
import type { RunningServer } from '../support/servers.ts';
import { pythonWithPackage } from './python-package.ts';
import { type PythonOptions, PythonProcess } from './python-process.ts';

const ringName = 'payments';
const folder = mkdtempSync(join(tmpdir(), 'sealring-clouds-'));

/** One key of a cloud, for the TypeScript wrapper and for the Python one. */
interface CloudKey {
  readonly keyWrapper: KeyWrapper;
  readonly python: object;
}

/** A key that can be disabled. */
interface EndingKey extends CloudKey {
  readonly disable: () => Promise<void>;
}

let python = '';
let rings = 0;
let gcp: RunningGcpKms;
let vault: FakeKeyVault;
let openbao: OpenBao;
let moto: RunningServer;
let closing: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  python = await pythonWithPackage();
  [gcp, vault, openbao, moto] = await Promise.all([startGcpKms(), FakeKeyVault.start(), startOpenBao(), startMoto()]);
  await bao('sys/mounts/transit', { type: 'transit' });
});
afterEach(async () => {
  for (const close of closing.toReversed()) await close();
  closing = [];
});
afterAll(async () => {
  await Promise.all([gcp.stop(), vault.stop(), openbao.close(), moto.stop()]);
  rmSync(folder, { recursive: true });
});

async function bao(path: string, body: object): Promise<void> {
  const headers = { 'X-Vault-Token': openbao.token, 'Content-Type': 'application/json' };
  const response = await fetch(`${openbao.address}/v1/${path}`, {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
  });
  expect(response.ok).toBe(true);
}

async function awsKey(): Promise<CloudKey> {
  const endpoint = moto.address;
  const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
  const client = new KMSClient({ endpoint, region: 'us-east-1', maxAttempts: 1, credentials });
  closing.push(async () => client.destroy());
  const { KeyMetadata } = await client.send(new CreateKeyCommand({}));
  const keyId = KeyMetadata?.Arn ?? '';
  return { keyWrapper: awsKmsKeyWrapper({ keyId, client }), python: { endpoint, keyId } };
}

async function gcpKey(): Promise<EndingKey> {
  const keyId = gcp.kms.createKey();
  const client = realClient(gcp);
  closing.push(() => client.close());
  return {
    keyWrapper: gcpKmsKeyWrapper({ keyId, client }),
    python: { cloud: 'gcp', address: `${gcp.host}:${gcp.port}`, keyId },
    disable: async () => gcp.kms.disable(keyId),
  };
}

async function azureKey(): Promise<EndingKey> {
  const wrapping = vault.createKey(`wrapping-${rings}`);
  const signing = vault.createKey(`signing-${rings}`, 'EC');
  const [keyId, signKeyId, token] = [vault.idOf(wrapping), vault.idOf(signing, signing.current), vault.issueToken()];
  const certificate = join(folder, 'certificate.pem');
  writeFileSync(certificate, vault.certificate);
  const keyWrapper = azureKeyVaultKeyWrapper({
    keyId,
    clients: sdkClients(vault, token),
    signKeyId,
    signPublicKeys: [publicHalf(signing.current.publicKey)],
  });
  return {
    keyWrapper,
    python: { cloud: 'azure', keyId, signKeyId, token, certificate },
    disable: async () => wrapping.set({ enabled: false }),
  };
}

async function vaultKey(cloud: 'vault' | 'vault-client'): Promise<EndingKey> {
  const keyId = `payments-${rings}`;
  await bao(`transit/keys/${keyId}`, { type: 'aes256-gcm96' });
  const { address, token } = openbao;
  return {
    keyWrapper: vaultTransitKeyWrapper({ address, token, keyId }),
    python: { cloud, keyId, address, token },
    disable: async () => {
      await bao(`transit/keys/${keyId}/rotate`, {});
      await bao(`transit/keys/${keyId}/config`, { min_decryption_version: 2 });
    },
  };
}

async function typescript(path: string, keyWrapper: KeyWrapper): Promise<KmsCodec> {
  const codec = await createKmsCodec({ keyWrapper, ring: fileRing(path), ringName, create: 'now' });
  closing.push(() => codec.close());
  return codec;
}

function pythonMember(path: string, keyWrapper: object, more: Partial<PythonOptions> = {}): PythonProcess {
  const ring = { path };
  const member = new PythonProcess(python, { keyWrapper, ring, ringName, role: 'member', create: 'now', ...more });
  closing.push(() => member.close());
  return member;
}

const opened = (codec: KmsCodec, token: string): string => Buffer.from(codec.unseal(token)).toString();

describe.each([
  ['Google Cloud KMS', gcpKey],
  ['Azure Key Vault, with a signing key', azureKey],
  ['HashiCorp Vault Transit', () => vaultKey('vault')],
  ['HashiCorp Vault Transit, with a client of the caller', () => vaultKey('vault-client')],
  ['AWS KMS', awsKey],
] as const)('a ring under %s', (_, key) => {
  test('each language reads and rotates a ring that the other created', async () => {
    const { keyWrapper, python: told } = await key();
    for (const first of ['TypeScript', 'Python'] as const) {
      const path = join(folder, `${++rings}.ring`);
      const theirs = pythonMember(path, told);
      if (first === 'Python') await theirs.start();
      const ours = await typescript(path, keyWrapper);
      if (first === 'TypeScript') await theirs.start();
      await ours.rotate();
      await theirs.refresh();
      await theirs.rotate({ emergency: true });
      await ours.refresh();
      expect(opened(ours, await theirs.seal('from Python'))).toBe('from Python');
      expect(await theirs.unseal(ours.seal(Buffer.from('from TypeScript')))).toBe('from TypeScript');
      const { keys, status } = await theirs.health();
      expect(Object.keys(keys)).toEqual(ours.health().keys.map(({ id }) => id));
      expect(Object.keys(keys)).toHaveLength(3);
      expect(status).toBe('ok');
      expect(ours.health().keys.every(({ held }) => held)).toBe(true);
    }
  });
});

test.each([
  ['Google Cloud KMS', gcpKey],
  ['Azure Key Vault', azureKey],
  ['HashiCorp Vault Transit', () => vaultKey('vault')],
] as const)(
  'a Python member that starts under a disabled key of %s reports it as disabled',
  async (_, key) => {
    const { keyWrapper, python: told, disable } = await key();
    const path = join(folder, `${++rings}.ring`);
    await typescript(path, keyWrapper);
    await disable();
    const reader = pythonMember(path, told, { role: 'reader' });
    await expect(reader.start()).rejects.toMatchObject({ name: 'KeyWrapperError', kind: 'disabled' });
  },
  60_000,
);
