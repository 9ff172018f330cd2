/**
 * The part of `ContainerClient` (`@azure/storage-blob`, a peer dependency) that the store uses; a fake also works.
 *
 * If you pass your own client, set `retryOptions: { maxTries: 1 }`: a write that the SDK retries after it succeeded is
 * refused as a conflict with itself, and the SDK's retries outlast the deadline. Do not set `secondaryHost`: the
 * secondary lags behind.
 */
export interface AzureBlobRingContainer {
  /** Returns the client of a blob. Called once, when the ring store is created. */
  getBlockBlobClient(blobName: string): AzureBlobRingBlob;
}

/** The part of `BlockBlobClient` that is used. The caller checks the contents of answers, hence `unknown`. */
export interface AzureBlobRingBlob {
  /** Calls Get Blob, from byte 0 to the end. */
  download(
    offset: number,
    count: number | undefined,
    options: { readonly abortSignal: AbortSignal; readonly maxRetryRequests: number },
  ): Promise<unknown>;
  /** Calls Put Blob. `contentLength` is the length of `body`: at most 262 144 bytes. */
  upload(body: Buffer, contentLength: number, options: AzureBlobRingUpload): Promise<unknown>;
}

/** Options of an upload. */
export interface AzureBlobRingUpload {
  /** Aborts at the deadline, or when the caller aborts. */
  readonly abortSignal: AbortSignal;
  /** The version to replace, or the condition that no version exists. */
  readonly conditions: { readonly ifMatch: string } | { readonly ifNoneMatch: '*' };
  /** The content type, and a directive that caches must not store the blob. */
  readonly blobHTTPHeaders: { readonly blobContentType: string; readonly blobCacheControl: string };
  /** The MD5 checksum of `body`, which the service verifies. An SDK older than 12.34 may not send it. */
  readonly transactionalContentMD5?: Uint8Array;
}
