import {
  RingConflictError,
  type RingStore,
  type RingStoreCallOptions,
  RingStoreError,
  type StoredRing,
} from '@sealring/core';
import { type Calls, type Outcome, Push, ringStorage, serviceDate } from '@sealring/core/adapter';
import { type ClientSource, clientSource } from './client.ts';
import { classify, type Failure, failureOf } from './error-table.ts';
import {
  createRequest,
  documentIn,
  entryOf,
  getRequest,
  type Held,
  heldIn,
  NEVER_STORED,
  type Place,
  patchRequest,
  resourceOf,
  revisionOf,
  versionIn,
} from './objects.ts';
import { type KubernetesRingOptions, OWNER, readOptions, type Settings } from './options.ts';
import { type Asked, readAnswer, send } from './requests.ts';
import { watchListener } from './watch.ts';

/**
 * A ring store in one entry of a Secret or ConfigMap. The entry is the document, as base64 in a Secret; the revision is
 * the `uid` and `resourceVersion` of the object. Other entries, labels and annotations of the object are left
 * unchanged. If the object exists without the entry, the ring is absent, so you can create the object in advance.
 *
 * Every write has the precondition `resourceVersion`, or creates the object. A ring is absent only if the API server
 * itself answers that this object does not exist. A document of 262 145 bytes or more is `too-large`; an entry that is
 * empty, not base64 or not UTF-8 is `corrupt`. Both errors contain the revision that is needed to replace the entry. An
 * immutable object is `read-only`. `watch` holds one connection, and resumes where the previous one ended.
 *
 * A write that fails as `unavailable` may have succeeded. The methods reject with {@link RingStoreError},
 * {@link RingConflictError}, or a `TypeError` for wrong arguments; each request ends within `callTimeoutSeconds`.
 *
 * Source: Kubernetes API concepts: "Resource versions", "Efficient detection of changes"; API reference v1.34.
 *
 * @throws {TypeError} for an unknown option, or for an option of the wrong type.
 * @throws {RangeError} for an option outside its bounds.
 *
 * @example
 * ```ts
 * import { kubernetesRing } from '@sealring/kubernetes';
 *
 * const ring = kubernetesRing({ namespace: 'payments', name: 'payments-ring' });
 * ```
 */
export function kubernetesRing(
  options: KubernetesRingOptions,
): RingStore & Required<Pick<RingStore, 'watch' | 'close'>> {
  return Object.freeze(new KubernetesRing(readOptions(options)));
}

type CallOptions = [signal: AbortSignal | undefined, onServiceDate?: RingStoreCallOptions['onServiceDate']];

// Everything but the kind is in private fields, because inspect() shows the fields of a client, credentials included.
class KubernetesRing implements RingStore {
  readonly kind = 'kubernetes';
  readonly #client: ClientSource;
  readonly #place: Place;
  readonly #calls: Calls<Failure>;
  readonly #push: Push;

  constructor({ client, timeoutMs, ...place }: Settings) {
    this.#client = clientSource(client);
    this.#place = place;
    this.#calls = ringStorage.calls(timeoutMs, classify);
    this.#push = new Push({ connect: () => watchListener(this.#client, place, timeoutMs), timeoutMs });
  }

  get location(): string {
    return `kubernetes ${this.#place.kind} ${this.#place.namespace}/${this.#place.name}`;
  }

  async read(options?: RingStoreCallOptions): Promise<StoredRing | undefined> {
    ringStorage.checkRead(OWNER, options);
    const held = await this.#get(options?.signal, options?.onServiceDate);
    if (held?.entry === undefined) return undefined;
    const revision = revisionOf(held);
    const document = documentIn(held.entry, this.#place);
    if ('failure' in document) throw refusal({ ...document.failure, revision });
    return { document: document.answer, revision };
  }

  async write(
    document: string,
    options: RingStoreCallOptions & { readonly expected: string | undefined },
  ): Promise<{ readonly revision: string }> {
    ringStorage.checkWrite(OWNER, document, options);
    const asked = await this.#writeRequest(document, options);
    const outcome = await this.#ask(asked, options.signal, options.onServiceDate);
    if ('failure' in outcome) {
      const { kind } = outcome.failure;
      // A patch ends as `not-found` if the object was deleted.
      if (kind === 'conflict' || kind === 'not-found') throw new RingConflictError();
      throw refusal(outcome.failure);
    }
    if (outcome.answer.entry !== entryOf(document, this.#place)) {
      throw new RingStoreError('unavailable', 'the cluster stored something else: check admission webhooks');
    }
    return { revision: revisionOf(outcome.answer) };
  }

  watch(changed: () => void): () => void {
    ringStorage.checkWatcher(OWNER, changed);
    return this.#push.add(changed);
  }

  async close(): Promise<void> {
    this.#push.close();
    this.#calls.close();
  }

  async #writeRequest(
    document: string,
    options: RingStoreCallOptions & { readonly expected: string | undefined },
  ): Promise<Asked> {
    const { expected, signal } = options;
    if (expected !== undefined) {
      const version = versionIn(expected);
      // No read can have returned such a revision, so a different revision is stored.
      if (version === undefined) throw new RingConflictError();
      return patchRequest(this.#place, document, version);
    }
    // This read has no onServiceDate, because a call reports only one date, which is that of the write.
    const held = await this.#get(signal);
    if (held === undefined) return createRequest(this.#place, document);
    // The API server decides whether this is a conflict, because it checks the permissions first.
    return patchRequest(this.#place, document, held.entry === undefined ? held : NEVER_STORED);
  }

  /** Reads the object; undefined if it does not exist. */
  async #get(...options: CallOptions): Promise<Held | undefined> {
    const outcome = await this.#ask(getRequest(this.#place), ...options);
    if ('answer' in outcome) return outcome.answer;
    if (outcome.failure.kind === 'not-found') return undefined;
    throw refusal(outcome.failure);
  }

  #ask(asked: Asked, ...[caller, onServiceDate]: CallOptions): Promise<Outcome<Held, Failure>> {
    return this.#calls.run(caller, async (signal) => {
      const client = await this.#client();
      if ('failure' in client) return client;
      const response = await send(client.answer, asked, signal);
      serviceDate.noteDateHeader(response.headers.date, onServiceDate);
      const answer = await readAnswer(response);
      if ('failure' in answer) return answer;
      const { status, body } = answer.answer;
      if (status === 200 || status === 201) return heldIn(body, this.#place);
      return { failure: failureOf(status, body, { resource: resourceOf(this.#place), name: this.#place.name }) };
    });
  }
}

function refusal({ kind, detail, ...seen }: Failure): RingStoreError {
  // The answer is a conflict, although the call had no condition.
  return new RingStoreError(kind === 'conflict' || kind === 'not-found' ? 'unavailable' : kind, detail, seen);
}
