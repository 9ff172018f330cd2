/**
 * Wraps data keys with the transit engine of HashiCorp Vault or OpenBao: {@link vaultTransitKeyWrapper}, and
 * {@link createVaultTransitCodec} for a codec in one call.
 *
 * @packageDocumentation
 */

export type { VaultClient, VaultRequest, VaultResponse, VaultToken } from './client.ts';
export { createVaultTransitCodec, type VaultTransitCodecOptions } from './create-codec.ts';
export { vaultTransitKeyWrapper } from './key-wrapper.ts';
export type { VaultTransitKeyWrapperOptions } from './options.ts';
