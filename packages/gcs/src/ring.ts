import {
  RingConflictError,
  type RingStore,
  type RingStoreCallOptions,
  RingStoreError,
  type StoredRing,
} from '@sealring/core';
import { type Calls, type Outcome, ringStorage, serviceDate } from '@sealring/core/adapter';
import { type Answer, answerOf, field } from './answer.ts';
import type { GcsRingClient } from './client.ts';
import { classify, type Failure, failureOf } from './error-table.ts';
import { type GcsRingOptions, OWNER, readOptions, type Settings } from './options.ts';
import { ownClient } from './own-client.ts';
import { type Asked, crc32cOf, listRequest, mediaRequest, type Place, uploadRequest } from './requests.ts';

/** A generation in the service's form: a positive number of 63 bits. */
const GENERATION = /^[1-9]\d{0,18}$/;
const LARGEST_GENERATION = 2n ** 63n - 1n;
/** The generation of a missing object. */
const ABSENT = '0';

/**
 * A ring store in one object of Google Cloud Storage. The object's body is the document, byte for byte; the revision is
 * the object's generation, which the service never reuses.
 *
 * Every write has the precondition `ifGenerationMatch`. Cloud Storage answers 404 for a missing object and for a missing
 * bucket, so a ring is absent only if the bucket can be listed and does not contain the object.
 *
 * An object of 262 145 bytes or more is `too-large`; only its beginning is read. That error and the error for a
 * `corrupt` object contain the generation, so that the object can be replaced. Checksums are verified in both
 * directions. A write that fails as `unavailable` may have succeeded. The store's methods reject with
 * {@link RingStoreError}, {@link RingConflictError}, or a `TypeError` for wrong arguments; each request ends within
 * `callTimeoutSeconds`.
 *
 * Source: Cloud Storage JSON API v1, Objects: get, list and insert; "Request preconditions".
 *
 * @throws {TypeError} for an unknown option, or for an option of the wrong type.
 * @throws {RangeError} for an option outside its bounds.
 *
 * @example
 * ```ts
 * import { gcsRing } from '@sealring/gcs';
 *
 * const ring = gcsRing({ bucket: 'payments-sealring', object: 'payments.ring', client: new Storage() });
 * ```
 */
export function gcsRing(options: GcsRingOptions): RingStore & Required<Pick<RingStore, 'close'>> {
  return Object.freeze(new GcsRing(readOptions(options)));
}

// Everything else is in private fields, because inspect() shows the fields of a client, credentials included.
class GcsRing implements RingStore {
  readonly kind = 'gcs';
  readonly #client: GcsRingClient;
  readonly #place: Place;
  readonly #calls: Calls<Failure>;

  constructor({ bucket, object, client, timeoutMs, ...access }: Settings) {
    this.#client = client ?? ownClient(access);
    this.#place = { endpoint: this.#client.apiEndpoint.replace(/\/+$/, ''), bucket, object };
    this.#calls = ringStorage.calls(timeoutMs, classify);
  }

  get location(): string {
    return `gs://${this.#place.bucket}/${this.#place.object}`;
  }

  async read(options: RingStoreCallOptions = {}): Promise<StoredRing | undefined> {
    ringStorage.checkRead(OWNER, options);
    const stored = await this.#get(options);
    if (stored !== undefined) return stored;
    if (await this.#isAbsent(options)) return undefined;
    // The object was created between the two requests.
    const created = await this.#get(options);
    if (created !== undefined) return created;
    throw new RingStoreError('unavailable', 'the object is in the listing but cannot be read');
  }

  async write(
    document: string,
    options: RingStoreCallOptions & { readonly expected: string | undefined },
  ): Promise<{ readonly revision: string }> {
    ringStorage.checkWrite(OWNER, document, options);
    const { expected } = options;
    // No read returns such a revision, so a different revision is stored; this one must not become part of the request.
    if (expected !== undefined && !isGeneration(expected)) throw new RingConflictError();
    const outcome = await this.#ask(uploadRequest(this.#place, document, expected ?? ABSENT), options, generationOf);
    if ('answer' in outcome) return { revision: outcome.answer };
    if (outcome.failure.kind === 'conflict') throw new RingConflictError();
    throw refusal(outcome.failure);
  }

  async close(): Promise<void> {
    this.#calls.close();
  }

  /** Reads the object; undefined for any 404. */
  async #get(options: RingStoreCallOptions): Promise<StoredRing | undefined> {
    const outcome = await this.#ask(mediaRequest(this.#place), options, storedRing);
    if ('answer' in outcome) return outcome.answer;
    if (outcome.failure.kind === 'not-found') return undefined;
    throw refusal(outcome.failure);
  }

