import type { KeyObject } from 'node:crypto';
import { option } from '@sealring/core/adapter';
import { type AzureCredential, type AzureKeyVaultClients, type AzureWrapAlgorithm, ownClients } from './clients.ts';
import { parseKeyId, parseVersionId, type VaultKeyId, type VaultKeyVersionId } from './key-id.ts';
import { type AzureSignPublicKey, readPublicKeys } from './signing.ts';

/** The options with which every function of this package reaches a vault: either `credential` or `clients`. */
export interface AzureKeyVaultAccess {
  /** Provides tokens: for example, `new DefaultAzureCredential()` of `@azure/identity`. */
  readonly credential?: AzureCredential | undefined;
  /** Creates the SDK's clients, if `credential` alone is not enough. */
  readonly clients?: AzureKeyVaultClients | undefined;
  /**
   * Whether the SDK skips its check that the vault asks for a token for the vault's own domain. Set it for an emulator,
   * or for a vault behind a different host name: the server at that address then receives a token for whichever domain it
   * names. Allowed only with `credential`; with `clients`, set the SDK's own option. Default false.
   */
  readonly disableChallengeResourceVerification?: boolean | undefined;
  /** Longest wait for one attempt, in seconds; 0.01 to 60. Default 5. */
  readonly callTimeoutSeconds?: number | undefined;
}

/** Options of {@link azureKeyVaultKeyWrapper}. */
export interface AzureKeyVaultKeyWrapperOptions extends AzureKeyVaultAccess {
  /**
   * The key that wraps data keys: `https://VAULT/keys/NAME`, whose current version is used, or one version of it,
   * `https://VAULT/keys/NAME/VERSION`. Required.
   */
  readonly keyId: string;
  /** `RSA-OAEP-256` for an RSA key of a vault or HSM, `A256KW` for an oct-HSM key. Default `RSA-OAEP-256`. */
  readonly algorithm?: AzureWrapAlgorithm | undefined;
  /**
   * Replaced keys with the same algorithm whose wrapped keys may still be unwrapped. An entry without a version covers
   * all versions of the key; 0 to 64. Default none.
   */
  readonly alsoUnwrap?: readonly string[] | undefined;
  /**
   * One version of an EC key on P-256, which signs ring entries; needs `signPublicKeys`. Not allowed with A256KW.
   * Default none.
   */
  readonly signKeyId?: string | undefined;
  /**
   * Pinned public keys: an entry that any of them signed is accepted; 1 to 16. Not allowed with A256KW. Default none.
   */
  readonly signPublicKeys?: readonly AzureSignPublicKey[] | undefined;
  /** Attempts per call, the first one included; only `throttled` and `unavailable` are retried; 1 to 10. Default 3. */
  readonly maxAttempts?: number | undefined;
}

/** A frozen copy of the validated options. */
export interface Settings {
  readonly keyId: VaultKeyId;
  readonly clients: AzureKeyVaultClients;
  readonly algorithm: AzureWrapAlgorithm;
  readonly alsoUnwrap: readonly VaultKeyId[];
  readonly signKeyId: VaultKeyVersionId | undefined;
  readonly signPublicKeys: readonly KeyObject[] | undefined;
  readonly timeoutMs: number;
  readonly maxAttempts: number;
}

const OWNER = 'azureKeyVaultKeyWrapper';

const OPTION_NAMES = [
  'keyId',
  'credential',
  'clients',
  'disableChallengeResourceVerification',
  'algorithm',
  'alsoUnwrap',
  'signKeyId',
  'signPublicKeys',
  'callTimeoutSeconds',
  'maxAttempts',
] as const satisfies readonly (keyof AzureKeyVaultKeyWrapperOptions)[];

const MAX_ALSO_UNWRAP = 64;
const KEY_FORM = 'https://VAULT/keys/NAME or https://VAULT/keys/NAME/VERSION';

/**
 * @throws {TypeError} for an unknown option or a wrong type.
 * @throws {RangeError} for a value outside its bounds, or options that contradict each other.
 */
