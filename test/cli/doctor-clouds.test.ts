import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { azureKeyVaultKeyWrapper, fetchAzureSignPublicKeys } from '@sealring/azure-key-vault';
import type { Finding, SealringConfig } from '@sealring/cli';
import { createKmsCodec, type KeyWrapper, type KmsCodec, memoryRing } from '@sealring/core';
import { gcpKmsKeyWrapper } from '@sealring/gcp-kms';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { sdkClients } from '../support/azure-key-vault/clients.ts';
import { FakeKeyVault } from '../support/azure-key-vault/fake-key-vault.ts';
import { clientOf, realClient, startGcpKms } from '../support/gcp-kms/index.ts';
import { runProgram } from '../support/run-program.ts';
import { createRing, examine, findingOf, idsOf } from './findings.ts';

const MAIN = fileURLToPath(new URL('../../packages/cli/dist/main.js', import.meta.url));
const MODULES = fileURLToPath(new URL('../../node_modules', import.meta.url));

const configOf = (keyWrapper: KeyWrapper): SealringConfig => ({ ringName: 'payments', ring: memoryRing(), keyWrapper });

describe('the doctor, on Google Cloud KMS', async () => {
  const gcp = await startGcpKms();
  const client = realClient(gcp);
  afterEach(() => gcp.kms.heal());
  afterAll(async () => {
    await client.close();
    await gcp.stop();
  });
  const keyId = gcp.kms.createKey();
  gcp.kms.grant('member', ['cloudkms.cryptoKeyVersions.useToEncrypt', 'cloudkms.cryptoKeyVersions.useToDecrypt']);
  const wrapperFor = (caller: string, name = keyId): KeyWrapper =>
    gcpKmsKeyWrapper({ keyId: name, client: clientOf(caller, client), maxAttempts: 1 });

  test('reports no error for a usable key', async () => {
    const config = configOf(wrapperFor('member'));
    await createRing(config);
    expect(idsOf(await examine(config), 'error')).toEqual([]);
  });

  test.each([
    ['encrypt', 'cloudkms.cryptoKeyVersions.useToDecrypt', 'useToEncrypt'],
    ['decrypt', 'cloudkms.cryptoKeyVersions.useToEncrypt', 'useToDecrypt'],
  ])('reports that the permission to %s is missing', async (caller, granted, missing) => {
    gcp.kms.grant(caller, [granted]);
    const report = await examine(configOf(wrapperFor(caller)));
    expect(idsOf(report, 'error')).toEqual(['kms-denied']);
    expect(findingOf(report, 'kms-denied')?.remedy).toContain(missing);
  });

  test('F10: reports a disabled key version', async () => {
    const other = gcp.kms.createKey('disabled');
    gcp.kms.disable(`${other}/cryptoKeyVersions/1`);
    const report = await examine(configOf(wrapperFor('member', other)));
    expect(report.healthy).toBe(false);
    expect(findingOf(report, 'kms-disabled')?.remedy).toMatch(/gcloud kms keys versions enable/);
  });

  test('reports a key that does not exist', async () => {
    const none = keyId.replace(/[^/]+$/, 'no-such-key');
    const report = await examine(configOf(wrapperFor('member', none)));
    expect(idsOf(report, 'error')).toEqual(['kms-not-found']);
    expect(findingOf(report, 'kms-not-found')?.remedy).toMatch(/project/);
  });

  describe('a key with a new version', () => {
    const setUp = async (): Promise<{ name: string; config: SealringConfig; codec: KmsCodec }> => {
      const name = gcp.kms.createKey(`versions-${randomUUID()}`);
      const config = configOf(wrapperFor('member', name));
      return { name, config, codec: await createKmsCodec(config) };
    };
    const version = (name: string, number: number): string => `${name}/cryptoKeyVersions/${number}`;

    test('reports that a key has a new version, what members do, and how long the old version is needed', async () => {
      const { name, config, codec } = await setUp();
      expect(findingOf(await examine(config), 'kms-version')).toMatchObject({ severity: 'ok' });
      gcp.kms.rotate(name);
      const report = await examine(config);
      const [key] = codec.health().keys;
      expect(report.healthy).toBe(true);
      expect(findingOf(report, 'kms-version')).toMatchObject({
        severity: 'warning',
        what: `gcp-kms now wraps with version ${version(name, 2)}, but the newest key of the ring is wrapped by ${version(name, 1)}`,
      });
      const { remedy = '' } = findingOf(report, 'kms-version') ?? {};
      expect(remedy).toContain('each member checks every 3600 s');
      expect(remedy).toContain(`still needed: ${version(name, 1)} until ${key?.unsealsUntil.toISOString()}`);
      const never = await examine({ ...config, policy: { keyVersionEverySeconds: 0 } });
      expect(findingOf(never, 'kms-version')?.remedy).toMatch(/^No member checks for new versions/);
      // Make the rotation that the doctor asks for.
      await codec.rotate();
      await codec.close();
      const after = findingOf(await examine(config), 'kms-version');
      expect(after).toMatchObject({ severity: 'ok' });
      expect(after?.what).toContain(`${version(name, 1)} until ${key?.unsealsUntil.toISOString()}`);
    });

    test('reports that no member rotates for an older version that is primary again', async () => {
      const { name, config, codec } = await setUp();
      gcp.kms.rotate(name);
      await codec.rotate();
      await codec.close();
      const { document = '' } = (await config.ring.read()) ?? {};
      expect(document).toContain(version(name, 2));
      gcp.kms.setPrimary(version(name, 1));
      const finding = findingOf(await examine(config), 'kms-version');
      expect(finding?.severity).toBe('warning');
      expect(finding?.remedy).toMatch(
        /^This version already wraps another key of the ring, so no member rotates for it/,
      );
    });

    test.each([
      ['disabled', 'KEY_DISABLED', (name: string) => gcp.kms.disable(name)],
      ['destroyed', 'KEY_DESTROYED', (name: string) => gcp.kms.destroy(name)],
    ])('reports an older version as refused if it is %s while keys of the ring need it', async (_, code, end) => {
      const { name, config, codec } = await setUp();
      const unsealsUntil = codec.health().keys[0]?.unsealsUntil.toISOString() ?? '';
      gcp.kms.rotate(name);
      await codec.rotate();
      await codec.close();
      end(version(name, 1));
      const report = await examine(config);
      expect(idsOf(report, 'error')).toEqual(['kms-version-refused']);
      expect(findingOf(report, 'ring-keys-ignored')).toBeUndefined();
      const { what = '', remedy = '' } = findingOf(report, 'kms-version-refused') ?? {};
      expect(what).toMatch(/^1 live key of the ring is wrapped by a KMS key version that cannot be used/);
      expect(what).toContain(code);
      expect(what).toContain(version(name, 1));
      expect(remedy).toContain(`needed until ${unsealsUntil}`);
      expect(remedy).toContain('gcloud kms keys versions enable');
    });

    test('reports an older version that is disabled before any key is wrapped by the new one', async () => {
      const { name, config, codec } = await setUp();
      await codec.close();
      gcp.kms.rotate(name);
      gcp.kms.disable(version(name, 1));
      const report = await examine(config);
      expect(idsOf(report, 'error')).toEqual(['kms-disabled', 'kms-version-refused']);
      expect(idsOf(report, 'warning')).toContain('kms-version');
    });
  });

  test('F21: reports an SDK that prints its requests', async () => {
    const config = configOf(wrapperFor('member'));
    const report = await examine(config, { GOOGLE_SDK_NODE_LOGGING: 'all' });
    expect(idsOf(report, 'error')).toEqual(['google-logging']);
    expect(findingOf(report, 'google-logging')?.remedy).toMatch(/Unset/);
  });
});

