/** A mistake of a user: the arguments of the command, and the content of its working directory. */
export interface Mistake {
  /** The page's description. Default: the command line, the variables, or the option. */
  readonly shown?: string;
  readonly args?: readonly string[];
  /** The whole configuration file. */
  readonly file?: string;
  /** The options in the configuration file that replace the options of a valid one. */
  readonly options?: string;
  /** Variables in place of `SEALRING_RING_NAME=payments`; with one, there is no configuration file. */
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
}

/** The mistakes of a user, by section of the page. */
export const MISTAKES: Readonly<Record<string, readonly Mistake[]>> = {
  'On the command line': [
    { args: ['statsu'] },
    { args: ['status', '--jsn'] },
    { args: ['status', 'now'] },
    { args: ['status', '--config'] },
    { args: ['status', '--config', 'sealring.json'] },
    { args: ['status', '--config', 'missing.mjs'] },
    { args: ['status', '--watch', '0'] },
    { args: ['status', '--member', 'localhost:8080'] },
    { args: ['status', '--member', 'http://ada:hunter2@localhost/'] },
    { args: ['status', '--member', 'ada:hunter2@localhost:8080'] },
    { args: ['doctor', '--role', 'admin'] },
    { args: ['dashboard', '--port', '70000'] },
    { args: ['dashboard', '--host', ''], shown: '`sealring dashboard --host ""`' },
    { args: ['dashboard', '--scrape', 'localhost:9464'] },
    { args: ['proxy', '--audience', 'desk'] },
    { args: ['proxy', '--upstream', 'http://127.0.0.1:8000'] },
    { args: ['proxy', '--upstream', 'localhost:8000', '--audience', 'desk'] },
    { args: ['proxy', '--upstream', 'http://127.0.0.1:8000/mcp', '--audience', 'desk'] },
    { args: ['proxy', '--upstream', 'http://127.0.0.1:8000', '--audience', 'desk'] },
    { args: ['proxy', '--upstream', 'http://127.0.0.1:8000', '--audience', 'desk', '--principal-header', 'X User'] },
    { args: ['keeper', '--health-port', '70000'] },
    { args: ['keeper', '--once', '--health-port', '8081'] },
    { args: ['keeper', '--host', '0.0.0.0'] },
    {
      args: ['keeper', '--health-port', '8081', '--host', ''],
      shown: '`sealring keeper --health-port 8081 --host ""`',
    },
    { args: ['init', '--local', '--config', 'sealring.config.mjs'] },
    { args: ['init', '--local'] },
    { args: ['revoke'] },
    { args: ['revoke', '--all'] },
    { args: ['revoke', '--yes'] },
    { args: ['revoke', 'zWmwhf-E_bTV', '--all', '--yes'] },
    { args: ['revoke', '--before', 'yesterday', '--yes'] },
    { args: ['revoke', '--before', '2026-11-21T20:00', '--yes'] },
    { args: ['revoke', '--before', '2026-11-31T20:00:00Z', '--yes'] },
    { args: ['inspect'], input: '' },
    { args: ['export'] },
    { args: ['export', ''], shown: '`sealring export ""`' },
    { args: ['export', 'sealring.config.mjs'] },
    { args: ['export', 'a.json', '--plain', 'python'] },
    { args: ['export', 'a.ring', '--they-leave-the-kms'] },
    { args: ['export', '-', '--json'] },
    { args: ['import'] },
    { args: ['import', 'missing.ring'] },
    { args: ['import', '.'] },
    { args: ['import', '--from', 'missing.mjs'] },
    { args: ['import', 'a.ring', '--from', 'sealring.config.mjs'] },
    { args: ['policy', '--set', 'rotateEverySeconds'] },
    { args: ['policy', '--set', 'rotateEvery=86400'] },
    { args: ['policy', '--set', 'sealOutageSeconds=60'] },
    { args: ['policy', '--servers', '0'] },
    { args: ['bench', '--format', 'jwt'] },
    { args: ['bench', '--format', 'python', '--bytes', '700000'] },
    { args: ['probe', 'localhost:3000/mcp', '--tool', 'refund'] },
    { args: ['probe', 'http://ada:hunter2@localhost:3000/mcp', '--tool', 'refund'] },
    { args: ['probe', 'http://localhost:3000/mcp', '--resource', 'a:b', '--other-resource', 'a:b'] },
    { args: ['complete', 'tcsh'] },
  ],
  'In the environment': [
    { env: {}, shown: 'no `SEALRING_*` variable and no configuration file' },
    { env: { SEALRING_RING_STORE: 's3' } },
    { env: { SEALRING_AWS_KMS_KEY_ID: 'alias/payments' } },
    { env: { SEALRING_AWS_KMS_KEY_ID: 'alias/payments', SEALRING_RING_STORE: 'mysql' } },
    { env: { SEALRING_AWS_KMS_KEY_ID: 'alias/payments', SEALRING_RING_STORE: 'mysql://ada:hunter2@host/db' } },
    { env: { SEALRING_AWS_KMS_KEY_ID: 'alias/payments', SEALRING_RING_STORE: 's3' } },
    { env: { SEALRING_AWS_KMS_KEY_ID: 'alias/payments', SEALRING_RING_STORE: 'ada:hunter2@host' } },
    { env: { SEALRING_AWS_KMS_KEY_ID: 'alias/payments', SEALRING_RING_STORE: 's3://payments' } },
    { env: { SEALRING_AWS_KMS_KEY_ID: 'alias/payments', SEALRING_RING_STORE: 's3://payments/%E0' } },
    { env: { SEALRING_AWS_KMS_KEY_ID: 'alias/payments', SEALRING_RING_STORE: 'file://payments.ring' } },
    { env: { SEALRING_AWS_KMS_KEY_ID: 'alias/payments', SEALRING_RING_STORE: 'file:///%zz' } },
    { env: { SEALRING_AWS_KMS_KEY_ID: 'payments key', SEALRING_RING_STORE: 's3://payments/ring' } },
    { env: { SEALRING_AWS_KMS_KEY_ID: 'alias/payments', SEALRING_AWS_KMS_MULTI_REGION: 'yes' } },
    { env: { SEALRING_GCP_KMS_KEY_ID: 'payments' } },
    { env: { SEALRING_AZURE_KEY_ID: 'https://payments.vault.azure.net/keys/ring' } },
    { env: { SEALRING_VAULT_KEY_ID: 'payments' } },
    { env: { SEALRING_VAULT_KEY_ID: 'payments', VAULT_ADDR: 'vault:8200', VAULT_TOKEN: 'hunter2' } },
    { env: { SEALRING_LOCAL_KEY_FILE: 'missing.key' } },
    {
      env: { SEALRING_LOCAL_KEY_FILE: 'short.key' },
      shown: '`SEALRING_LOCAL_KEY_FILE` names a file with 5 characters',
    },
  ],
  'In the configuration file': [
    { file: '', shown: 'an empty file' },
    { file: 'export const ring = 7;', shown: 'no default export' },
    { file: 'export default {', shown: 'a syntax error' },
    { file: "import 'not-installed';", shown: 'a package that is not installed' },
    { file: "\nthrow new Error('hunter2');", shown: 'an error in line 2' },
    { options: "ring: 'redis://127.0.0.1'" },
    { options: 'ring: undefined' },
    { options: 'ring: Promise.resolve(memoryRing())' },
    { options: 'keyWrapper: []' },
    { options: "keyWrapper: 'alias/payments'" },
    { options: 'probe: { ring: memoryRing() }' },
    { options: 'keywrapper' },
    { options: 'rotateEverySeconds: 3600' },
    { options: "ringName: ''" },
    { options: "ringName: 'pay ments'" },
    { options: 'ringName: 5' },
    { options: 'policy: { rotateEveryHours: 24 }' },
    { options: "policy: { rotateEverySeconds: '24h' }" },
    { options: 'policy: { rotateEverySeconds: -1 }' },
    { options: 'policy: { kmsCheckEverySeconds: 1800 }' },
    { options: 'wrapQuorum: 2' },
    { options: "acceptKeysCreatedAfter: '2026-11-21'" },
    { options: "keyWrapper: localKeyWrapper({ masterKey: 'too short' })" },
    { options: "keyWrapper: awsKmsKeyWrapper({ keyId: 'payments key' })" },
    { options: "ring: s3Ring({ bucket: 'payments' })" },
    { options: "ring: redisRing({ url: '127.0.0.1:6379' })" },
    { options: "ring: postgresRing({ connectionString: 'mysql://host/db' })" },
  ],
};

const IMPORTS = `import { awsKmsKeyWrapper } from '@sealring/aws-kms';
import { localKeyWrapper, memoryRing } from '@sealring/core';
import { postgresRing } from '@sealring/postgres';
import { redisRing } from '@sealring/redis';
import { s3Ring } from '@sealring/s3';
const keywrapper = undefined;
`;

/** The configuration file of a mistake: a valid one, except for the mistake. */
export function configOf({ file, options = '' }: Mistake): string {
  if (file !== undefined) return file;
  const valid = "ring: memoryRing(), keyWrapper: localKeyWrapper({ masterKey: Buffer.alloc(32, 'ÿ a fixed key') }),";
  return `${IMPORTS}export default { ${valid} ${options} };\n`;
}
