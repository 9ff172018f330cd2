import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Bounds, faultsOf, type Grant } from './gcp-kms-laws.ts';
import { readmeWithTables, variablesOf } from './module-tables.ts';
import { type OwnTests, refusedVariables, runOwnTests, writtenRuns } from './own-tests.ts';
import { checkModule } from './schema/check-module.ts';
import { loadModule } from './schema/module.ts';
import { readSchema } from './schema/provider-schema.ts';
import { type SchemaProvider, serveSchema } from './schema/schema-provider.ts';
import { openWorkspaceOrSkip } from './terraform.ts';

const MODULE = fileURLToPath(new URL('../../terraform/gcp-kms/', import.meta.url));
const EXAMPLE = 'examples/gcs-ring';
const read = (name: string): string => readFileSync(`${MODULE}${name}`, 'utf8');
const readme = (name: string): string =>
  readFileSync(fileURLToPath(new URL(`../../packages/${name}/README.md`, import.meta.url)), 'utf8');

// On a busy machine, one call of Terraform takes minutes.
const TERRAFORM_MS = 900_000;
const workspace = await openWorkspaceOrSkip();
afterAll(() => workspace?.remove());

const ROLES = ['member', 'reader', 'rotator', 'break_glass'] as const;
type Role = (typeof ROLES)[number];
/** The identities of each role in tests/policies.tftest.hcl. */
const HOLDERS: Readonly<Record<Role, readonly string[]>> = {
  member: [
    'serviceAccount:member@shop-prod.iam.gserviceaccount.com',
    'principal://iam.googleapis.com/projects/123456789012/locations/global/workloadIdentityPools/shop-prod.svc.id.goog/subject/ns/payments/sa/member',
  ],
  reader: ['serviceAccount:reader@shop-prod.iam.gserviceaccount.com'],
  rotator: ['serviceAccount:rotator@shop-prod.iam.gserviceaccount.com'],
  break_glass: ['group:rescuers@example.com'],
};

/** The permissions that a package's README lists for a role. */
function listed(name: string, role: string): string[] {
  const row = new RegExp(`^\\| ${role} \\|(.*)$`, 'm').exec(readme(name))?.[1] ?? '';
  if (row.includes('the same as a member')) return listed(name, 'member');
  return [...row.matchAll(/`((?:cloudkms|storage)\.\w+\.\w+)`/g)].map(([, permission = '']) => permission).toSorted();
}

describe('the module terraform/gcp-kms', () => {
  test('the module has four files, a README, tests and an example', () => {
    const names = ['README.md', 'examples', 'main.tf', 'outputs.tf', 'tests', 'variables.tf', 'versions.tf'];
    expect(readdirSync(MODULE).toSorted()).toEqual(names);
  });

  test.each(['.', EXAMPLE])('%s fits the schema that its provider publishes', async (folder) => {
    expect(await checkModule(`${MODULE}${folder}`, readSchema('google'))).toEqual([]);
  });

  test('validates every variable that is not a boolean, with a test run for each rejection', () => {
    const variables = variablesOf(read('variables.tf'));
    const open = variables.filter(({ type, validated }) => type !== 'bool' && !validated);
    expect(open.map(({ name }) => name)).toEqual([]);
    const validated = variables.filter((each) => each.validated).map(({ name }) => name);
    expect(refusedVariables(MODULE)).toEqual(new Set(validated));
  });

  test('lists its variables and outputs in its README', () => {
    const written = readmeWithTables(MODULE);
    expect(read('README.md')).toBe(written);
  });

  test('the module prevents Terraform from destroying the key and its key ring', async () => {
    const { addresses } = await loadModule(MODULE);
    for (const address of ['google_kms_crypto_key.this', 'google_kms_key_ring.this']) {
      const lifecycle = addresses.get(address)?.body.blocks.find(({ type }) => type === 'lifecycle');
      expect(lifecycle?.body.attributes.get('prevent_destroy'), address).toBe(true);
    }
  });

  test.each(['member', 'reader', 'rotator'])('gives a %s the permissions that the packages list', async (role) => {
    const { key, bucket } = await permissionsInSource(role);
    expect(key).toEqual(listed('gcp-kms', role));
    expect(bucket).toEqual(listed('gcs', role));
  });

  test('gives a rescuer no permission to use the key', async () => {
    const { key } = await permissionsInSource('break_glass');
    expect(key).toContain('cloudkms.cryptoKeyVersions.update');
    expect(key.filter((permission) => permission.includes('.useTo'))).toEqual([]);
  });

  /** The module's own tables have no expressions, so they can be read directly. */
  async function permissionsInSource(role: string): Promise<{ key: string[]; bucket: string[] }> {
    const { blocks } = await loadModule(MODULE);
    const locals = new Map(blocks.filter(({ type }) => type === 'locals').flatMap(({ body }) => [...body.attributes]));
    const custom = locals.get('custom_roles') as Readonly<Record<string, { permissions: readonly string[] }>>;
    const held = (...tables: readonly string[]): string[] =>
      tables
        .map((table) => (locals.get(table) as Readonly<Record<string, string>>)[role] ?? '')
        .flatMap((name) => custom[name]?.permissions ?? [])
        .toSorted();
    return { key: held('key_roles'), bucket: held('object_roles', 'bucket_roles') };
  }
});

