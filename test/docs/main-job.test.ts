import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CreateKeyCommand, KMSClient } from '@aws-sdk/client-kms';
import { afterEach, expect, inject, test } from 'vitest';
import { FakeKeyVault } from '../support/azure-key-vault/fake-key-vault.ts';
import { startGcpKms } from '../support/gcp-kms/index.ts';
import { runMain } from '../support/main-job.ts';
import { callOpenBao, startOpenBao } from '../support/openbao.ts';

const cleanUp: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const run of cleanUp.splice(0).toReversed()) await run();
});

/** Arguments that select a key in each service, as a user would type them. */
const SERVICES: Readonly<Record<string, () => Promise<{ args: string[]; environment?: NodeJS.ProcessEnv }>>> = {
  local: async () => ({ args: [] }),
  aws: async () => {
    const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
    const client = new KMSClient({ endpoint: inject('moto'), region: 'us-east-1', credentials });
    const { KeyMetadata } = await client.send(new CreateKeyCommand({}));
    client.destroy();
    return { args: ['--key-id', KeyMetadata?.Arn ?? '', '--endpoint', inject('moto')] };
  },
  gcp: async () => {
    const server = await startGcpKms();
    cleanUp.push(() => server.stop());
    return { args: ['--key-id', server.kms.createKey(), '--endpoint', `http://${server.host}:${server.port}`] };
  },
  azure: async () => {
    const vault = await FakeKeyVault.start();
    const folder = await mkdtemp(join(tmpdir(), 'sealring-'));
    cleanUp.push(
      () => vault.stop(),
      () => rm(folder, { recursive: true }),
    );
    const certificate = join(folder, 'certificate.pem');
    await writeFile(certificate, vault.certificate);
    const signing = vault.createKey('signing', 'EC');
    return {
      args: [
        '--key-id',
        vault.idOf(vault.createKey('wrapping')),
        '--sign-key-id',
        vault.idOf(signing, signing.current),
      ],
      environment: { AZURE_EMULATOR_TOKEN: vault.issueToken(), NODE_EXTRA_CA_CERTS: certificate },
    };
  },
  vault: async () => {
    const server = await startOpenBao();
    cleanUp.push(() => server.close());
    await callOpenBao(server, 'POST', 'sys/mounts/transit', { type: 'transit' });
    await callOpenBao(server, 'POST', 'transit/keys/sealring', {});
    return { args: ['--key-id', 'sealring', '--endpoint', server.address], environment: { VAULT_TOKEN: server.token } };
  },
};

for (const [kms, start] of Object.entries(SERVICES)) {
  test(`the main job runs on ${kms}`, async () => {
    const { args, environment } = await start();
    const { code, output } = await runMain(['--kms', kms, ...args], environment);
    expect(output).toContain('every step succeeded');
    expect(code).toBe(0);
  });
}

test('the main job names a wrong option and its value, and prints the help', async () => {
  for (const [args, message] of [
    [['--kms', 'ibm'], '--kms must be one of local, aws, gcp, azure, vault, got "ibm"'],
    [['--kms', 'azure', '--key-id', 'k'], '--kms azure requires --sign-key-id'],
    [['--kms', 'gcp', '--key-id', 'k', '--sign-key-id', 's'], '--sign-key-id "s" is not an option for --kms gcp'],
    [
      ['--kms', 'vault', '--key-id', 'k', '--endpoint', 'ftp://x'],
      '--endpoint must be an http or https URL, got "ftp://x"',
    ],
  ] as const) {
    const { code, output } = await runMain(args);
    expect([code, output.split('\n')[0]]).toEqual([1, message]);
    expect(output).toContain('Usage: npm start');
  }
});
