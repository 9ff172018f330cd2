/**
 * The KMS key a wrapper was configured with, in one of the forms that KMS accepts
 * (AWS KMS Developer Guide, "Key identifiers (KeyId)").
 */
export type KeyName =
  | ({ readonly form: 'key-arn'; readonly id: string } & ArnScope)
  | { readonly form: 'key-id'; readonly id: string }
  | ({ readonly form: 'alias-arn' } & ArnScope)
  | { readonly form: 'alias-name' };

/** The scope of an ARN. An alias can point only to a key in the same scope. */
interface ArnScope {
  readonly partition: string;
  readonly region: string;
  readonly account: string;
}

const KEY_ID = '(?:mrk-[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})';
const ALIAS = 'alias/[A-Za-z0-9/_-]{1,250}';
const ARN = new RegExp(
  `^arn:(?<partition>aws(?:-[a-z]+)*):kms:(?<region>[a-z0-9-]{1,32}):(?<account>[0-9]{12}):(?:key/(?<id>${KEY_ID})|${ALIAS})$`,
);
const BARE = new RegExp(`^(?:(?<id>${KEY_ID})|${ALIAS})$`);

/** Parses the name of a KMS key; returns undefined for any other text. */
export function parseKeyName(text: string): KeyName | undefined {
  const arn = ARN.exec(text)?.groups as (ArnScope & { readonly id?: string }) | undefined;
  if (arn !== undefined) {
    const { id, ...scope } = arn;
    return id === undefined ? { form: 'alias-arn', ...scope } : { form: 'key-arn', id, ...scope };
  }
  const bare = BARE.exec(text)?.groups;
  if (bare === undefined) return undefined;
  return bare['id'] === undefined ? { form: 'alias-name' } : { form: 'key-id', id: bare['id'] };
}

/** Parses a full key ARN; returns undefined for anything else. */
export function parseKeyArn(text: string): Extract<KeyName, { form: 'key-arn' }> | undefined {
  const name = parseKeyName(text);
  return name?.form === 'key-arn' ? name : undefined;
}

/** Whether the id belongs to a multi-Region key, whose replicas share the key id but have different ARNs. */
export function isMultiRegionId(id: string): boolean {
  return id.startsWith('mrk-');
}

/**
 * Whether the key with the ARN `arn` can be the key that `name` refers to. A key ARN determines the key; a bare key id
 * leaves the account and the region undetermined; an alias leaves the key undetermined, but an alias ARN determines the
 * key's region and account.
 *
 * @param anyRegion - Whether to compare only the key ids of multi-Region keys, not their Regions.
 */
export function mayMean(name: KeyName, arn: string, anyRegion: boolean): boolean {
  const key = parseKeyArn(arn);
  if (key === undefined) return false;
  if (name.form === 'alias-name') return true;
  if ('id' in name && name.id !== key.id) return false;
  if (name.form === 'key-id') return true;
  const sameRegion = name.region === key.region || (anyRegion && isMultiRegionId(key.id));
  return sameRegion && name.partition === key.partition && name.account === key.account;
}
