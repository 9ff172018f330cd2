import { createKmsCodec, type KmsCodec, type KmsCodecOptions } from '@sealring/core';
import { option } from '@sealring/core/adapter';
import { vaultTransitKeyWrapper } from './key-wrapper.ts';
import type { VaultTransitKeyWrapperOptions } from './options.ts';

/**
 * Options of {@link createVaultTransitCodec}: the options of the key wrapper, and the options of `createKmsCodec`
 * except `keyWrapper`.
 */
export interface VaultTransitCodecOptions
  extends Omit<VaultTransitKeyWrapperOptions, 'maxAttempts'>,
    Omit<KmsCodecOptions, 'keyWrapper' | 'closeKeyWrappers'> {
  /**
   * Attempts for each call that the ring makes; 1 to 10. Default 1, because the ring itself retries calls that a caller
   * waits for.
   */
  readonly maxAttempts?: number | undefined;
}

/**
 * Creates a codec over a ring whose data keys are wrapped by the transit engine of HashiCorp Vault or OpenBao:
 * `vaultTransitKeyWrapper` and `createKmsCodec` in one call. Reads no environment variables, not even `VAULT_ADDR`.
 *
 * @throws {TypeError} for an unknown option, or for an option of the wrong type.
 * @throws {RangeError} for an option outside its bounds.
 * @throws {KeyWrapperError} or {@link RingStoreError} if startup fails.
 *
 * @example
 * ```ts
 * import { fileRing } from '@sealring/core';
 * import { createVaultTransitCodec } from '@sealring/vault-transit';
 *
 * await using codec = await createVaultTransitCodec({
 *   address: 'https://vault.example.com:8200',
 *   keyId: 'payments',
 *   token: () => readFileSync('/run/vault/token', 'utf8').trim(),
 *   ring: fileRing('ring.json'),
 * });
 * ```
 */
export async function createVaultTransitCodec(options: VaultTransitCodecOptions): Promise<KmsCodec> {
  option.checkFactoryOptions('createVaultTransitCodec', options);
  const { address, keyId, mount, namespace, token, client, alsoUnwrap, callTimeoutSeconds, ...others } = options;
  const { dangerouslyAllowHttp, maxAttempts = 1, ...codecOptions } = others;
  const place = { address, dangerouslyAllowHttp, namespace, mount, keyId, alsoUnwrap };
  const keyWrapper = vaultTransitKeyWrapper({ ...place, token, client, callTimeoutSeconds, maxAttempts });
  return createKmsCodec({ ...codecOptions, keyWrapper, closeKeyWrappers: true });
}
