import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CreateKeyCommand, KMSClient } from '@aws-sdk/client-kms';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { afterEach, expect, inject, test } from 'vitest';
import { FakeKeyVault } from '../support/azure-key-vault/fake-key-vault.ts';
import { startGcpKms } from '../support/gcp-kms/index.ts';
import { callOpenBao, startOpenBao } from '../support/openbao.ts';
import { runProgram } from '../support/run-program.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const EMULATOR_CREDENTIAL = `{
  getToken: async () => ({ token: process.env['EMULATOR_TOKEN'] ?? '', expiresOnTimestamp: Date.now() + 3_600_000 }),
}, disableChallengeResourceVerification: true`;

const cleanUp: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const run of cleanUp.splice(0).toReversed()) await run();
});

interface Service {
  readonly env: NodeJS.ProcessEnv;
  /** Differences with an emulator: a piece of the page's configuration, and its replacement. */
  readonly replace?: readonly (readonly [was: string, is: string])[];
}

/** The key of each page. Real SDKs, against an emulator or a fake of the same protocol. */
const SERVICES: Readonly<Record<string, (folder: string) => Promise<Service>>> = {
  'aws-kms': async () => {
    const endpoint = inject('moto');
    const shared = { endpoint, region: 'us-east-1', credentials: { accessKeyId: 'test', secretAccessKey: 'test' } };
    const [kms, s3] = [new KMSClient(shared), new S3Client({ ...shared, forcePathStyle: true })];
    const { KeyMetadata } = await kms.send(new CreateKeyCommand({}));
    await s3.send(new CreateBucketCommand({ Bucket: 'provider-page' }));
    kms.destroy();
    s3.destroy();
    return {
      env: {
        AWS_ACCESS_KEY_ID: 'test',
        AWS_SECRET_ACCESS_KEY: 'test',
        AWS_REGION: 'us-east-1',
        AWS_ENDPOINT_URL: endpoint,
        KEY_ARN: KeyMetadata?.Arn ?? '',
        RING_BUCKET: 'provider-page',
      },
    };
  },
  'gcp-kms': async () => {
    const gcp = await startGcpKms();
    cleanUp.push(() => gcp.stop());
    const endpoint = `endpoint: 'http://${gcp.host}:${gcp.port}'`;
    return {
      env: { KEY_NAME: gcp.kms.createKey() },
      replace: [["keyId: process.env['KEY_NAME'] ?? ''", `keyId: process.env['KEY_NAME'] ?? '', ${endpoint}`]],
    };
  },
  'azure-key-vault': async (folder) => {
    const vault = await FakeKeyVault.start();
    cleanUp.push(() => vault.stop());
    const certificate = join(folder, 'certificate.pem');
    await writeFile(certificate, vault.certificate);
    const signing = vault.createKey('signing', 'EC');
    return {
      env: {
        NODE_EXTRA_CA_CERTS: certificate,
        WRAP_KEY_ID: vault.idOf(vault.createKey('wrapping')),
        SIGN_KEY_ID: vault.idOf(signing, signing.current),
        EMULATOR_TOKEN: vault.issueToken(),
      },
      replace: [['credential: new DefaultAzureCredential()', `credential: ${EMULATOR_CREDENTIAL}`]],
    };
  },
  'vault-transit': async (folder) => {
    const server = await startOpenBao();
    cleanUp.push(() => server.close());
    await callOpenBao(server, 'POST', 'sys/mounts/transit', { type: 'transit' });
    await callOpenBao(server, 'POST', 'transit/keys/payments', { type: 'aes256-gcm96' });
    const token = join(folder, 'token');
    await writeFile(token, `${server.token}\n`);
    return { env: { VAULT_ADDR: server.address, TOKEN_PATH: token } };
  },
};

/** The option `ring` of a program, without indentation and without its credential. */
function ringIn(code: string): string {
  const [, ring = ''] = /^ *ring: (.*?),\n *(?:ringName|\}|\))/ms.exec(code) ?? [];
  expect(ring).not.toBe('');
  return ring.replace(/\.\.\.access|credential/, '').replaceAll(/\s+/g, ' ');
}

/** No server of the store runs here: the ring is in a file. */
function inFile(configuration: string): readonly [was: string, is: string] {
  const [ring = ''] = /^ *ring: .*?,\n(?=\}|\))/ms.exec(configuration) ?? [];
  return [ring, `  ring: (await import('@sealring/core')).fileRing(process.env['RING_PATH'] ?? ''),\n`];
}

test.each(Object.entries(SERVICES))(
  'the configuration and the commands of the page on %s work',
  async (provider, start) => {
    const page = await readFile(join(root, `docs/providers/${provider}.md`), 'utf8');
    const [configuration = '', server = ''] = [...page.matchAll(/```ts no-run\n(.*?)^```$/gms)].map(
      ([, code = '']) => code,
    );
    // The server must read what `init` creates.
    expect(ringIn(configuration)).toBe(ringIn(server));
    const commands = [...page.matchAll(/^npx sealring (.*)$/gm)].map(([, line = '']) => line.replace(/#.*/, '').trim());
    expect(commands).toEqual(['doctor', 'init', 'status']);

    const folder = await mkdtemp(join(tmpdir(), 'sealring-'));
    cleanUp.push(() => rm(folder, { recursive: true }));
    const service = await start(folder);
    await mkdir(join(folder, 'project'));
    await symlink(join(root, 'node_modules'), join(folder, 'project/node_modules'));
    await writeFile(join(folder, 'project/package.json'), '{ "type": "module" }');
    let text = configuration;
    for (const [was, is] of [...(service.replace ?? []), ...(provider === 'aws-kms' ? [] : [inFile(text)])]) {
      expect(text).toContain(was);
      text = text.replace(was, is);
    }
    await writeFile(join(folder, 'project/sealring.config.ts'), text);
    const env = { PATH: process.env['PATH'], HOME: folder, RING_PATH: join(folder, 'payments.ring'), ...service.env };
    let said = '';
    for (const command of commands) {
      const args = [join(root, 'packages/cli/dist/main.js'), command];
      const { code, output } = await runProgram(process.execPath, args, { cwd: join(folder, 'project'), env });
      expect({ command, code, output: code === 0 ? '' : output }).toEqual({ command, code: 0, output: '' });
      said = output;
    }
    expect(said).toMatch(/ring "payments" .*\n\n.*\n\S+ +active/);
  },
);