describe('the invariants of grants', () => {
  const [member = ''] = HOLDERS.member;
  const bounds: Bounds = {
    roles: new Map([
      ['opener', ['cloudkms.cryptoKeyVersions.useToDecrypt']],
      ['reader', ['storage.objects.get']],
      ['lister', ['storage.objects.list']],
      ['everything', ['cloudkms.*']],
      ['administrator', ['cloudkms.cryptoKeys.setIamPolicy']],
      ['destroyer', ['cloudkms.cryptoKeyVersions.destroy']],
    ]),
    principals: [member],
    bucket: 'payments-sealring',
    object: 'payments.ring',
  };
  const condition = 'resource.name == "projects/_/buckets/payments-sealring/objects/payments.ring"';
  const onKey: Grant = { type: 'google_kms_crypto_key_iam_member', member, role: 'opener', condition: undefined };
  const onObject: Grant = { type: 'google_storage_bucket_iam_member', member, role: 'reader', condition };
  const wider = condition.replace(' == ', '.startsWith(').replace('/payments.ring"', '/")');

  test('the invariants of grants accept correct grants', () => {
    for (const grant of [onKey, onObject, { ...onObject, role: 'lister', condition: undefined }]) {
      expect(faultsOf(grant, bounds)).toEqual([]);
    }
  });

  test.each<[string, Grant]>([
    ['a basic role', { ...onKey, role: 'roles/owner' }],
    ['a role for administrators', { ...onKey, role: 'roles/cloudkms.admin' }],
    ['a predefined role', { ...onKey, role: 'roles/cloudkms.cryptoKeyEncrypterDecrypter' }],
    ['every permission', { ...onKey, role: 'everything' }],
    ['the permission to grant permissions', { ...onKey, role: 'administrator' }],
    ['the permission to destroy', { ...onKey, role: 'destroyer' }],
    ['all users', { ...onKey, member: 'allUsers' }],
    ['every account', { ...onKey, member: 'allAuthenticatedUsers' }],
    ['another service account', { ...onKey, member: 'serviceAccount:other@shop-prod.iam.gserviceaccount.com' }],
    ['the whole key ring', { ...onKey, type: 'google_kms_key_ring_iam_member' }],
    ['the whole project', { ...onKey, type: 'google_project_iam_member' }],
    ['a permission on another resource', { ...onKey, role: 'lister' }],
    ['every object', { ...onObject, condition: undefined }],
    ['another object', { ...onObject, condition: condition.replace('payments.ring', 'other.ring') }],
    ['every object with the same prefix', { ...onObject, condition: wider }],
  ])('the invariants of grants reject a grant with %s', (_name, grant) => {
    expect(faultsOf(grant, bounds)).toHaveLength(1);
  });
});

/** The output of `terraform test -json`. */
interface Message {
  readonly test_plan?: { resource_changes: readonly Change[] };
}
interface Change {
  readonly type: string;
  readonly change: { readonly after: Readonly<Record<string, unknown>> };
}

