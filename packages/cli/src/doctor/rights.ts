/** What each provider calls the right to an operation: the tables "Least rights" of the adapters' READMEs. */
const KMS_RIGHTS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'aws-kms': { generate: 'kms:GenerateDataKey', wrap: 'kms:Encrypt', unwrap: 'kms:Decrypt' },
  'gcp-kms': {
    wrap: 'cloudkms.cryptoKeyVersions.useToEncrypt',
    unwrap: 'cloudkms.cryptoKeyVersions.useToDecrypt',
  },
  'azure-key-vault': {
    wrap: 'Microsoft.KeyVault/vaults/keys/wrap/action and keys/read',
    unwrap: 'Microsoft.KeyVault/vaults/keys/unwrap/action',
    sign: 'Microsoft.KeyVault/vaults/keys/sign/action on the signing key',
  },
  'vault-transit': {
    wrap: 'the capability update on <mount>/encrypt/<key>',
    unwrap: 'the capability update on <mount>/decrypt/<key>',
  },
};

const READ_RIGHTS: Readonly<Record<string, string>> = {
  s3: 's3:GetObject on the object, and s3:ListBucket on the bucket: without it a missing ring looks like a refusal',
  dynamodb: 'dynamodb:GetItem on the table, for the item of this ring',
  gcs: 'storage.objects.get, and storage.objects.list: without it a missing ring looks like a refusal',
  'azure-blob': 'blobs/read on the container or the blob',
  redis: 'the commands of "Least rights" in the README of @sealring/redis, on the ring’s key',
  postgres: 'SELECT on the table of the ring',
  file: 'read access to the file, and to its directory',
};

const WRITE_RIGHTS: Readonly<Record<string, string>> = {
  s3: 's3:PutObject on the object',
  dynamodb: 'dynamodb:PutItem on the table, for the item of this ring',
  gcs: 'storage.objects.create and storage.objects.delete',
  'azure-blob': 'blobs/write on the container or the blob',
  redis: '+evalsha +eval +hset +del and write access (~, not %R~) to the ring’s key',
  postgres: 'INSERT and UPDATE on the table of the ring',
  file: 'write access to the file, its directory and <file>.lock',
};

export function kmsRight(provider: string, operation: string): string {
  return KMS_RIGHTS[provider]?.[operation] ?? `the right to ${operation} with the KMS key`;
}

export function readRight(kind: string): string {
  return READ_RIGHTS[kind] ?? 'the right to read the ring';
}

export function writeRight(kind: string): string {
  return WRITE_RIGHTS[kind] ?? 'the right to write the ring';
}