describe('the doctor, on Azure Key Vault', async () => {
  const vault = await FakeKeyVault.start();
  afterEach(() => vault.heal());
  afterAll(() => vault.stop());
  const rsa = vault.createKey('wrapping');
  const signing = vault.createKey('signing', 'EC');
  const [keyId, signKeyId] = [vault.idOf(rsa), vault.idOf(signing, signing.current)];
  const all = vault.issueToken();
  const signPublicKeys = await fetchAzureSignPublicKeys({ signKeyIds: [signKeyId], clients: sdkClients(vault, all) });
  const wrapperFor = (token: string): KeyWrapper =>
    azureKeyVaultKeyWrapper({ keyId, signKeyId, signPublicKeys, clients: sdkClients(vault, token), maxAttempts: 1 });

  test('reports no error for usable keys', async () => {
    const config = configOf(wrapperFor(all));
    await createRing(config);
    expect(idsOf(await examine(config), 'error')).toEqual([]);
  });

  test.each([
    ['wrap', ['get', 'unwrapKey', 'sign'], 'wrap/action'],
    ['unwrap', ['get', 'wrapKey', 'sign'], 'unwrap/action'],
    ['sign', ['get', 'wrapKey', 'unwrapKey'], 'sign/action'],
  ] as const)('reports that the permission to %s is missing', async (_, rights, missing) => {
    const report = await examine(configOf(wrapperFor(vault.issueToken([...rights]))));
    expect(idsOf(report, 'error')).toEqual(['kms-denied']);
    expect(findingOf(report, 'kms-denied')?.remedy).toContain(missing);
  });

  test('F35: reports a key wrapper without a signing key', async () => {
    const report = await examine(configOf(azureKeyVaultKeyWrapper({ keyId, clients: sdkClients(vault, all) })));
    expect(idsOf(report, 'error')).toEqual(['options']);
    expect(findingOf(report, 'options')?.what).toMatch(/sign/);
  });

  test('reports a signing key whose public key is not pinned', async () => {
    const other = vault.createKey('other', 'EC');
    const id = vault.idOf(other, other.current);
    const pinned = await fetchAzureSignPublicKeys({ signKeyIds: [id], clients: sdkClients(vault, all) });
    const clients = sdkClients(vault, all);
    const wrapper = azureKeyVaultKeyWrapper({ keyId, signKeyId, signPublicKeys: pinned, clients, maxAttempts: 1 });
    const report = await examine(configOf(wrapper));
    expect(idsOf(report, 'error')).toEqual(['kms-signature']);
  });

  test('F10: reports a disabled key', async () => {
    rsa.set({ enabled: false });
    const report = await examine(configOf(wrapperFor(all)));
    rsa.set({ enabled: true });
    expect(idsOf(report, 'error')).toEqual(['kms-disabled']);
    expect(findingOf(report, 'kms-disabled')?.remedy).toMatch(/set-attributes --enabled true/);
  });

  test('reports an EC key that is set as keyId as the wrong kind of key, not as a missing permission', async () => {
    const ec = vault.createKey('not-wrapping', 'EC');
    const clients = sdkClients(vault, all);
    const wrong = azureKeyVaultKeyWrapper({
      keyId: vault.idOf(ec),
      signKeyId,
      signPublicKeys,
      clients,
      maxAttempts: 1,
    });
    const report = await examine(configOf(wrong));
    expect(idsOf(report, 'error')).toEqual(['kms-usage']);
    expect(findingOf(report, 'kms-usage')?.remedy).toMatch(/^Use an RSA key .* as keyId/);
  });

  describe('a configuration that fetches the public key of the signing key', () => {
    const project = mkdtempSync(join(tmpdir(), 'sealring-cli-'));
    symlinkSync(MODULES, join(project, 'node_modules'));
    afterAll(() => rmSync(project, { recursive: true, force: true }));

    /** Runs the doctor as a program, on this configuration. */
    async function run(
      id: string,
      limits = ', maxAttempts: 2',
    ): Promise<{ readonly code: unknown; readonly findings: readonly Finding[]; readonly output: string }> {
      const clientOptions = {
        retryOptions: { maxRetries: 0 },
        disableChallengeResourceVerification: true,
        tlsOptions: { ca: vault.certificate },
      };
      const config = `import { CryptographyClient, KeyClient } from '@azure/keyvault-keys';
import { azureKeyVaultKeyWrapper, fetchAzureSignPublicKeys } from '@sealring/azure-key-vault';
import { memoryRing } from '@sealring/core';
const credential = { getToken: async () => ({ token: '${all}', expiresOnTimestamp: Date.now() + 3_600_000 }) };
const options = () => (${JSON.stringify(clientOptions)});
const clients = {
  keys: (url) => new KeyClient(url, credential, options()),
  cryptography: (key) => new CryptographyClient(key, credential, options()),
};
const signPublicKeys = await fetchAzureSignPublicKeys({ signKeyIds: ['${id}'], clients${limits} });
const wrapper = { keyId: '${keyId}', signKeyId: '${id}', signPublicKeys, clients };
export default { ringName: 'payments', ring: memoryRing(), keyWrapper: azureKeyVaultKeyWrapper(wrapper) };
`;
      writeFileSync(join(project, 'sealring.config.mjs'), config);
      const { code, output } = await runProgram(process.execPath, [MAIN, 'doctor', '--json'], { cwd: project });
      const json = output.slice(output.indexOf('{'), output.lastIndexOf('}') + 1);
      return { code, findings: JSON.parse(json).findings, output };
    }

    test.each([
      ['is throttled', 'kms-throttled', () => vault.throttle(), /^Wait/],
      ['is denied', 'kms-denied', () => vault.deny(), /^Grant .*keys\/read on the signing key/],
    ] as const)('the doctor reports a vault that %s', async (_, id, turn, remedy) => {
      turn();
      const { code, findings } = await run(signKeyId);
      expect(code).toBe(1);
      expect(findings).toEqual([
        expect.objectContaining({ id, severity: 'error', remedy: expect.stringMatching(remedy) }),
      ]);
    });

    test('the doctor reports a vault that does not answer', async () => {
      const down = signKeyId.replace(/127\.0\.0\.1:\d+/, '127.0.0.1:1');
      const { code, findings } = await run(down);
      expect(code).toBe(1);
      expect(findings).toEqual([expect.objectContaining({ id: 'kms-unavailable', severity: 'error' })]);
    });

    test('the doctor prints progress while a vault accepts connections but never answers, and reports that vault', async () => {
      // Reads, so that it notices when the client disconnects.
      const silent = createServer((socket) => void socket.resume().on('error', () => {}));
      silent.listen(0, '127.0.0.1');
      await once(silent, 'listening');
      const host = `127.0.0.1:${(silent.address() as AddressInfo).port}`;
      try {
        const { code, findings, output } = await run(signKeyId.replace(/127\.0\.0\.1:\d+/, host), '');
        expect(output).toContain('loading the configuration … (2 s)');
        expect(code).toBe(1);
        expect(findings).toEqual([expect.objectContaining({ id: 'kms-unavailable', severity: 'error' })]);
      } finally {
        await new Promise((done) => silent.close(done));
      }
    });

    test('the doctor reports a signing key of the wrong kind', async () => {
      const { code, findings } = await run(vault.idOf(rsa, rsa.current));
      expect(code).toBe(1);
      expect(findings).toEqual([
        expect.objectContaining({
          id: 'kms-signature',
          remedy: expect.stringMatching(/^Configure a P-256 signing key/),
        }),
      ]);
    });

    test('the doctor reports no error once the vault answers', async () => {
      const { code, findings } = await run(signKeyId);
      expect(findings.filter(({ severity }) => severity === 'error')).toEqual([]);
      expect(code).toBe(0);
    });
  });

  test('reports a new key version, and a disabled older one that the ring needs', async () => {
    const clients = sdkClients(vault, all);
    const key = vault.createKey('versions');
    const wrapper = (): KeyWrapper =>
      azureKeyVaultKeyWrapper({ keyId: vault.idOf(key), signKeyId, signPublicKeys, clients, maxAttempts: 1 });
    const config = configOf(wrapper());
    await createRing(config);
    const old = vault.idOf(key, key.current);
    const [{ attributes }] = key.versions as [(typeof key.versions)[number]];
    key.rotate();
    // The doctor runs in its own process and remembers no version.
    const report = await examine({ ...config, keyWrapper: wrapper() });
    expect(findingOf(report, 'kms-version')?.what).toContain(`the newest key of the ring is wrapped by ${old}`);
    attributes.enabled = false;
    const refused = findingOf(await examine({ ...config, keyWrapper: wrapper() }), 'kms-version-refused');
    expect(refused?.what).toContain(old);
    expect(refused?.remedy).toMatch(/set-attributes --id <version> --enabled true/);
  });

  test('reports no new version of a key that is configured with a version', async () => {
    const clients = sdkClients(vault, all);
    const pinned = vault.idOf(rsa, rsa.current);
    const config = configOf(azureKeyVaultKeyWrapper({ keyId: pinned, signKeyId, signPublicKeys, clients }));
    await createRing(config);
    expect(findingOf(await examine(config), 'kms-version')).toBeUndefined();
  });
});
