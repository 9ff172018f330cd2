import { ContainerClient } from '@azure/storage-blob';
import { azureBlobRing } from '@sealring/azure-blob';
import { through } from './through.js';

export default through(({ URL }) => {
  const container = new ContainerClient(URL, undefined, { retryOptions: { maxTries: 1 } });
  return azureBlobRing({ container, blob: 'workers.ring' });
});
