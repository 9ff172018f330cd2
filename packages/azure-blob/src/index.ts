/**
 * Keeps a ring in a blob of Azure Storage: {@link azureBlobRing}.
 *
 * @packageDocumentation
 */

export type { AzureBlobRingBlob, AzureBlobRingContainer, AzureBlobRingUpload } from './client.ts';
export type { AzureBlobRingOptions } from './options.ts';
export { azureBlobRing } from './ring.ts';
