/** A role assignment as Terraform plans it: a role's definition, and its assignment. */
export interface Grant {
  /** The definition of the custom role. A built-in one is named by the assignment, and has no definition here. */
  readonly definition: {
    readonly actions?: readonly string[] | null;
    readonly data_actions?: readonly string[] | null;
    readonly not_actions?: readonly string[] | null;
    readonly not_data_actions?: readonly string[] | null;
  };
  readonly assignment: {
    readonly scope: string;
    readonly principal_id: string;
    readonly role_definition_name?: string | null;
    readonly condition?: string | null;
    readonly condition_version?: string | null;
  };
}

/** The purpose of a grant. */
export interface Purpose {
  readonly principals: readonly string[];
  readonly blob: string;
  readonly mayUseKeys: boolean;
  /** Only the identity that makes the keys has permissions on a whole vault. */
  readonly isAdministrator?: boolean;
}

const KEY =
  /^\/subscriptions\/[^/]+\/resourceGroups\/[^/]+\/providers\/Microsoft\.KeyVault\/vaults\/[^/]+\/keys\/[^/]+$/;
const VAULT = /^\/subscriptions\/[^/]+\/resourceGroups\/[^/]+\/providers\/Microsoft\.KeyVault\/vaults\/[^/]+$/;
const CONTAINER =
  /^\/subscriptions\/[^/]+\/resourceGroups\/[^/]+\/providers\/Microsoft\.Storage\/storageAccounts\/[^/]+\/blobServices\/default\/containers\/[^/]+$/;

/** Uses a key, copies it, or deletes it permanently. */
const KEY_USE =
  /^Microsoft\.KeyVault\/vaults\/keys\/(encrypt|decrypt|wrap|unwrap|sign|verify|release|backup|restore|import|purge)\b/;
/** Actions that are not among these, or concern one blob. */
const CONDITION =
  /^\(\((.*)\) OR \(@Resource\[Microsoft\.Storage\/storageAccounts\/blobServices\/containers\/blobs:path\] StringEquals '([^']*)'\)\)$/;

/** The defects of a grant; none if it is correct. */
export function faultsOf({ definition, assignment }: Grant, purpose: Purpose): string[] {
  const faults: string[] = [];
  const dataActions = definition.data_actions ?? [];
  for (const action of definition.actions ?? []) faults.push(`control plane: ${action}`);
  for (const action of dataActions) {
    if (action.includes('*')) faults.push(`action ${action}`);
    if (KEY_USE.test(action) && !purpose.mayUseKeys) faults.push(`uses keys: ${action}`);
  }
  // They remove permissions that a wildcard grants.
  for (const action of [...(definition.not_actions ?? []), ...(definition.not_data_actions ?? [])]) {
    faults.push(`all but ${action}`);
  }
  const { scope, principal_id: principal, role_definition_name: builtIn } = assignment;
  if (builtIn !== undefined && builtIn !== null) faults.push(`built-in role ${builtIn}`);
  if (!isNarrow(scope, purpose)) faults.push(`scope ${scope}`);
  if (!purpose.principals.includes(principal)) faults.push(`principal ${principal}`);
  if (CONTAINER.test(scope)) faults.push(...faultsOfCondition(assignment, dataActions, purpose.blob));
  return faults;
}

function isNarrow(scope: string, { isAdministrator = false }: Purpose): boolean {
  return isAdministrator ? VAULT.test(scope) : KEY.test(scope) || CONTAINER.test(scope);
}

/** A condition lets through every action that it does not name. */
function faultsOfCondition(
  { condition, condition_version: version }: Grant['assignment'],
  dataActions: readonly string[],
  blob: string,
): string[] {
  const [, heads, path] = CONDITION.exec(condition ?? '') ?? [];
  if (heads === undefined) return ['no condition'];
  const faults: string[] = [];
  if (version !== '2.0') faults.push('no version of the condition');
  if (path !== blob) faults.push('condition: not the blob');
  for (const action of dataActions) {
    if (!heads.includes(`!(ActionMatches{'${action}'}`)) faults.push(`condition: not for ${action}`);
  }
  return faults;
}
