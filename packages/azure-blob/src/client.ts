/**
 * The part of `ContainerClient` (`@azure/storage-blob`, a peer dependency) that is used; a fake fits too.
 *
 * Make a client of your own with `retryOptions: { maxTries: 1 }`: a write that the SDK repeats after it was done is refused
 * as a conflict with itself, and the SDK's retries outlast the deadline. Give it no `secondaryHost`: what is read there
 * is behind.
 */
export interface AzureBlobRingContainer {
  /** Called once, when the ring is made. */
  getBlockBlobClient(blobName: string): AzureBlobRingBlob;
}

/** The part of `BlockBlobClient` that is used. What the answers hold is checked by the caller, hence `unknown`. */
export interface AzureBlobRingBlob {
  /** Get Blob, from byte 0 to the end. */
  download(
    offset: number,
    count: number | undefined,
    options: { readonly abortSignal: AbortSignal; readonly maxRetryRequests: number },
  ): Promise<unknown>;
  /** Put Blob. `contentLength` is that of `body`: at most 262 144 bytes. */
  upload(body: Buffer, contentLength: number, options: AzureBlobRingUpload): Promise<unknown>;
}

/** Options of an upload. */
export interface AzureBlobRingUpload {
  /** Aborts when there is no answer in time, or nobody waits for it any more. */
  readonly abortSignal: AbortSignal;
  /** The one version that is to be replaced, or none. */
  readonly conditions: { readonly ifMatch: string } | { readonly ifNoneMatch: '*' };
  /** Text, and nothing for a cache. */
  readonly blobHTTPHeaders: { readonly blobContentType: string; readonly blobCacheControl: string };
  /** 16 bytes, which the service compares with what arrived. An SDK older than 12.34 may not send it. */
  readonly transactionalContentMD5?: Uint8Array;
}