describe.skipIf(workspace === undefined)('terraform/gcp-kms, checked by Terraform with the provider schema', () => {
  let ownTests: OwnTests = { runs: [], complaints: [] };
  let changes: readonly Change[] = [];
  let provider: SchemaProvider | undefined;
  let formatted = '';

  beforeAll(async () => {
    if (workspace === undefined) return;
    provider = await serveSchema(readSchema('google'));
    Object.assign(process.env, provider.environment);
    const { code, stdout, stderr } = await workspace.run(
      'gcp-kms',
      'fmt',
      '-check',
      '-recursive',
      '-diff',
      '-no-color',
    );
    formatted = `${stdout}${stderr}${code === 0 ? '' : `exit ${code}`}`;
    await workspace.init('gcp-kms');
    ownTests = await runOwnTests(workspace, 'gcp-kms', (line) => {
      const { test_plan: plan } = line as Message;
      if (plan !== undefined) changes = plan.resource_changes;
    });
  }, TERRAFORM_MS);
  afterAll(() => provider?.stop());

  async function validate(folder: string): Promise<{ valid: boolean; diagnostics: { summary: string }[] }> {
    const { stdout = '' } = (await workspace?.run(folder, 'validate', '-json')) ?? {};
    return JSON.parse(stdout) as { valid: boolean; diagnostics: { summary: string }[] };
  }

  test('the module is formatted', () => {
    expect(formatted).toBe('');
  });

  test('the module and its example are valid', { timeout: TERRAFORM_MS }, async () => {
    expect(await validate('gcp-kms')).toMatchObject({ valid: true, diagnostics: [] });
    await workspace?.init(`gcp-kms/${EXAMPLE}`);
    expect(await validate(`gcp-kms/${EXAMPLE}`)).toMatchObject({ valid: true, diagnostics: [] });
  });

  test('the example can be planned', { timeout: TERRAFORM_MS }, async () => {
    await workspace?.init(`gcp-kms/${EXAMPLE}`);
    expect(await workspace?.succeed(`gcp-kms/${EXAMPLE}`, 'test', '-no-color')).toContain('1 passed, 0 failed');
  });

  test('validation checks the module against the schema, and rejects an unknown argument', {
    timeout: TERRAFORM_MS,
  }, async () => {
    const stray = `${workspace?.pathOf('gcp-kms')}/stray.tf`;
    writeFileSync(stray, 'resource "google_kms_key_ring" "stray" {\n  name     = "stray"\n  locations = "here"\n}\n');
    const { valid, diagnostics } = await validate('gcp-kms');
    writeFileSync(stray, '');
    expect(valid).toBe(false);
    expect(diagnostics.map(({ summary }) => summary)).toEqual(['Missing required argument', 'Unsupported argument']);
  });

  test('passes its own tests: bad values are rejected, and the plan is as expected', () => {
    expect(ownTests.complaints).toEqual([]);
    expect(ownTests.runs).toEqual(writtenRuns(MODULE));
  });

  const ofType = (pattern: RegExp): Change[] => changes.filter(({ type }) => pattern.test(type));
  const rolesMade = (): Map<string, readonly string[]> =>
    new Map(
      ofType(/^google_project_iam_custom_role$/).map(({ change: { after } }) => [
        String(after['name']),
        after['permissions'] as readonly string[],
      ]),
    );
  const grantsMade = (): Grant[] =>
    ofType(/_iam_(member|binding|policy)$/).map(({ type, change: { after } }) => ({
      type,
      member: String(after['member']),
      role: String(after['role']),
      condition: (after['condition'] as readonly { expression: string }[])[0]?.expression,
    }));

  test('grants only custom roles, on the key or the ring, to the given identities', () => {
    const principals = Object.values(HOLDERS).flat();
    const bounds = { roles: rolesMade(), principals, bucket: 'payments-sealring', object: 'payments.ring' };
    expect(grantsMade()).toHaveLength(13);
    for (const grant of grantsMade()) expect(faultsOf(grant, bounds), JSON.stringify(grant)).toEqual([]);
  });

  test.each(['member', 'reader', 'rotator'] as const)(
    'plans the permissions that the packages list for a %s',
    (role) => {
      const made = rolesMade();
      for (const holder of HOLDERS[role]) {
        const own = grantsMade().filter(({ member }) => member === holder);
        const permissions = own.flatMap((grant) => made.get(grant.role) ?? []).toSorted();
        expect(permissions, holder).toEqual([...listed('gcp-kms', role), ...listed('gcs', role)]);
      }
    },
  );
});
