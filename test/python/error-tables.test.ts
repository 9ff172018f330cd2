import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { pythonWithPackage } from './python-package.ts';

/** Codes that are answers and not failures, or failures that only one SDK has. */
const APART: ReadonlySet<string> = new Set([
  // Answers.
  'absent',
  'conflict',
  'contended',
  'not-found',
]);
/** Names of errors of the SDKs for JavaScript. */
const OF_JAVASCRIPT: ReadonlySet<string> = new Set([
  'AggregateAuthenticationError',
  'AuthenticationError',
  'AuthenticationRequiredError',
  'ChainedTokenCredentialError',
  'CredentialUnavailableError',
  'CredentialsProviderError',
  'PARSE_ERROR',
  'REQUEST_SEND_ERROR',
  'TokenProviderError',
]);
/** Names of errors of the SDKs for Python. */
const OF_PYTHON: ReadonlySet<string> = new Set([
  'ClientAuthenticationError',
  'CredentialRetrievalError',
  'CredentialUnavailableError',
  'NoCredentialsError',
  'PartialCredentialsError',
  'SSOError',
  'TokenRetrievalError',
]);
type Table = Readonly<Record<string, { readonly kind: string }>>;
const PACKAGES: Readonly<Record<string, string>> = {
  'wrappers.aws_errors': 'aws-kms',
  'wrappers.azure_key_vault': 'azure-key-vault',
  'wrappers.gcp_kms': 'gcp-kms',
  'stores.azure_blob': 'azure-blob',
  'stores.dynamodb': 'dynamodb',
  'stores.gcs': 'gcs',
  'stores.postgres': 'postgres',
  'stores.redis': 'redis',
  'stores.s3': 's3',
};

/** A module of a package that the package does not export. */
async function innerModule(path: string): Promise<object> {
  return import(new URL(`../../packages/${path}`, import.meta.url).href);
}

async function tableOf(name: string): Promise<Table> {
  return Reflect.get(await innerModule(`${name}/src/error-table.ts`), 'ERROR_TABLE') as Table;
}

async function printed(program: string): Promise<unknown> {
  const ran: SpawnSyncReturns<string> = spawnSync(await pythonWithPackage(), ['-c', program], { encoding: 'utf8' });
  if (ran.status !== 0) throw new Error(ran.stderr);
  return JSON.parse(ran.stdout);
}

test.each(Object.entries(PACKAGES))(
  'a code of %s means the same in both languages',
  async (module, name) => {
    const ours = await tableOf(name);
    const theirs = (await printed(
      `import json; from sealring.${module} import ERROR_TABLE as t; print(json.dumps({c: r[0] for c, r in t.items()}))`,
    )) as Record<string, string>;
    const isStore = module.startsWith('stores.');
    const expected = Object.entries(ours)
      .filter(([code, { kind }]) => !(isStore && APART.has(kind)) && !OF_JAVASCRIPT.has(code))
      .map(([code, { kind }]) => [code, kind] as const);
    const found = Object.entries(theirs).filter(([code]) => !OF_PYTHON.has(code) && code !== 'notFound');
    expect(Object.fromEntries(found)).toEqual(Object.fromEntries(expected));
  },
  600_000,
);

test('a start waits the same time after an error code in both languages', async () => {
  const inner = await innerModule('core/src/adapter/lasting-failures.ts');
  const patienceWith = Reflect.get(inner, 'patienceWith') as (code: string) => string;
  const theirs = (await printed(
    'import json; from sealring.ring.patience import LASTING, LASTING_IF_STARTED;' +
      'print(json.dumps({**dict.fromkeys(LASTING, "none"), **dict.fromkeys(LASTING_IF_STARTED, "short")}))',
  )) as Record<string, string>;
  const ofPython = new Set([...OF_PYTHON, 'DefaultCredentialsError', 'RefreshError']);
  const shared = Object.entries(theirs).filter(([code]) => !ofPython.has(code));
  expect(shared.length).toBeGreaterThan(20);
  for (const [code, patience] of shared) expect([code, patienceWith(code)]).toEqual([code, patience]);
  const tables = await Promise.all(Object.values(PACKAGES).map(tableOf));
  const codes = tables.flatMap((table) => Object.keys(table));
  for (const code of codes.filter((each) => !OF_JAVASCRIPT.has(each))) {
    expect([code, theirs[code] ?? 'long']).toEqual([code, patienceWith(code)]);
  }
});
