import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { faultsOf, type Grant, type Purpose } from './azure-rights.ts';
import { AZURE_SCHEMA, AZURERM, extractAzureSchema, readAzureSchema } from './azure-schema.ts';
import { readmeWithTables, variablesOf } from './module-tables.ts';
import { type OwnTests, refusedVariables, runOwnTests, writtenRuns } from './own-tests.ts';
import { checkModule } from './schema/check-module.ts';
import { laidOut } from './schema/extract-schema.ts';
import { serveSchema } from './schema/schema-provider.ts';
import { openWorkspaceOrSkip } from './terraform.ts';

const MODULE = fileURLToPath(new URL('../../terraform/azure-key-vault/', import.meta.url));
const EXAMPLES = ['managed-identity', 'workload-identity'];
const read = (name: string): string => readFileSync(`${MODULE}${name}`, 'utf8');
const readme = (name: string): string =>
  readFileSync(fileURLToPath(new URL(`../../packages/${name}/README.md`, import.meta.url)), 'utf8');

/** A folder with unpacked packages, each under its name; see schema/extract-schema.test.ts. */
const PACKAGES = process.env['SEALRING_PROVIDER_PACKAGES'];

// On a busy machine, one call of Terraform takes minutes.
const TERRAFORM_MS = 900_000;
const workspace = await openWorkspaceOrSkip();
const provider = workspace === undefined ? undefined : await serveSchema(readAzureSchema());
// Terraform finds the provider here, and calls no registry.
if (provider !== undefined) Object.assign(process.env, provider.environment);
afterAll(() => {
  delete process.env['TF_REATTACH_PROVIDERS'];
  provider?.stop();
  workspace?.remove();
});

const guid = (end: string): string => `00000000-0000-4000-8000-0000000000${end}`;
/** The identities of each role in tests/policies.tftest.hcl. */
const HOLDERS = {
  member: [guid('a1'), guid('a2')],
  reader: [guid('b1')],
  rotator: [guid('c1')],
  break_glass: [guid('d1')],
};
type Role = keyof typeof HOLDERS;
const ROLES = Object.keys(HOLDERS) as Role[];
/** The end of the scope of a permission on each resource. */
const SCOPES = {
  wrapping_key: '/vaults/payments-ring/keys/ring-wrapping',
  signing_key: '/vaults/payments-ring/keys/ring-signing',
  ring: '/storageAccounts/paymentsring/blobServices/default/containers/sealring',
};
const TARGETS = Object.keys(SCOPES) as (keyof typeof SCOPES)[];
const TERRAFORM_ITSELF = guid('0a');
const BLOB = 'payments.ring';

describe('the module terraform/azure-key-vault', () => {
  test('the module has four files, a README, tests and examples', () => {
    const names = ['README.md', 'examples', 'main.tf', 'outputs.tf', 'tests', 'variables.tf', 'versions.tf'];
    expect(readdirSync(MODULE).toSorted()).toEqual(names);
    expect(readdirSync(`${MODULE}examples`).toSorted()).toEqual(EXAMPLES);
  });

  test('validates every variable, with a test run for each rejection', () => {
    const variables = variablesOf(read('variables.tf'));
    expect(variables.filter(({ validated }) => !validated).map(({ name }) => name)).toEqual([]);
    expect(refusedVariables(MODULE)).toEqual(new Set(variables.map(({ name }) => name)));
  });

  // No plan shows it.
  test('prevents the destruction of resources that cannot be restored: the vault, the keys, the account and the container', () => {
    const resources = [...read('main.tf').matchAll(/^resource "(\w+)" "(\w+)" \{\n(.*?)^\}$/gms)];
    const kept = resources.filter(([, , , body = '']) => /^ {4}prevent_destroy = true$/m.test(body));
    expect(kept.map(([, type, name]) => `${type}.${name}`)).toEqual([
      'azurerm_key_vault.this',
      'azurerm_key_vault_key.wrapping',
      'azurerm_key_vault_key.signing',
      'azurerm_storage_account.ring',
      'azurerm_storage_container.ring',
    ]);
  });

  test('lists its variables and outputs in its README', () => {
    const written = readmeWithTables(MODULE);
    expect(read('README.md')).toBe(written);
  });

  test.each(['.', ...EXAMPLES.map((name) => join('examples', name))])(
    '%s follows the schema of azurerm',
    async (name) => {
      expect(await checkModule(join(MODULE, name), readAzureSchema())).toEqual([]);
    },
  );
});

describe('the schema of azurerm', () => {
  test('the schema of azurerm has every type that is listed, and no other', () => {
    const { resource_schemas: resources, data_source_schemas: data } = readAzureSchema();
    expect(Object.keys(resources)).toEqual(AZURERM.resources);
    expect(Object.keys(data)).toEqual(AZURERM.data);
  });

  test.skipIf(PACKAGES === undefined)('matches the published package', () => {
    const extracted = extractAzureSchema(join(PACKAGES ?? '', AZURERM.package));
    if (process.env['SEALRING_WRITE_DOCS'] === '1') writeFileSync(AZURE_SCHEMA, laidOut(extracted));
    expect(readAzureSchema()).toEqual(extracted);
  });
});

