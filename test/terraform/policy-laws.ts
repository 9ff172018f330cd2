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

/** What a policy is for. */
export interface Purpose {
  /** Whose rights these are: nobody else may be let in. Undefined for a role's own policy, which names nobody. */
  readonly principals: readonly string[] | undefined;
  readonly ring: string;
  /** A key's policy says `*` for its key; every other names what it is about. */
  readonly isKeyPolicy?: boolean;
}

const CONTEXT = 'kms:EncryptionContext:sealring:ring';

/** Actions that use a KMS key, or let somebody use it. */
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

/** Whether whoever a statement lets in may use the key, or let others use it. */
export function usesKey({ Action }: Statement): boolean {
  return listOf(Action).some((action) => KEY_USE.test(action));
}

/** Whom a statement lets in: those it names, or those that its condition leaves of everybody. */
function principalsOf({ Principal, Condition }: Statement): readonly string[] {
  if (Principal === undefined) return [];
  if (Principal !== '*') return Principal.AWS;
  return listOf(Condition?.['ArnEquals']?.['aws:PrincipalArn'] ?? '*');
}

/** What is wrong with a policy; nothing, if it is right. A Deny may be as wide as it likes. */
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

/** A table made from a backup is nobody's ring. */
function isCopy({ Resource }: Statement): boolean {
  return listOf(Resource).every((resource) => resource.endsWith('-restored'));
}
