import { type KeyWrapper, localKeyWrapper } from '@sealring/core';

/** The KMS of a member: a master key in its own process, or an AWS KMS on the network. */
export type KmsPlace = { readonly masterKey: string } | { readonly endpoint: string; readonly keyId: string };

/** Creates the key wrapper in the member's process. */
export async function keyWrapperAt(place: KmsPlace): Promise<KeyWrapper> {
  if ('masterKey' in place) return localKeyWrapper({ masterKey: Buffer.from(place.masterKey, 'hex') });
  // Only the members that need the SDK load it, because fifty processes start at once.
  const [{ KMSClient }, { awsKmsKeyWrapper }] = await Promise.all([
    import('@aws-sdk/client-kms'),
    import('@sealring/aws-kms'),
  ]);
  const { endpoint, keyId } = place;
  const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
  const client = new KMSClient({ endpoint, region: 'us-east-1', maxAttempts: 1, credentials });
  return awsKmsKeyWrapper({ keyId, client, maxAttempts: 1 });
}
