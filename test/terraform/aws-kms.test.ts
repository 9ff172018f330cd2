import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readmeWithTables, variablesOf } from './module-tables.ts';
import { type OwnTests, refusedVariables, runOwnTests, writtenRuns } from './own-tests.ts';
import { allowed, faultsOf, type Policy, type Statement, usesKey } from './policy-laws.ts';
import { openWorkspaceOrSkip } from './terraform.ts';

const MODULE = fileURLToPath(new URL('../../terraform/aws-kms/', import.meta.url));
const read = (name: string): string => readFileSync(`${MODULE}${name}`, 'utf8');
const readme = (name: string): string =>
  readFileSync(fileURLToPath(new URL(`../../packages/${name}/README.md`, import.meta.url)), 'utf8');

// On a busy machine, one call of Terraform takes minutes.
const TERRAFORM_MS = 900_000;
const workspace = await openWorkspaceOrSkip({ aws: true });
afterAll(() => workspace?.remove());

type Outputs = Readonly<Record<string, { readonly value: unknown } | undefined>>;
interface Message {
  readonly '@testrun'?: string;
  readonly test_state?: { outputs: Outputs };
}

const ring = 'payments';
const roleArn = (name: string): string => `arn:aws:iam::111122223333:role/${name}`;
const ROOT = 'arn:aws:iam::111122223333:root';
/** The identities of each role in tests/policies.tftest.hcl. */
const HOLDERS = {
  member: roleArn('servers/member'),
  reader: roleArn('reader'),
  rotator: roleArn('rotator'),
  break_glass: roleArn('rescuer'),
};
type Role = keyof typeof HOLDERS;
const ROLES = Object.keys(HOLDERS) as Role[];