describe('the invariants of permissions', () => {
  const group = '/subscriptions/s/resourceGroups/g';
  const vault = `${group}/providers/Microsoft.KeyVault/vaults/v`;
  const account = `${group}/providers/Microsoft.Storage/storageAccounts/a`;
  const blobs = 'Microsoft.Storage/storageAccounts/blobServices/containers/blobs';
  const unwrap = 'Microsoft.KeyVault/vaults/keys/unwrap/action';
  const purpose: Purpose = { principals: ['server'], blob: BLOB, mayUseKeys: true };
  const onKey: Grant = {
    definition: { data_actions: [unwrap] },
    assignment: { scope: `${vault}/keys/k`, principal_id: 'server' },
  };
  const conditionOf = (blob: string): string =>
    `((!(ActionMatches{'${blobs}/read'}) AND !(ActionMatches{'${blobs}/write'})) OR (@Resource[${blobs}:path] StringEquals '${blob}'))`;
  const onRing: Grant = {
    definition: { data_actions: [`${blobs}/read`] },
    assignment: {
      scope: `${account}/blobServices/default/containers/c`,
      principal_id: 'server',
      condition: conditionOf(BLOB),
      condition_version: '2.0',
    },
  };
  const defined = (grant: Grant, definition: Grant['definition']): Grant => ({ ...grant, definition });
  const assigned = (grant: Grant, changes: Partial<Grant['assignment']>): Grant => ({
    ...grant,
    assignment: { ...grant.assignment, ...changes },
  });

  test('the invariants of permissions accept correct permissions', () => {
    expect(faultsOf(onKey, purpose)).toEqual([]);
    expect(faultsOf(onRing, purpose)).toEqual([]);
  });

  test.each<[string, Grant, Partial<Purpose>]>([
    ['a built-in role', assigned(defined(onKey, {}), { role_definition_name: 'Owner' }), {}],
    ['a part of the actions', defined(onKey, { data_actions: ['Microsoft.KeyVault/vaults/keys/*'] }), {}],
    ['every action but one', defined(onKey, { data_actions: [unwrap], not_data_actions: ['x'] }), {}],
    ['an action of the control plane', defined(onKey, { actions: ['Microsoft.KeyVault/vaults/write'] }), {}],
    ['a whole vault', assigned(onKey, { scope: vault }), {}],
    ['a whole account', assigned(onRing, { scope: account, condition: null }), {}],
    ['a resource group', assigned(onKey, { scope: group }), {}],
    ['another principal', assigned(onKey, { principal_id: 'other' }), {}],
    ['a key used by an identity without permission', onKey, { mayUseKeys: false }],
    ['an administrator of more than the vault', assigned(onKey, { scope: group }), { isAdministrator: true }],
    ['no condition', assigned(onRing, { condition: null }), {}],
    ['another blob', assigned(onRing, { condition: conditionOf('other.ring') }), {}],
    ['a condition that lacks an action', defined(onRing, { data_actions: [`${blobs}/delete`] }), {}],
    ['a condition in the old language', assigned(onRing, { condition_version: '1.0' }), {}],
  ])('the invariants of permissions reject permissions with %s', (_name, grant, changes) => {
    expect(faultsOf(grant, { ...purpose, ...changes })).toHaveLength(1);
  });
});

/** A message of `terraform test -json`: the result of a run, its plan, or its errors. */
interface Message {
  readonly test_plan?: { readonly resource_changes: readonly Planned[] };
}

interface Planned {
  readonly type: string;
  readonly name: string;
  readonly index?: string;
  readonly change: { readonly after: Readonly<Record<string, unknown>> };
}

