export type { VaultClient, VaultRequest, VaultResponse, VaultToken } from './client.ts';
export { createVaultTransitCodec, type VaultTransitCodecOptions } from './create-codec.ts';
export { vaultTransitKeyWrapper } from './key-wrapper.ts';
export type { VaultTransitKeyWrapperOptions } from './options.ts';
