import { randomBytes } from 'node:crypto';
import { GetObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import {
  RingConflictError,
  type RingStore,
  type RingStoreCallOptions,
  RingStoreError,
  type StoredRing,
} from '@sealring/core';
import { type Calls, type Outcome, ringStorage, serviceDate, vendorError } from '@sealring/core/adapter';
import type { S3RingClient, S3RingCommand } from './client.ts';
import { classify, type Failure, type Identity } from './error-table.ts';
import { OWNER, readOptions, type S3RingOptions, type Settings } from './options.ts';

/** Name of the metadata entry whose value differs for every write: `x-amz-meta-sealring-write`. */
const WRITE_ID = 'sealring-write';
const WRITE_ID_BYTES = 16;

/**
 * A ring store in one object of Amazon S3, or of a service that supports its conditional writes. The object's body is
 * the document, byte for byte.
 *
 * A ring is created with `If-None-Match: *` and replaced with `If-Match`, which compares the stored bytes by their
 * ETag. The revision is more than the ETag: it also contains a random id of the write, from the object's metadata, and
 * the version if the bucket keeps versions. A write that replaces a document compares the revisions first, because the
 * same bytes, written again, can have the same ETag.
 *
 * An object of 262 145 bytes or more is `too-large` and is not read. That error and the error for a `corrupt` object
 * contain the revision, so that the object can be replaced. Only S3's own 404 NoSuchKey means that the ring is absent:
 * without the permission to list the bucket, S3 answers 403, which is `denied`. A write that fails as `unavailable` may
 * have succeeded. The store's methods reject with {@link RingStoreError}, {@link RingConflictError}, or a `TypeError`
 * for wrong arguments; each request ends within `callTimeoutSeconds`.
 *
 * Source: Amazon S3 API reference, version 2006-03-01, GetObject and PutObject.
 *
 * @throws {TypeError} for an unknown option, or for an option of the wrong type.
 * @throws {RangeError} for an option outside its bounds.
 *
 * @example
 * ```ts
 * import { S3Client } from '@aws-sdk/client-s3';
 * import { s3Ring } from '@sealring/s3';
 *
 * const ring = s3Ring({
 *   bucket: 'payments-sealring',
 *   key: 'payments.ring',
 *   client: new S3Client({ region: 'eu-west-1', maxAttempts: 1 }),
 *   expectedBucketOwner: '111122223333',
 * });
 * ```
 */
export function s3Ring(options: S3RingOptions): RingStore & Required<Pick<RingStore, 'close'>> {
  return Object.freeze(new S3Ring(readOptions(options)));
}

/** A stored ring, with the ETag that a condition can name. */
interface StoredObject extends StoredRing, Identity {}

// Everything else is in private fields, because inspect() shows the fields of a client, credentials included.
class S3Ring implements RingStore {
  readonly kind = 's3';
  readonly #settings: Settings;
  readonly #client: S3RingClient;
  readonly #calls: Calls<Failure>;

  constructor(settings: Settings) {
    this.#settings = settings;
    this.#client = settings.client ?? new S3Client({ maxAttempts: 1, forcePathStyle: settings.forcePathStyle });
    this.#calls = ringStorage.calls(settings.timeoutMs, classify);
  }

  get location(): string {
    return `s3://${this.#settings.bucket}/${this.#settings.key}`;
  }

  async read(options: RingStoreCallOptions = {}): Promise<StoredRing | undefined> {
    ringStorage.checkRead(OWNER, options);
    const outcome = await this.#get(options);
    if ('answer' in outcome) return { document: outcome.answer.document, revision: outcome.answer.revision };
    if (outcome.failure.kind === 'absent') return undefined;
    throw refusal(outcome.failure);
  }

  async write(
    document: string,
    options: RingStoreCallOptions & { readonly expected: string | undefined },
  ): Promise<{ readonly revision: string }> {
    ringStorage.checkWrite(OWNER, document, options);
    const { expected } = options;
    const condition =
      expected === undefined ? { IfNoneMatch: '*' } : { IfMatch: await this.#etagOf(expected, options) };
    return this.#put(document, condition, options);
  }

  async close(): Promise<void> {
    this.#calls.close();
    if (this.#settings.client === undefined) this.#client.destroy?.();
  }

  /** @throws {RingConflictError} unless `expected` is stored. */
  async #etagOf(expected: string, options: RingStoreCallOptions): Promise<string> {
    const outcome = await this.#get(options);
    const stored = 'answer' in outcome ? outcome.answer : outcome.failure.stored;
    if (stored?.revision === expected) return stored.etag;
    if (stored === undefined && 'failure' in outcome && outcome.failure.kind !== 'absent') {
      throw refusal(outcome.failure);
    }
    throw new RingConflictError();
  }

  #get(options: RingStoreCallOptions): Promise<Outcome<StoredObject, Failure>> {
    const command = new GetObjectCommand({ ...this.#object(), ChecksumMode: 'ENABLED' });
    return this.#send(command, options, storedObject);
  }

  async #put(
    document: string,
    condition: { readonly IfMatch: string } | { readonly IfNoneMatch: string },
    options: RingStoreCallOptions,
  ): Promise<{ readonly revision: string }> {
    const writeId = randomBytes(WRITE_ID_BYTES).toString('base64url');
    const command = new PutObjectCommand({
      ...this.#object(),
      ...condition,
      Body: Buffer.from(document, 'utf8'),
      // Older versions of the SDK send no checksum by default.
      ChecksumAlgorithm: 'CRC32',
      ContentType: 'text/plain; charset=utf-8',
      // A cache between the service and a member would serve an outdated ring.
      CacheControl: 'no-store',
      Metadata: { [WRITE_ID]: writeId },
      ServerSideEncryption: this.#settings.serverSideEncryption,
      SSEKMSKeyId: this.#settings.sseKmsKeyId,
    });
    const outcome = await this.#send(command, options, async (answer) => ({ answer: identityOf(answer, writeId) }));
    if ('answer' in outcome) {
      if (outcome.answer !== undefined) return { revision: outcome.answer.revision };
      throw new RingStoreError('unavailable', 'the answer to the write did not come from S3');
    }
    // The kind is `absent` if the object to replace has been deleted.
    const { kind } = outcome.failure;
    throw kind === 'conflict' || kind === 'absent' ? new RingConflictError() : refusal(outcome.failure);
  }

  #send<T>(
    command: S3RingCommand,
    { signal, onServiceDate }: RingStoreCallOptions,
    read: (answer: unknown) => Promise<Outcome<T, Failure>>,
  ): Promise<Outcome<T, Failure>> {
    serviceDate.noteDateOf(command, onServiceDate);
    return this.#calls.run(signal, async (abortSignal) => read(await this.#client.send(command, { abortSignal })));
  }

  #object() {
    const { bucket, key, expectedBucketOwner } = this.#settings;
    return { Bucket: bucket, Key: key, ExpectedBucketOwner: expectedBucketOwner };
  }
}

