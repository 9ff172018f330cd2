import type { Readable } from 'node:stream';

/** One request of the JSON API, as the SDK's authenticated transport takes it. */
export interface GcsRingRequest {
  /** Below `apiEndpoint`, with its query. */
  readonly url: string;
  /** What reads, and what writes. */
  readonly method: 'GET' | 'POST';
  /** Without credentials: `authClient` adds them. */
  readonly headers: Readonly<Record<string, string>>;
  /** The body of a POST: at most 263 KiB, as long as its header `content-length` says. */
  readonly data?: Readable;
  /** The body of the answer is read here, and no further than it may be long. */
  readonly responseType: 'stream';
  /** Aborts when there is no answer in time, or nobody waits for it any more. */
  readonly signal: AbortSignal;
  /** Wherever a redirect would lead, it is not where the ring is. */
  readonly redirect: 'error';
  /** The ring repeats what it has to. */
  readonly retry: false;
  /** Accepts every status: what it means is decided here. */
  readonly validateStatus: () => boolean;
}

/**
 * The part of `Storage` (`@google-cloud/storage`, a peer dependency) that is used: where it sends requests, and what
 * authenticates them; a fake fits too.
 *
 * Not the methods of `File`: `save` deletes the object when a checksum does not match, and they cannot be aborted, follow
 * redirects with the access token, and read an error whatever its size.
 */
export interface GcsRingClient {
  /** `https://storage.googleapis.com`, or what the client was given instead. */
  readonly apiEndpoint: string;
  /** Whether the client was given an endpoint. */
  readonly customEndpoint?: boolean;
  /** Whether it authenticates there too. */
  readonly useAuthWithCustomEndpoint?: boolean | undefined;
  /** Adds the credentials and makes the request. */
  readonly authClient: {
    /** Resolves to an answer with `status`, `headers` and the stream `data`, all checked by the caller. */
    request(request: GcsRingRequest): Promise<unknown>;
  };
}
