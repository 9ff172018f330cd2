import { type KmsFailure, kmsLineOf } from '../foreign-error.ts';
import { error, type Finding } from './finding.ts';
import { kmsPermission } from './permissions.ts';

/** The finding for a failed call to the KMS. `keyId` is empty if it is not known. */
export function kmsFinding(failure: KmsFailure, keyId: string): Finding {
  const what = `${kmsLineOf(failure)}${keyId === '' ? '' : ` (key ${keyId})`}`;
  const { kind, provider, operation, code } = failure;
  switch (kind) {
    case 'denied':
      return deniedFinding(failure, what);
    case 'not-found':
      return error(
        'kms-not-found',
        what,
        'Check the key id, its account or project, and the region: a client finds only the keys of its own region.',
      );
    case 'disabled':
      return error('kms-disabled', what, disabledRemedy(provider, code));
    case 'throttled':
      return error(
        'kms-throttled',
        what,
        'Wait, find out who makes so many calls to the KMS, or raise its quota. Running servers continue to seal for sealOutageSeconds.',
      );
    case 'unavailable':
      return error('kms-unavailable', what, UNAVAILABLE);
    case 'corrupt':
      if (operation === 'sign') return error('kms-signature', what, SIGNATURE_REMEDY);
      return error(
        'kms-corrupt',
        what,
        `The answer to ${operation} failed a check. Make sure that nothing between this machine and the KMS changes it, and that the configuration names the right key.`,
      );
  }
}

export const SIGNATURE_REMEDY =
  'Configure a P-256 signing key (EC) as signKeyId, and its own public key in signPublicKeys.';

const UNAVAILABLE =
  'Check the network, proxy, endpoint and credentials of this machine. Running servers continue to seal for sealOutageSeconds.';

/** The reasons for `denied` other than a missing permission. */
type DenialReason = 'credentials' | 'key-kind' | 'network' | 'request' | 'service-off';

const DENIALS: Readonly<Record<string, DenialReason>> = {
  // AWS
  UnrecognizedClientException: 'credentials',
  InvalidClientTokenId: 'credentials',
  MissingAuthenticationToken: 'credentials',
  IncompleteSignature: 'credentials',
  InvalidSignatureException: 'credentials',
  InvalidKeyUsageException: 'key-kind',
  UnsupportedOperationException: 'key-kind',
  ValidationException: 'request',
  ValidationError: 'request',
  InvalidArnException: 'request',
  // Google Cloud
  CREDENTIALS_MISSING: 'credentials',
  UNAUTHENTICATED: 'credentials',
  INVALID_ARGUMENT: 'key-kind',
  SECURITY_POLICY_VIOLATED: 'network',
  SERVICE_DISABLED: 'service-off',
  BILLING_DISABLED: 'service-off',
  CONSUMER_SUSPENDED: 'service-off',
  // Azure
  Unauthorized: 'credentials',
  KeyOperationForbidden: 'key-kind',
  BadParameter: 'key-kind',
  ForbiddenByFirewall: 'network',
  ForbiddenByConnection: 'network',
};

/** Vault has no codes. Its status is 400 for a key of the wrong type, and 405 for the wrong engine. */
const VAULT_DENIALS: Readonly<Record<number, DenialReason>> = { 400: 'key-kind', 405: 'request' };

function reasonOf({ provider, code, status }: KmsFailure): DenialReason | undefined {
  if (code !== undefined) return DENIALS[code];
  return provider === 'vault-transit' && status !== undefined ? VAULT_DENIALS[status] : undefined;
}

/** The kind of key that each provider needs. */
const KEY_KINDS: Readonly<Record<string, string>> = {
  'aws-kms': 'Use a key with KeySpec SYMMETRIC_DEFAULT and KeyUsage ENCRYPT_DECRYPT.',
  'gcp-kms': 'Use a key with the purpose ENCRYPT_DECRYPT and the algorithm GOOGLE_SYMMETRIC_ENCRYPTION.',
  'azure-key-vault':
    'Use an RSA key with the operations wrapKey and unwrapKey as keyId, and an EC key on P-256 with the operation sign as signKeyId.',
  'vault-transit': 'Use a transit key of type aes256-gcm96 or chacha20-poly1305 that is not derived.',
};

function deniedFinding(failure: KmsFailure, what: string): Finding {
  const { provider, operation } = failure;
  switch (reasonOf(failure)) {
    case 'credentials':
      return error('kms-denied', what, 'Give this machine valid credentials for the role of the servers.');
    case 'key-kind':
      return error('kms-usage', what, KEY_KINDS[provider] ?? 'Use a key for symmetric encryption.');
    case 'request':
      return error(
        'kms-usage',
        what,
        'Correct the address, mount or id of the key in the configuration: the KMS does not accept it for this call.',
      );
    case 'network':
      return error('kms-denied', what, 'Allow the network of the servers in the firewall or perimeter of the KMS.');
    case 'service-off':
      return error('kms-denied', what, 'Enable the KMS API and billing in the project of the key.');
    case undefined:
      return error(
        'kms-denied',
        what,
        `Grant ${kmsPermission(provider, operation)} to the role of the servers, in its own policy and in the policy of the ` +
          'key. A condition on the ring name must match the ring name of this configuration.',
      );
  }
}

function disabledRemedy(provider: string, code: string | undefined): string {
  if (provider === 'aws-kms') {
    return code === 'KMSInvalidStateException'
      ? 'If the key is pending deletion, run aws kms cancel-key-deletion --key-id <id>, then aws kms enable-key --key-id <id>, before the waiting period ends.'
      : 'Enable the key: aws kms enable-key --key-id <id>. Otherwise, servers stop sealing within minutes.';
  }
  if (provider === 'gcp-kms') {
    return 'Enable or restore the key version: gcloud kms keys versions enable (or restore, if its destruction is scheduled).';
  }
  if (provider === 'azure-key-vault') {
    return 'Enable the key version: az keyvault key set-attributes --enabled true; recover a deleted key with az keyvault key recover.';
  }
  return 'Enable the KMS key again. Otherwise, servers stop sealing within minutes.';
}
