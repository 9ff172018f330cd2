/** A policy document of AWS, as the module renders it. */
export interface Policy {
  readonly Version: string;
  readonly Statement: readonly Statement[];
}

export interface Statement {
  readonly Sid: string;
  readonly Effect: 'Allow' | 'Deny';
  readonly Principal?: '*' | { readonly AWS: readonly string[] };
  readonly Action: string | readonly string[];
  readonly Resource: string | readonly string[];
  readonly Condition?: Readonly<Record<string, Readonly<Record<string, string | readonly string[]>>>>;
}

/** The purpose of a policy. */
export interface Purpose {
  /** The principals of the policy: it must admit no others. Undefined for a role's own policy, which names none. */
  readonly principals: readonly string[] | undefined;
  readonly ring: string;
  /** A key's policy says `*` for its key; every other names its resource. */
  readonly isKeyPolicy?: boolean;
}

const CONTEXT = 'kms:EncryptionContext:sealring:ring';

/** Actions that use a KMS key, or allow others to use it. */
const KEY_USE =
  /^kms:(Encrypt|Decrypt|ReEncrypt.*|GenerateDataKey.*|GenerateMac|VerifyMac|Sign|Verify|DeriveSharedSecret|CreateGrant)$/;

function listOf(value: string | readonly string[]): readonly string[] {
  return typeof value === 'string' ? [value] : value;
}

/** The actions that a policy allows. */
export function allowed(policy: Policy): string[] {
  const actions = policy.Statement.filter(({ Effect }) => Effect === 'Allow').flatMap(({ Action }) => listOf(Action));
  return [...new Set(actions)].toSorted();
}

/** Whether the principals of a statement may use the key, or allow others to use it. */
export function usesKey({ Action }: Statement): boolean {
  return listOf(Action).some((action) => KEY_USE.test(action));
}

/** The principals of a statement: those that it names, or all that its condition leaves. */
function principalsOf({ Principal, Condition }: Statement): readonly string[] {
  if (Principal === undefined) return [];
  if (Principal !== '*') return Principal.AWS;
  return listOf(Condition?.['ArnEquals']?.['aws:PrincipalArn'] ?? '*');
}

/** The defects of a policy; none if it is correct. A Deny may be as broad as needed. */
export function faultsOf(policy: Policy, { principals, ring, isKeyPolicy = false }: Purpose): string[] {
  const faults: string[] = [];
  for (const statement of policy.Statement) {
    if (statement.Effect === 'Deny') continue;
    const blame = (fault: string): void => void faults.push(`${statement.Sid}: ${fault}`);
    const actions = listOf(statement.Action);
    for (const action of actions) if (action.includes('*')) blame(`action ${action}`);
    for (const resource of listOf(statement.Resource)) {
      if (resource.includes('*') && !isKeyPolicy) blame(`resource ${resource}`);
    }
    if (usesKey(statement) && !bindsRing(statement, ring)) blame('no encryption context');
    if (actions.some((action) => action.startsWith('dynamodb:') && /(Get|Put)Item$/.test(action))) {
      if (!isCopy(statement) && !bindsItems(statement, ring)) blame('no leading keys');
    }
    if ((statement.Principal !== undefined) !== (principals !== undefined)) blame('principal');
    for (const principal of principalsOf(statement)) {
      if (!principals?.includes(principal)) blame(`principal ${principal}`);
    }
  }
  return faults;
}

function bindsRing({ Condition }: Statement, ring: string): boolean {
  return Condition?.['StringEquals']?.[CONTEXT] === ring;
}

function bindsItems({ Condition }: Statement, ring: string): boolean {
  const exact = Condition?.['ForAllValues:StringEquals']?.['dynamodb:LeadingKeys'];
  const like = Condition?.['ForAllValues:StringLike']?.['dynamodb:LeadingKeys'];
  return String(exact) === `ring#${ring}` || String(like) === 'used#*';
}

/** A table that is restored from a backup is not the ring of any server. */
function isCopy({ Resource }: Statement): boolean {
  return listOf(Resource).every((resource) => resource.endsWith('-restored'));
}