export function readOptions(options: AzureKeyVaultKeyWrapperOptions): Settings {
  option.refuseUnknown(OWNER, options, OPTION_NAMES);
  const { keyId, algorithm = 'RSA-OAEP-256', alsoUnwrap = [], signKeyId, signPublicKeys, maxAttempts = 3 } = options;
  const { clients, timeoutMs } = readAccess(OWNER, options);
  const settings: Settings = {
    keyId: keyIdOf('keyId', keyId),
    clients,
    algorithm: option.oneOf(OWNER, 'algorithm', algorithm, ['RSA-OAEP-256', 'A256KW']),
    alsoUnwrap: option.listOf(OWNER, 'alsoUnwrap', alsoUnwrap, 'key identifiers', MAX_ALSO_UNWRAP, keyIdOf),
    signKeyId: signKeyId === undefined ? undefined : versionIdOf(OWNER, 'signKeyId', signKeyId),
    signPublicKeys: signPublicKeys === undefined ? undefined : readPublicKeys(OWNER, signPublicKeys),
    timeoutMs,
    maxAttempts: option.integerWithin(OWNER, 'maxAttempts', maxAttempts, 1, 10),
  };
  checkSigning(settings);
  return Object.freeze(settings);
}

/** @throws {TypeError} unless exactly one of `credential` and `clients` is given. */
export function readAccess(
  owner: string,
  { credential, clients, disableChallengeResourceVerification, callTimeoutSeconds = 5 }: AzureKeyVaultAccess,
): { readonly clients: AzureKeyVaultClients; readonly timeoutMs: number } {
  const timeoutMs = option.timeoutMsOf(owner, callTimeoutSeconds);
  if ((credential === undefined) === (clients === undefined)) {
    throw option.typeError(`${owner}: exactly one of credential and clients must be given`);
  }
  if (clients === undefined) {
    const wanted = 'a TokenCredential (an object with getToken)';
    const checked = option.objectWith<AzureCredential>(owner, 'credential', credential, 'getToken', wanted);
    const skipsCheck = option.flag(
      owner,
      'disableChallengeResourceVerification',
      disableChallengeResourceVerification ?? false,
    );
    return { clients: ownClients(checked, skipsCheck), timeoutMs };
  }
  if (disableChallengeResourceVerification !== undefined) {
    throw option.rangeError(`${owner}: disableChallengeResourceVerification requires credential`);
  }
  const wanted = 'an object with keys and cryptography';
  option.objectWith<AzureKeyVaultClients>(owner, 'clients', clients, 'keys', wanted);
  return { clients: option.objectWith(owner, 'clients', clients, 'cryptography', wanted), timeoutMs };
}

/** @throws {TypeError | RangeError} for a value that is not an identifier of one version. */
export function versionIdOf(owner: string, name: string, value: unknown): VaultKeyVersionId {
  const given = option.text(owner, name, value);
  const id = parseVersionId(given);
  if (id === undefined) throw option.outOfRange(owner, name, 'one version, https://VAULT/keys/NAME/VERSION,', given);
  return id;
}

function keyIdOf(name: string, value: unknown): VaultKeyId {
  const given = option.text(OWNER, name, value);
  const id = parseKeyId(given);
  if (id === undefined) throw option.outOfRange(OWNER, name, KEY_FORM, given);
  return id;
}

function checkSigning({ algorithm, signKeyId, signPublicKeys }: Settings): void {
  if (signKeyId !== undefined && signPublicKeys === undefined) {
    throw option.typeError(
      `${OWNER}: signKeyId needs signPublicKeys, because signatures are checked without a call; ` +
        'get them with fetchAzureSignPublicKeys, or use createAzureKeyVaultCodec, which gets them itself',
    );
  }
  if (signPublicKeys !== undefined) refuseSigningWith(algorithm);
}

/** @throws {RangeError} for an algorithm whose wraps need no signature. */
export function refuseSigningWith(algorithm: AzureWrapAlgorithm): void {
  if (algorithm === 'RSA-OAEP-256') return;
  throw option.rangeError(
    `${OWNER}: signPublicKeys and signKeyId are for RSA-OAEP-256: A256KW wraps need no signature`,
  );
}