describe('the module terraform/aws-kms', () => {
  test('the module has four files, a README, tests and examples', () => {
    const names = ['README.md', 'examples', 'main.tf', 'outputs.tf', 'tests', 'variables.tf', 'versions.tf'];
    expect(readdirSync(MODULE).toSorted()).toEqual(names);
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
});

describe('the invariants of policies', () => {
  const right: Statement = {
    Sid: 'Right',
    Effect: 'Allow',
    Principal: { AWS: [HOLDERS.member] },
    Action: ['kms:Decrypt'],
    Resource: 'key',
    Condition: { StringEquals: { 'kms:EncryptionContext:sealring:ring': ring } },
  };
  const { Condition: _, ...unbound } = right;
  const item: Statement = { ...unbound, Action: ['dynamodb:GetItem'], Resource: 'table' };
  const faults = (statement: Statement): string[] =>
    faultsOf({ Version: '2012-10-17', Statement: [statement] }, { principals: [HOLDERS.member], ring });

  test('the invariants of policies accept correct policies, and a broad denial', () => {
    expect(faults(right)).toEqual([]);
    expect(faults({ ...unbound, Effect: 'Deny', Principal: '*', Action: 's3:*', Resource: '*' })).toEqual([]);
  });

  test.each<[string, Statement]>([
    ['every action', { ...right, Action: '*' }],
    ['a part of the actions', { ...right, Action: ['kms:Decrypt', 'kms:Get*'] }],
    ['every resource', { ...right, Resource: '*' }],
    ['no context', unbound],
    ['another ring', { ...right, Condition: { StringEquals: { 'kms:EncryptionContext:sealring:ring': 'other' } } }],
    ['a grant without a context', { ...unbound, Action: 'kms:CreateGrant' }],
    ['every principal', { ...right, Principal: '*' }],
    ['the account', { ...right, Principal: { AWS: [HOLDERS.member, ROOT] } }],
    ['every item', item],
    ['a foreign item', { ...item, Condition: { 'ForAllValues:StringEquals': { 'dynamodb:LeadingKeys': ['ring#x'] } } }],
  ])('the invariants of policies reject a statement with %s', (_name, statement) => {
    expect(faults(statement)).toHaveLength(1);
  });
});

describe.skipIf(workspace === undefined)('terraform/aws-kms, checked by Terraform', () => {
  let ownTests: OwnTests = { runs: [], complaints: [] };
  const states = new Map<string, Outputs>();
  let formatted: string | undefined;
  let valid = '';

  beforeAll(async () => {
    if (workspace === undefined) return;
    const { code, stdout, stderr } = await workspace.run('.', 'fmt', '-check', '-recursive', '-diff', '-no-color');
    formatted = `${stdout}${stderr}${code === 0 ? '' : `exit ${code}`}`;
    await workspace.init('aws-kms');
    valid = (await workspace.run('aws-kms', 'validate', '-json')).stdout;
    ownTests = await runOwnTests(workspace, 'aws-kms', (line) => {
      const { test_state: state, '@testrun': run = '' } = line as Message;
      if (state !== undefined) states.set(run, state.outputs);
    });
  }, TERRAFORM_MS);

  function policyIn(run: string, output: string, name?: string): Policy {
    const value = states.get(run)?.[output]?.value;
    const text = name === undefined ? value : (value as Record<string, string>)[name];
    return JSON.parse(String(text)) as Policy;
  }

  test('the module is formatted', () => {
    expect(formatted).toBe('');
  });

  test('the module is valid', () => {
    expect(JSON.parse(valid)).toMatchObject({ valid: true, diagnostics: [] });
  });

  test('passes its own tests: bad values are rejected, and the plan is as expected', () => {
    expect(ownTests.complaints).toEqual([]);
    expect(ownTests.runs).toEqual(writtenRuns(MODULE));
  });

  test.each(['s3', 'dynamodb', 'a_later_key_wrapper'])('every policy satisfies the invariants in the run %s', (run) => {
    const keyPolicy = policyIn(run, 'key_policy');
    const principals = [ROOT, ...Object.values(HOLDERS)];
    expect(faultsOf(keyPolicy, { principals, ring, isKeyPolicy: true })).toEqual([]);
    for (const role of ROLES) {
      expect(faultsOf(policyIn(run, 'policies', role), { principals: undefined, ring }), role).toEqual([]);
    }
    for (const service of ['kms', run === 'dynamodb' ? 'dynamodb' : 's3']) {
      const policy = policyIn(run, 'vpc_endpoint_policies', service);
      expect(faultsOf(policy, { principals: Object.values(HOLDERS), ring }), service).toEqual([]);
    }
  });

  test.each(ROLES)(
    'the key policy allows a %s the same actions as its own policy, in statements that apply to no one else',
    (role) => {
      const ofRole = policyIn('s3', 'key_policy').Statement.filter(
        ({ Principal }) => Principal !== '*' && Principal?.AWS.includes(HOLDERS[role]),
      );
      expect(ofRole.map(({ Principal }) => Principal)).toEqual([{ AWS: [HOLDERS[role]] }]);
      const keyActions = allowed(policyIn('s3', 'policies', role)).filter((action) => action.startsWith('kms:'));
      expect(allowed({ Version: '', Statement: ofRole })).toEqual(keyActions);
    },
  );

  test('the key’s administrators and rescuers are not allowed to use the key', () => {
    const users = policyIn('s3', 'key_policy').Statement.filter(usesKey);
    const { member, reader, rotator } = HOLDERS;
    expect(users.map(({ Principal }) => Principal)).toEqual([member, reader, rotator].map((arn) => ({ AWS: [arn] })));
    const denied = policyIn('s3', 'policies', 'break_glass').Statement.find(({ Effect }) => Effect === 'Deny');
    expect(denied?.Action).toEqual(expect.arrayContaining(['kms:Decrypt', 'kms:Encrypt', 'kms:GenerateDataKey']));
  });

  test.each(['member', 'reader', 'rotator'] as const)('a %s has the permissions that the packages list', (role) => {
    const listed = new RegExp(`^\\| ${role} \\|(.*)$`, 'm').exec(readme('aws-kms'))?.[1]?.match(/kms:\w+/g) ?? [];
    // A rotator creates no ring, so it need not notice a missing one.
    const rightsIn = (store: string): readonly Statement[] => {
      const documents = [...readme(store).matchAll(/^```json\n(.*?)^```$/gms)].map(({ 1: text = '' }) => text);
      const [member, reader] = documents.map((text) => (JSON.parse(text) as Policy).Statement);
      const own = (role === 'reader' ? reader : member) ?? [];
      if (role === 'rotator') return own.slice(0, 1);
      return role === 'reader' && store === 'dynamodb' ? [...own, ...(member?.slice(1) ?? [])] : own;
    };
    const essence = (statements: readonly Statement[]): unknown[] =>
      statements.map(({ Action, Condition = {} }) => ({ actions: [Action].flat().toSorted(), Condition }));
    for (const store of ['s3', 'dynamodb']) {
      const [key, ...rest] = policyIn(store, 'policies', role).Statement;
      expect(new Set([key?.Action].flat()), store).toEqual(new Set(listed));
      expect(essence(rest), store).toEqual(essence(rightsIn(store)));
    }
  });

  test('the bucket refuses unencrypted connections and unconditional writes of a ring', () => {
    expect(policyIn('s3', 'bucket_policy').Statement).toMatchObject([
      { Effect: 'Deny', Principal: '*', Action: 's3:*', Condition: { Bool: { 'aws:SecureTransport': 'false' } } },
      {
        Effect: 'Deny',
        Principal: '*',
        Action: 's3:PutObject',
        Resource: 'arn:aws:s3:::payments-sealring/payments.ring',
        Condition: { Null: { 's3:if-match': 'true', 's3:if-none-match': 'true' } },
      },
    ]);
  });
});
