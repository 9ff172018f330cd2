import {
  RingConflictError,
  type RingStore,
  type RingStoreCallOptions,
  RingStoreError,
  type StoredRing,
} from '@sealring/core';
import { type Calls, type Outcome, ringStorage, serviceDate, vendorError } from '@sealring/core/adapter';
import type { AzureBlobRingBlob } from './client.ts';
import { checksumOf, readDocument } from './document-body.ts';
import { classify, type Failure } from './error-table.ts';
import { type AzureBlobRingOptions, OWNER, readOptions, type Settings } from './options.ts';

/**
 * The ETag of one version: quoted, and never `*`, which matches every version. As a condition, any other text could
 * match any version: for example, the SDK omits an empty condition.
 */
const ETAG = /^"[\x21\x23-\x29\x2b-\x7e]{1,128}"$/;

/**
 * A ring store in one block blob of Azure Blob Storage. The blob's body is the document, byte for byte; the revision is
 * the blob's ETag, which changes with every write, even of the same bytes.
 *
 * A ring is created with `If-None-Match: *` and replaced with `If-Match`. A blob of 262 145 bytes or more is
 * `too-large`; only its beginning is read. That error and the error for a `corrupt` blob contain the ETag, so that the
 * blob can be replaced. Only Blob Storage's own 404 BlobNotFound means that the ring is absent. A write that fails as
 * `unavailable` may have succeeded. The store's methods reject with {@link RingStoreError}, {@link RingConflictError},
 * or a `TypeError` for wrong arguments; each request ends within `callTimeoutSeconds`.
 *
 * Source: Storage services REST API reference, Get Blob, Put Blob, and "Specifying conditional headers for Blob service
 * operations".
 *
 * @throws {TypeError} for an unknown option, or for an option of the wrong type.
 * @throws {RangeError} for an option outside its bounds.
 *
 * @example
 * ```ts
 * import { DefaultAzureCredential } from '@azure/identity';
 * import { azureBlobRing } from '@sealring/azure-blob';
 *
 * const ring = azureBlobRing({
 *   container: 'https://payments.blob.core.windows.net/sealring',
 *   credential: new DefaultAzureCredential(),
 *   blob: 'payments.ring',
 * });
 * ```
 */
export function azureBlobRing(options: AzureBlobRingOptions): RingStore & Required<Pick<RingStore, 'close'>> {
  return Object.freeze(new AzureBlobRing(readOptions(options)));
}

// Everything else is in private fields, because inspect() shows the fields of a client, credentials included.
class AzureBlobRing implements RingStore {
  readonly kind = 'azure-blob';
  readonly #name: string;
  readonly #blob: AzureBlobRingBlob;
  readonly #calls: Calls<Failure>;

  constructor({ container, blob, timeoutMs }: Settings) {
    this.#blob = container.getBlockBlobClient(blob);
    this.#name = blob;
    this.#calls = ringStorage.calls(timeoutMs, classify);
  }

  get location(): string {
    const url = vendorError.property(this.#blob, 'url');
    // The address without the query, which can contain a signature.
    return typeof url === 'string' ? url.replace(/\?.*/, '') : `azure-blob ${this.#name}`;
  }

  async read(options?: RingStoreCallOptions): Promise<StoredRing | undefined> {
    ringStorage.checkRead(OWNER, options);
    const outcome = await this.#ask(
      options,
      (abortSignal) => this.#blob.download(0, undefined, { abortSignal, maxRetryRequests: 0 }),
      storedRing,
    );
    if ('answer' in outcome) return outcome.answer;
    if (outcome.failure.kind === 'absent') return undefined;
    throw refusal(outcome.failure);
  }

  async write(
    document: string,
    options: RingStoreCallOptions & { readonly expected: string | undefined },
  ): Promise<{ readonly revision: string }> {
    ringStorage.checkWrite(OWNER, document, options);
    const { expected } = options;
    // No read returns such a revision, so the stored revision is a different one. As a condition, such a revision could
    // match any version.
    if (expected !== undefined && !ETAG.test(expected)) throw new RingConflictError();
    const body = Buffer.from(document, 'utf8');
    const outcome = await this.#ask(
      options,
      (abortSignal) =>
        this.#blob.upload(body, body.length, {
          abortSignal,
          conditions: expected === undefined ? { ifNoneMatch: '*' } : { ifMatch: expected },
          // Otherwise, a cache between the service and a member could serve an outdated ring.
          blobHTTPHeaders: { blobContentType: 'text/plain; charset=utf-8', blobCacheControl: 'no-store' },
          ...checksumOf(body),
        }),
      written,
    );
    if ('answer' in outcome) return { revision: outcome.answer };
    // The kind is `absent` if the blob to replace has been deleted.
    const { kind } = outcome.failure;
    throw kind === 'conflict' || kind === 'absent' ? new RingConflictError() : refusal(outcome.failure);
  }

  async close(): Promise<void> {
    this.#calls.close();
  }

  #ask<T>(
    options: RingStoreCallOptions | undefined,
    call: (abortSignal: AbortSignal) => Promise<unknown>,
    read: (answer: unknown) => Promise<Outcome<T, Failure>>,
  ): Promise<Outcome<T, Failure>> {
    return this.#calls.run(options?.signal, async (abortSignal) => {
      let answer: unknown;
      try {
        answer = await call(abortSignal);
      } catch (error) {
        // A refusal is also an answer with a date. The SDK keeps the headers of a refusal as text.
        serviceDate.noteDateHeader(
          vendorError.property(vendorError.property(error, 'details'), 'date'),
          options?.onServiceDate,
        );
        throw error;
      }
      const date = field(answer, 'date');
      serviceDate.noteServiceTime(date instanceof Date ? date.getTime() : undefined, options?.onServiceDate);
      return read(answer);
    });
  }
}

async function storedRing(answer: unknown): Promise<Outcome<StoredRing, Failure>> {
  const document = await readDocument(
    field(answer, 'readableStreamBody'),
    field(answer, 'contentLength'),
    field(answer, 'contentMD5'),
  );
  const revision = etagOf(answer);
  if ('failure' in document) {
    return document.failure.kind === 'unavailable' ? document : { failure: { ...document.failure, revision } };
  }
  if (revision === undefined) return { failure: { kind: 'unavailable', detail: 'the answer has no ETag' } };
  return { answer: { document: document.answer, revision } };
}

async function written(answer: unknown): Promise<Outcome<string, Failure>> {
  const revision = etagOf(answer);
  if (revision !== undefined) return { answer: revision };
  return { failure: { kind: 'unavailable', detail: 'the answer to the write did not come from Blob Storage' } };
}

function etagOf(answer: unknown): string | undefined {
  const etag = field(answer, 'etag');
  return typeof etag === 'string' && ETAG.test(etag) ? etag : undefined;
}

function refusal({ kind, detail, serviceCode, revision }: Failure): RingStoreError {
  const seen = { serviceCode, revision };
  // The service answered 412 or 409 to a call that had no condition.
  return new RingStoreError(kind === 'conflict' || kind === 'absent' ? 'unavailable' : kind, detail, seen);
}

/** A property of the answer to a call, inherited getters included: the SDK's answer to a download has only those. */
function field(answer: unknown, name: string): unknown {
  return Reflect.get(Object(answer), name);
}
