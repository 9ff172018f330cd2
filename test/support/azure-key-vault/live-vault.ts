import { DefaultAzureCredential } from '@azure/identity';
import { azureKeyVaultKeyWrapper, fetchAzureSignPublicKeys } from '@sealring/azure-key-vault';
import type { LawTarget } from './wrapper-laws.ts';

/**
 * A vault of Azure's, if the environment names one: `SEALRING_LIVE_AZURE_KEY_ID`, an RSA key with
 * `SEALRING_LIVE_AZURE_SIGN_KEY_ID` (a version of an EC key on P-256), or without it an oct-HSM key of a Managed HSM.
 * Credentials come from where `DefaultAzureCredential` finds them.
 */
export function liveTarget(environment: NodeJS.ProcessEnv): readonly LawTarget[] {
  const keyId = environment['SEALRING_LIVE_AZURE_KEY_ID'];
  const signKeyId = environment['SEALRING_LIVE_AZURE_SIGN_KEY_ID'];
  if (keyId === undefined && signKeyId === undefined) return [];
  const create: LawTarget['create'] = async () => {
    if (keyId === undefined) throw new Error('SEALRING_LIVE_AZURE_SIGN_KEY_ID goes with SEALRING_LIVE_AZURE_KEY_ID');
    const credential = new DefaultAzureCredential();
    // Slow on purpose: a credential may have to find out where it runs.
    const access = { credential, timeoutSeconds: 30 };
    if (signKeyId === undefined) return azureKeyVaultKeyWrapper({ keyId, algorithm: 'A256KW', ...access });
    const signPublicKeys = await fetchAzureSignPublicKeys({ signKeyIds: [signKeyId], ...access, maxAttempts: 1 });
    return azureKeyVaultKeyWrapper({ keyId, signKeyId, signPublicKeys, ...access });
  };
  return [{ name: 'the live vault', create, signs: signKeyId !== undefined }];
}
