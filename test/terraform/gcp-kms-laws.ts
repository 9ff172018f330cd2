/** One IAM binding, as planned. */
export interface Grant {
  /** The resource's type, which gives the scope. */
  readonly type: string;
  readonly member: string;
  /** The role as the binding names it. */
  readonly role: string;
  /** A condition in CEL; undefined without a condition. */
  readonly condition: string | undefined;
}

/** The allowed grants of a module. */
export interface Bounds {
  /** The custom roles, by the names that bindings use. */
  readonly roles: ReadonlyMap<string, readonly string[]>;
  readonly principals: readonly string[];
  readonly bucket: string;
  readonly object: string;
}

/** The only scopes: the key and the bucket, not the key ring, the project or the folder. */
const SCOPES: Readonly<Record<string, RegExp>> = {
  google_kms_crypto_key_iam_member: /^cloudkms\.cryptoKey(s|Versions)\./,
  google_storage_bucket_iam_member: /^storage\.objects\./,
};

/** Permissions that let their holder gain others, or destroy the key. */
const WIDE = /\*|setIamPolicy|cryptoKeyVersions\.destroy|cryptoKeys\.(create|update|delete)|cryptoKeyVersions\.delete/;

/** A listing concerns the bucket, so no condition can name the object. */
const OF_THE_BUCKET = ['storage.objects.list'];

/** The defects of a grant; none if it is correct. */
export function faultsOf({ type, member, role, condition }: Grant, bounds: Bounds): string[] {
  const faults: string[] = [];
  const scope = SCOPES[type];
  if (scope === undefined) faults.push(`scope ${type}`);
  const permissions = bounds.roles.get(role);
  // A predefined role grants more than any role here needs; the basic ones grant everything.
  if (permissions === undefined) faults.push(`role ${role}`);
  for (const permission of permissions ?? []) {
    if (WIDE.test(permission)) faults.push(`permission ${permission}`);
    else if (scope !== undefined && !scope.test(permission)) faults.push(`permission ${permission} on ${type}`);
  }
  if (!bounds.principals.includes(member)) faults.push(`principal ${member}`);
  const objects = (permissions ?? []).filter((each) => each.startsWith('storage.') && !OF_THE_BUCKET.includes(each));
  if (objects.length > 0 && condition !== onlyObject(bounds)) faults.push('no condition on the object');
  return faults;
}

function onlyObject({ bucket, object }: Bounds): string {
  return `resource.name == "projects/_/buckets/${bucket}/objects/${object}"`;
}