describe.skipIf(workspace === undefined)('terraform/azure-key-vault, checked by Terraform with the schema only', () => {
  let ownTests: OwnTests = { runs: [], complaints: [] };
  let planned: readonly Planned[] = [];

  beforeAll(async () => {
    if (workspace === undefined) return;
    await workspace.init('azure-key-vault');
    ownTests = await runOwnTests(workspace, 'azure-key-vault', (line) => {
      const { test_plan: plan } = line as Message;
      if (plan !== undefined) planned = plan.resource_changes;
    });
  }, TERRAFORM_MS);

  const plannedOf = (type: string, name: string): Planned[] =>
    planned.filter((each) => each.type === type && each.name === name);

  /** The assignments of a role by scope, each with the definition that it refers to. */
  function grantsOf(role: Role): Map<keyof typeof SCOPES, Grant[]> {
    const assignments = plannedOf('azurerm_role_assignment', 'role');
    return new Map(
      TARGETS.map((target) => {
        const own = assignments.filter(({ index }) => index?.startsWith(`${role}-${target}-`));
        return [target, own.map((assignment) => grantOf('role', assignment))];
      }),
    );
  }

  function grantOf(name: string, { change: { after: assignment } }: Planned): Grant {
    const definitions = plannedOf('azurerm_role_definition', name)
      .map(({ change }) => change.after)
      .filter((each) => each['role_definition_resource_id'] === assignment['role_definition_id']);
    const permissions = definitions.flatMap((each) => each['permissions'] as Grant['definition'][]);
    expect(permissions).toHaveLength(1);
    return { definition: permissions[0] ?? {}, assignment: assignment as unknown as Grant['assignment'] };
  }

  test('the module is formatted', async () => {
    expect(await workspace?.run('azure-key-vault', 'fmt', '-check', '-recursive', '-diff')).toMatchObject({
      code: 0,
      stdout: '',
    });
  });

  test('the module is valid', async () => {
    const { stdout = '' } = (await workspace?.run('azure-key-vault', 'validate', '-json')) ?? {};
    expect(JSON.parse(stdout)).toMatchObject({ valid: true, diagnostics: [] });
  });

  test('passes its own tests: bad values are rejected, and the plan is as expected', () => {
    expect(ownTests.complaints).toEqual([]);
    expect(ownTests.runs).toEqual(writtenRuns(MODULE));
  });

  test.each(EXAMPLES)(
    'the example %s can be planned with unknown values',
    async (name) => {
      const folder = join('azure-key-vault', 'examples', name);
      await workspace?.init(folder);
      expect(await workspace?.succeed(folder, 'test', '-no-color')).toContain('1 passed, 0 failed');
    },
    TERRAFORM_MS,
  );

  test.each(ROLES)('every permission of a %s satisfies the invariants', (role) => {
    const purpose = { principals: HOLDERS[role], blob: BLOB, mayUseKeys: role !== 'break_glass' };
    for (const [target, grants] of grantsOf(role)) {
      expect(grants.map(({ assignment }) => assignment.principal_id).toSorted(), target).toEqual(HOLDERS[role]);
      for (const grant of grants) {
        expect(faultsOf(grant, purpose), target).toEqual([]);
        expect(grant.assignment.scope.endsWith(SCOPES[target]), target).toBe(true);
      }
    }
  });

  test('the identity that creates the keys is not allowed to use them', () => {
    const grants = plannedOf('azurerm_role_assignment', 'administrator').map((each) => grantOf('administrator', each));
    expect(grants).toHaveLength(1);
    const purpose = { principals: [TERRAFORM_ITSELF], blob: BLOB, mayUseKeys: false, isAdministrator: true };
    expect(grants.flatMap((grant) => faultsOf(grant, purpose))).toEqual([]);
  });

  test('roles can be assigned only in the resource group', () => {
    const definitions = ['role', 'administrator'].flatMap((name) => plannedOf('azurerm_role_definition', name));
    expect(definitions).toHaveLength(ROLES.length * TARGETS.length + 1);
    const group = `/subscriptions/${guid('01')}/resourceGroups/payments`;
    for (const { change } of definitions)
      expect(change.after).toMatchObject({ scope: group, assignable_scopes: [group] });
  });

  test('no other permissions are granted', () => {
    const types = new Set(planned.map(({ type, name }) => `${type}.${name}`));
    const given = [...types].filter((type) => /role|policy|access/.test(type)).toSorted();
    expect(given).toEqual([
      'azurerm_role_assignment.administrator',
      'azurerm_role_assignment.role',
      'azurerm_role_definition.administrator',
      'azurerm_role_definition.role',
      'azurerm_storage_management_policy.ring',
    ]);
    expect(plannedOf('azurerm_role_assignment', 'role')).toHaveLength(
      Object.values(HOLDERS).flat().length * TARGETS.length,
    );
  });

  test.each(['member', 'reader'] as const)('a %s has the permissions that the packages list', (role) => {
    const row = (name: string): string[] =>
      new RegExp(`^\\| ${role} \\|(.*)\\|$`, 'm').exec(readme(name))?.[1]?.split('|') ?? [];
    const [wrapping = '', signing = ''] = row('azure-key-vault');
    const [ring = ''] = row('azure-blob');
    const keyActions = (cell: string): string[] =>
      [...cell.matchAll(/(?:(?:un)?wrap|sign)\/action|keys\/read/g)]
        .map(([found]) => found.replace('keys/', ''))
        .toSorted();
    const blobActions = [...ring.matchAll(/`\/(\w+)`/g)].map(([, action = '']) => action).toSorted();
    const tails = (target: keyof typeof SCOPES, prefix: string): string[] =>
      (grantsOf(role).get(target)?.[0]?.definition.data_actions ?? [])
        .map((action) => action.replace(prefix, ''))
        .toSorted();
    expect(tails('wrapping_key', 'Microsoft.KeyVault/vaults/keys/')).toEqual(keyActions(wrapping));
    expect(tails('signing_key', 'Microsoft.KeyVault/vaults/keys/')).toEqual(keyActions(signing));
    expect(tails('ring', 'Microsoft.Storage/storageAccounts/blobServices/containers/blobs/')).toEqual(blobActions);
  });

  test('a rotator has the permissions of a member', () => {
    const actionsOf = (role: Role): unknown =>
      [...grantsOf(role).values()].map(([grant]) => grant?.definition.data_actions);
    expect(actionsOf('rotator')).toEqual(actionsOf('member'));
  });
});
