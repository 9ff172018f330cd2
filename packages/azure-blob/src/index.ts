export type { AzureBlobRingBlob, AzureBlobRingContainer, AzureBlobRingUpload } from './client.ts';
export type { AzureBlobRingOptions } from './options.ts';
export { azureBlobRing } from './ring.ts';