async function storedObject(answer: unknown): Promise<Outcome<StoredObject, Failure>> {
  const body = await ringStorage.readBody(
    vendorError.property(answer, 'Body'),
    vendorError.property(answer, 'ContentLength'),
  );
  const outcome = 'failure' in body ? body : ringStorage.decodeDocument(body.answer, 'object');
  const stored = identityOf(answer, vendorError.property(vendorError.property(answer, 'Metadata'), WRITE_ID));
  if ('failure' in outcome) {
    return outcome.failure.kind === 'unavailable' ? outcome : { failure: { ...outcome.failure, stored } };
  }
  if (stored === undefined) return { failure: { kind: 'unavailable', detail: 'the answer has no ETag' } };
  return { answer: { document: outcome.answer, ...stored } };
}

/** Identifies this version of the object. */
function identityOf(answer: unknown, writeId: unknown): Identity | undefined {
  const etag = vendorError.property(answer, 'ETag');
  if (typeof etag !== 'string' || etag === '') return undefined;
  const version = vendorError.property(answer, 'VersionId');
  // If an object has no version, S3 gives its version as `null`, but only in the answer to a read.
  const versionId = typeof version === 'string' && version !== 'null' ? version : '';
  // A document written by another tool has no id.
  return { etag, revision: JSON.stringify([typeof writeId === 'string' ? writeId : '', versionId, etag]) };
}

function refusal({ kind, detail, serviceCode, stored }: Failure): RingStoreError {
  const seen = { serviceCode, revision: stored?.revision };
  // A conflict here is a 412 or 409 in answer to a call that had no condition, or that was not about an object.
  return new RingStoreError(kind === 'conflict' || kind === 'absent' ? 'unavailable' : kind, detail, seen);
}
