/** Each provider's name for the permission that an operation needs, from the tables in the adapters' READMEs. */
const KMS_PERMISSIONS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'aws-kms': { generate: 'kms:GenerateDataKey', wrap: 'kms:Encrypt', unwrap: 'kms:Decrypt' },
  'gcp-kms': {
    wrap: 'cloudkms.cryptoKeyVersions.useToEncrypt',
    unwrap: 'cloudkms.cryptoKeyVersions.useToDecrypt',
  },
  'azure-key-vault': {
    wrap: 'Microsoft.KeyVault/vaults/keys/wrap/action and keys/read',
    unwrap: 'Microsoft.KeyVault/vaults/keys/unwrap/action',
    sign: 'Microsoft.KeyVault/vaults/keys/sign/action and keys/read on the signing key',
  },
  'vault-transit': {
    wrap: 'the capability update on <mount>/encrypt/<key>',
    unwrap: 'the capability update on <mount>/decrypt/<key>',
  },
};

const READ_PERMISSIONS: Readonly<Record<string, string>> = {
  s3: 's3:GetObject on the object, and s3:ListBucket on the bucket: without the latter, S3 answers "denied" if the ring is missing',
  dynamodb: 'dynamodb:GetItem on the table, for the item of this ring',
  gcs: 'storage.objects.get, and storage.objects.list: without the latter, Cloud Storage answers "denied" if the ring is missing',
  'azure-blob': 'blobs/read on the container or the blob',
  kubernetes: 'the verb get on the Secret or ConfigMap, by its name',
  redis: 'the commands that the README of @sealring/redis lists, on the key of the ring',
  postgres: 'SELECT on the table of the ring',
  file: 'read access to the file and its directory',
};

const WRITE_PERMISSIONS: Readonly<Record<string, string>> = {
  s3: 's3:PutObject on the object',
  dynamodb: 'dynamodb:PutItem on the table, for the item of this ring',
  gcs: 'storage.objects.create and storage.objects.delete',
  'azure-blob': 'blobs/write on the container or the blob',
  kubernetes: 'the verb patch on the Secret or ConfigMap, by its name; and create, unless the object already exists',
  redis: '+evalsha +eval +hset +del and write access (~, not %R~) to the key of the ring',
  postgres: 'INSERT and UPDATE on the table of the ring',
  file: 'write access to the file, its directory and <file>.lock',
};

/** The permission for an operation of the KMS. */
export function kmsPermission(provider: string, operation: string): string {
  return KMS_PERMISSIONS[provider]?.[operation] ?? `permission to ${operation} with the KMS key`;
}

/** The permission to read the ring. */
export function readPermission(kind: string): string {
  return READ_PERMISSIONS[kind] ?? 'permission to read the ring';
}

/** The permission to write the ring. */
export function writePermission(kind: string): string {
  return WRITE_PERMISSIONS[kind] ?? 'permission to write the ring';
}
