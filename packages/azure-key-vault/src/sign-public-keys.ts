import { types } from 'node:util';
import { KeyWrapperError } from '@sealring/core';
import { keyWrapping, option, type ServiceFailure, vendorError } from '@sealring/core/adapter';
import type { AzureKeyVaultClients } from './clients.ts';
import { isOf, type VaultKeyVersionId } from './key-id.ts';
import { type AzureKeyVaultAccess, readAccess, versionIdOf } from './options.ts';
import { type AzureSignPublicKey, publicKeyOf } from './signing.ts';
import { PROVIDER, VaultCalls } from './vault-calls.ts';

/** Options of {@link fetchAzureSignPublicKeys}. */
export interface FetchAzureSignPublicKeysOptions extends AzureKeyVaultAccess {
  /** Versions of EC keys on P-256: `https://VAULT/keys/NAME/VERSION`; 1 to 16. Required. */
  readonly signKeyIds: readonly string[];
  /**
   * Attempts per key, the first one included; 1 to 10. Default 10; with the default, no attempt begins later than 15
   * seconds after the first. Startup therefore survives an outage of a few seconds.
   */
  readonly maxAttempts?: number | undefined;
  /** Ends the calls early. */
  readonly signal?: AbortSignal | undefined;
}

const OWNER = 'fetchAzureSignPublicKeys';
const OPTION_NAMES: readonly (keyof FetchAzureSignPublicKeysOptions)[] = [
  'signKeyIds',
  'credential',
  'clients',
  'disableChallengeResourceVerification',
  'callTimeoutSeconds',
  'maxAttempts',
  'signal',
];
const MAX_KEYS = 16;
const DEFAULT_ATTEMPTS = 10;
/**
 * With the default number of attempts, no attempt begins after this time, because a vault that never answers would
 * otherwise delay the failure by about a minute.
 */
const LAST_ATTEMPT_MS = 15_000;

/**
 * Gets public signing keys from the vault, for `signPublicKeys`. Each key takes one call, which requires the `get`
 * permission on that key. The keys are as trustworthy as the connection to the vault; pin them in your deployment to
 * avoid that dependency.
 *
 * @throws {TypeError | RangeError} for wrong options.
 * @throws {KeyWrapperError} `corrupt` for an answer that is not the P-256 key that was requested; otherwise the vault's
 * refusal.
 *
 * @example
 * ```ts no-run
 * const signPublicKeys = await fetchAzureSignPublicKeys({ signKeyIds: [signKeyId], credential });
 * ```
 */
export async function fetchAzureSignPublicKeys(
  options: FetchAzureSignPublicKeysOptions,
): Promise<readonly AzureSignPublicKey[]> {
  option.refuseUnknown(OWNER, options, OPTION_NAMES);
  const { signKeyIds, maxAttempts, signal } = options;
  const { clients, timeoutMs } = readAccess(OWNER, options);
  const versions = option.listOf(OWNER, 'signKeyIds', signKeyIds, 'key identifiers', MAX_KEYS, (name, entry) =>
    versionIdOf(OWNER, name, entry),
  );
  if (versions.length === 0) throw option.rangeError(`${OWNER}: signKeyIds must have at least one entry, got none`);
  const limits = {
    timeoutMs,
    maxAttempts: option.integerWithin(OWNER, 'maxAttempts', maxAttempts ?? DEFAULT_ATTEMPTS, 1, 10),
  };
  const beganMs = performance.now();
  const mayPass = (): boolean => maxAttempts !== undefined || performance.now() - beganMs < LAST_ATTEMPT_MS;
  const calls = new VaultCalls(limits, mayPass);
  return fetchAll(versions, clients, calls, option.signalOf(OWNER, signal));
}

/** The clients and the deadlines of a startup that fetches public keys. */
export interface StartLimits {
  readonly clients: AzureKeyVaultClients;
  /** Longest wait for one attempt. */
  readonly timeoutMs: number;
  /** Longest wait for all attempts, pauses included. */
  readonly startTimeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

/**
 * Like {@link fetchAzureSignPublicKeys}, but retries until the startup deadline.
 *
 * @throws {KeyWrapperError} a refusal at once; otherwise the last failure before the deadline, with the number of
 * attempts.
 */
export async function fetchAtStart(
  versions: readonly VaultKeyVersionId[],
  { clients, timeoutMs, startTimeoutMs, signal }: StartLimits,
): Promise<readonly AzureSignPublicKey[]> {
  const deadline = AbortSignal.timeout(startTimeoutMs);
  let last: ServiceFailure = { kind: 'unavailable', hint: 'no answer within startTimeoutSeconds' };
  const calls = new VaultCalls({ timeoutMs, maxAttempts: Number.POSITIVE_INFINITY }, (failure) => {
    last = failure;
    return true;
  });
  try {
    return await fetchAll(versions, clients, calls, signal ? AbortSignal.any([signal, deadline]) : deadline);
  } catch (error) {
    const hasTimedOut = deadline.aborted && signal?.aborted !== true;
    // The vault's last answer is more informative than the abort at the deadline.
    if (!hasTimedOut || !(error instanceof KeyWrapperError) || error.kind !== 'unavailable') throw error;
    const { kind, ...facts } = last;
    throw new KeyWrapperError(kind, {
      ...facts,
      provider: PROVIDER,
      operation: 'sign',
      attempts: error.summary.attempts,
    });
  }
}

/** Fetches all keys at the same time. The first failure ends the calls for the other keys. */
async function fetchAll(
  versions: readonly VaultKeyVersionId[],
  clients: AzureKeyVaultClients,
  calls: VaultCalls,
  signal: AbortSignal | undefined,
): Promise<readonly AzureSignPublicKey[]> {
  const caller = { signal, onServiceDate: undefined };
  const fetchOne = async (version: VaultKeyVersionId): Promise<AzureSignPublicKey> => {
    const { vaultUrl, name } = version;
    const { answer } = await calls.call('sign', caller, (call) =>
      clients.keys(vaultUrl).getKey(name, { ...call, version: version.version }),
    );
    return publicKeyIn(answer, version);
  };
  try {
    return await Promise.all(versions.map(fetchOne));
  } finally {
    calls.close();
  }
}

/** The public key in an answer from `getKey`, whose coordinates the SDK has converted to bytes. */
function publicKeyIn(answer: unknown, version: VaultKeyVersionId): AzureSignPublicKey {
  const key = vendorError.property(answer, 'key');
  const coordinate = (name: string): string => {
    const bytes = vendorError.property(key, name);
    return types.isUint8Array(bytes) ? Buffer.from(bytes).toString('base64url') : '';
  };
  const found = Object.freeze({
    kty: 'EC',
    crv: String(vendorError.property(key, 'crv')),
    x: coordinate('x'),
    y: coordinate('y'),
  });
  if (!isOf(version, vendorError.property(answer, 'id')) || publicKeyOf(found) === undefined) {
    throw keyWrapping.corrupt(
      PROVIDER,
      'sign',
      'the answer of the vault is not a P-256 key with the requested identifier',
    );
  }
  return found;
}