  /** Whether the bucket exists and the object does not. */
  async #isAbsent({ signal }: RingStoreCallOptions): Promise<boolean> {
    // This request has no onServiceDate, because a call reports only one date, and has already done so.
    const outcome = await this.#ask(listRequest(this.#place), { signal }, firstName);
    if ('answer' in outcome) return outcome.answer !== this.#place.object;
    throw refusal(outcome.failure);
  }

  #ask<T>(
    asked: Asked,
    options: { readonly signal?: AbortSignal | undefined; readonly onServiceDate?: serviceDate.OnServiceDate },
    read: (answer: Answer) => Promise<Outcome<T, Failure>>,
  ): Promise<Outcome<T, Failure>> {
    return this.#calls.run(options.signal, async (signal) => {
      const answer = answerOf(
        await this.#client.authClient.request({
          ...asked,
          responseType: 'stream',
          signal,
          redirect: 'error',
          retry: false,
          validateStatus: () => true,
        }),
      );
      serviceDate.noteDateHeader(answer.header('date'), options.onServiceDate);
      return answer.status === 200 ? read(answer) : { failure: await explain(answer) };
    });
  }
}

async function storedRing(answer: Answer): Promise<Outcome<StoredRing, Failure>> {
  const body = await answer.readBody();
  if ('failure' in body && body.failure.kind === 'unavailable') return body;
  const revision = answer.header('x-goog-generation');
  if (!isGeneration(revision)) {
    return { failure: { kind: 'unavailable', detail: 'the answer has no generation' } };
  }
  if ('failure' in body) return { failure: { ...body.failure, revision } };
  if ((answer.header('x-goog-stored-content-encoding') ?? 'identity') !== 'identity') {
    return { failure: { kind: 'corrupt', detail: 'the object is stored compressed', revision } };
  }
  const checksums = answer.header('x-goog-hash')?.split(/, ?/);
  if (checksums?.includes(`crc32c=${crc32cOf(body.answer)}`) !== true) {
    return { failure: { kind: 'unavailable', detail: 'the document was damaged in transit' } };
  }
  const document = ringStorage.decodeDocument(body.answer, 'object');
  if ('failure' in document) return { failure: { ...document.failure, revision } };
  return { answer: { document: document.answer, revision } };
}

/** The name of the first object of a listing; undefined for a listing that is known to be empty. */
async function firstName(answer: Answer): Promise<Outcome<string | undefined, Failure>> {
  const listing = await readJson(answer);
  const items = field(listing, 'items') ?? [];
  if (field(listing, 'kind') === 'storage#objects' && Array.isArray(items)) {
    const name = field(items[0], 'name');
    if (typeof name === 'string') return { answer: name };
    // An empty page is not necessarily the last one.
    if (items.length === 0 && field(listing, 'nextPageToken') === undefined) return { answer: undefined };
  }
  return { failure: { kind: 'unavailable', detail: 'the listing of the bucket is incomplete' } };
}

function isGeneration(text: unknown): text is string {
  return typeof text === 'string' && GENERATION.test(text) && BigInt(text) <= LARGEST_GENERATION;
}

async function generationOf(answer: Answer): Promise<Outcome<string, Failure>> {
  const generation = field(await readJson(answer), 'generation');
  if (isGeneration(generation)) return { answer: generation };
  return { failure: { kind: 'unavailable', detail: 'the answer to the write did not come from Cloud Storage' } };
}

async function explain(answer: Answer): Promise<Failure> {
  const errors = field(field(await readJson(answer), 'error'), 'errors');
  return failureOf(answer.status, Array.isArray(errors) ? field(errors[0], 'reason') : undefined);
}

/** The body as JSON; undefined if it is not JSON, is too long, or ends early. */
async function readJson(answer: Answer): Promise<unknown> {
  try {
    const body = await answer.readBody();
    return 'answer' in body ? JSON.parse(body.answer.toString('utf8')) : undefined;
  } catch {
    return undefined;
  }
}

function refusal({ kind, detail, serviceCode, revision }: Failure): RingStoreError {
  const seen = { serviceCode, revision };
  // These kinds come from a 412 or 409 for a call that had no condition, or from a 404 for a listing or a write, which
  // concerns the bucket.
  return new RingStoreError(kind === 'conflict' || kind === 'not-found' ? 'unavailable' : kind, detail, seen);
}
