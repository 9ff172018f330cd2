import { type KmsFailure, kmsLineOf } from '../foreign-error.ts';
import { error, type Finding } from './finding.ts';
import { kmsRight } from './rights.ts';

/** What a failed call to the KMS means for whoever runs the servers. */
export function kmsFinding(failure: KmsFailure, keyId: string): Finding {
  const what = `${kmsLineOf(failure)} (key ${keyId})`;
  const { kind, provider, operation, code } = failure;
  switch (kind) {
    case 'denied':
      return error('kms-denied', what, deniedRemedy(failure));
    case 'not-found':
      return error(
        'kms-not-found',
        what,
        'Check the key id, its account or project, and the region: a client finds keys of its own region only.',
      );
    case 'disabled':
      return error('kms-disabled', what, disabledRemedy(provider, code));
    case 'throttled':
      return error('kms-throttled', what, 'Raise the quota of the KMS, or wait: something else uses it up.');
    case 'unavailable':
      return error(
        'kms-unavailable',
        what,
        'Check network, proxy, endpoint and credentials of this machine; servers go on by what they hold for sealOutageSeconds.',
      );
    case 'corrupt':
      if (operation === 'sign') {
        return error(
          'kms-signature',
          what,
          'Pin the public half of the signing key that is configured: signKeyId and signPublicKeys belong together.',
        );
      }
      return error(
        'kms-corrupt',
        what,
        `The answer to ${operation} failed a check: see that nothing between here and the KMS changes it, and that the key is the one configured.`,
      );
  }
}

/** Codes by which services say that the credentials are wrong, and nothing of rights. */
const BAD_CREDENTIALS: ReadonlySet<string> = new Set([
  // AWS
  'UnrecognizedClientException',
  'InvalidClientTokenId',
  'MissingAuthenticationToken',
  'IncompleteSignature',
  'InvalidSignatureException',
  // Google Cloud
  'CREDENTIALS_MISSING',
  'UNAUTHENTICATED',
  // Azure
  'Unauthorized',
]);

function deniedRemedy({ provider, operation, code }: KmsFailure): string {
  if (code !== undefined && BAD_CREDENTIALS.has(code))
    return 'Give this machine valid credentials of the role of the servers.';
  return (
    `Grant ${kmsRight(provider, operation)} to the role of the servers, in its own policy and in the key's; where a ` +
    'condition names the ring, it must be the ring name of this configuration.'
  );
}

function disabledRemedy(provider: string, code: string | undefined): string {
  if (provider === 'aws-kms') {
    return code === 'KMSInvalidStateException'
      ? 'The key is likely pending deletion: aws kms cancel-key-deletion --key-id <id>, then aws kms enable-key --key-id <id>, before the window ends.'
      : 'Enable the key: aws kms enable-key --key-id <id>. Servers stop sealing within minutes.';
  }
  if (provider === 'gcp-kms') {
    return 'Enable or restore the key version: gcloud kms keys versions enable (or restore, if its destruction is scheduled).';
  }
  if (provider === 'azure-key-vault') {
    return 'Enable the key version: az keyvault key set-attributes --enabled true; recover a deleted key with az keyvault key recover.';
  }
  return 'Enable the KMS key again. Servers stop sealing within minutes.';
}
