import { createKmsCodec, type KeyWrapper, type KmsCodec, type KmsCodecOptions } from '@sealring/core';
import { option } from '@sealring/core/adapter';
import type { VaultKeyVersionId } from './key-id.ts';
import { azureKeyVaultKeyWrapper } from './key-wrapper.ts';
import { type AzureKeyVaultKeyWrapperOptions, readOptions, refuseSigningWith, versionIdOf } from './options.ts';
import { fetchAtStart } from './sign-public-keys.ts';
import type { AzureSignPublicKey } from './signing.ts';

const OWNER = 'createAzureKeyVaultCodec';
const MAX_ALSO_VERIFY = 15;
/** The shortest `startTimeoutSeconds` that a policy accepts, in milliseconds. */
const LEAST_START_MS = 10;

/**
 * Options of {@link createAzureKeyVaultCodec}: the options of the key wrapper, and the options of `createKmsCodec`
 * except `keyWrapper`.
 */
export interface AzureKeyVaultCodecOptions
  extends Omit<AzureKeyVaultKeyWrapperOptions, 'maxAttempts'>,
    Omit<KmsCodecOptions, 'keyWrapper' | 'closeKeyWrappers'> {
  /**
   * Further versions of signing keys whose signatures are accepted: versions earlier than `signKeyId`, and the next
   * version. Their public keys are fetched together with the public key of `signKeyId`, so this option cannot be
   * combined with `signPublicKeys`; 0 to 15. Default none.
   */
  readonly alsoVerify?: readonly string[] | undefined;
  /**
   * Attempts for each call that the ring makes; 1 to 10. Default 1, because the ring itself retries calls that a caller
   * waits for.
   */
  readonly maxAttempts?: number | undefined;
}

/**
 * Creates a codec over a ring whose data keys are wrapped by Azure Key Vault or Managed HSM: `azureKeyVaultKeyWrapper`
 * and `createKmsCodec` in one call. With `signKeyId` and without `signPublicKeys`, it first fetches the public keys of
 * `signKeyId` and `alsoVerify`; the codec uses them until it is closed. Fetching them is part of startup: it is
 * retried, and counts towards the policy's `startTimeoutSeconds`.
 *
 * @throws {TypeError} for an unknown option, for an option of the wrong type, or for RSA-OAEP-256 without a signing
 * key, unless `dangerouslyTrustStore` is set.
 * @throws {RangeError} for an option outside its bounds.
 * @throws {KeyWrapperError} or {@link RingStoreError} if startup fails.
 *
 * @example
 * ```ts
 * import { DefaultAzureCredential } from '@azure/identity';
 * import { createAzureKeyVaultCodec } from '@sealring/azure-key-vault';
 * import { fileRing } from '@sealring/core';
 *
 * await using codec = await createAzureKeyVaultCodec({
 *   keyId: 'https://payments.vault.azure.net/keys/ring-wrapping',
 *   signKeyId: 'https://payments.vault.azure.net/keys/ring-signing/0123456789abcdef0123456789abcdef',
 *   credential: new DefaultAzureCredential(),
 *   ring: fileRing('ring.json'),
 * });
 * ```
 */
export async function createAzureKeyVaultCodec(options: AzureKeyVaultCodecOptions): Promise<KmsCodec> {
  option.checkFactoryOptions(OWNER, options);
  const {
    keyId,
    credential,
    clients,
    disableChallengeResourceVerification,
    algorithm,
    alsoUnwrap,
    signKeyId,
    signPublicKeys,
    alsoVerify,
    callTimeoutSeconds,
    maxAttempts = 1,
    ...codecOptions
  } = options;
  const access = { credential, clients, disableChallengeResourceVerification, callTimeoutSeconds };
  const wrapperOptions = { keyId, ...access, maxAttempts, algorithm, alsoUnwrap };
  const versions = signKeysToFetch({ signKeyId, signPublicKeys, alsoVerify });
  if (versions === undefined) {
    const keyWrapper = azureKeyVaultKeyWrapper({ ...wrapperOptions, signKeyId, signPublicKeys });
    return createKmsCodec({ ...codecOptions, keyWrapper, closeKeyWrappers: true });
  }
  const settings = readOptions(wrapperOptions);
  refuseSigningWith(settings.algorithm);
  await checkCodecOptions(codecOptions, azureKeyVaultKeyWrapper(wrapperOptions));
  const startTimeoutMs = option.startTimeoutMsOf(codecOptions.policy);
  const startedAt = performance.now();
  const fetched = await fetchAtStart(versions, { ...settings, startTimeoutMs, signal: codecOptions.signal });
  const leftMs = Math.max(LEAST_START_MS, startTimeoutMs - (performance.now() - startedAt));
  return createKmsCodec({
    ...codecOptions,
    policy: { ...codecOptions.policy, startTimeoutSeconds: leftMs / 1_000 },
    keyWrapper: azureKeyVaultKeyWrapper({ ...wrapperOptions, signKeyId, signPublicKeys: fetched }),
    closeKeyWrappers: true,
  });
}

type CodecOptions = Omit<KmsCodecOptions, 'keyWrapper' | 'closeKeyWrappers'>;

/**
 * Lets `createKmsCodec` check its options before any call. It checks them first, and an aborted signal then ends the start.
 *
 * @param keyWrapper - The key wrapper, which cannot sign yet.
 */
async function checkCodecOptions(options: CodecOptions, keyWrapper: KeyWrapper): Promise<void> {
  option.signalOf(OWNER, options.signal);
  const ended = new Error('the options are checked');
  const signing = { ...keyWrapper, sign: notYet, verify: notYet };
  try {
    await createKmsCodec({ ...options, keyWrapper: signing, signal: AbortSignal.abort(ended) });
  } catch (error) {
    if (error !== ended) throw error;
  }
}

/** Never called: no start has begun. */
function notYet(): never {
  throw new Error('the public keys are not known yet');
}

/** The options that determine which signatures are accepted. */
interface SigningOptions {
  readonly signKeyId: string | undefined;
  readonly signPublicKeys: readonly AzureSignPublicKey[] | undefined;
  readonly alsoVerify: readonly string[] | undefined;
}

/** The versions whose public keys must be fetched, because they are not pinned; undefined if there are none. */
function signKeysToFetch({
  signKeyId,
  signPublicKeys,
  alsoVerify,
}: SigningOptions): readonly VaultKeyVersionId[] | undefined {
  if (signKeyId === undefined || signPublicKeys !== undefined) {
    if (alsoVerify === undefined) return undefined;
    throw option.rangeError(`${OWNER}: alsoVerify requires signKeyId, and cannot be combined with signPublicKeys`);
  }
  const check = (name: string, value: unknown): VaultKeyVersionId => versionIdOf(OWNER, name, value);
  const others = option.listOf(OWNER, 'alsoVerify', alsoVerify ?? [], 'key identifiers', MAX_ALSO_VERIFY, check);
  return [check('signKeyId', signKeyId), ...others];
}
