import type { Readable } from 'node:stream';

/** One request of the JSON API, for the SDK's authenticated transport. */
export interface GcsRingRequest {
  /** Below `apiEndpoint`, with its query. */
  readonly url: string;
  /** GET to read, POST to write. */
  readonly method: 'GET' | 'POST';
  /** The headers without credentials, which `authClient` adds. */
  readonly headers: Readonly<Record<string, string>>;
  /** The body of a POST: at most 263 KiB, as long as its header `content-length` says. */
  readonly data?: Readable;
  /** The body of the answer is read here, up to its limit. */
  readonly responseType: 'stream';
  /** Aborts at the deadline, or when the caller aborts. */
  readonly signal: AbortSignal;
  /** Redirects are errors: the ring is never at another address. */
  readonly redirect: 'error';
  /** The ring retries where necessary. */
  readonly retry: false;
  /** Accepts every status, because statuses are classified here. */
  readonly validateStatus: () => boolean;
}

/**
 * The part of `Storage` (`@google-cloud/storage`, a peer dependency) that is used: where it sends requests, and what
 * authenticates them; a fake works too.
 *
 * The methods of `File` are not used: `save` deletes the object when a checksum does not match, and they cannot be
 * aborted, follow redirects with the access token, and read an error whatever its size.
 */
export interface GcsRingClient {
  /** `https://storage.googleapis.com`, or the configured endpoint. */
  readonly apiEndpoint: string;
  /** Whether the client has a configured endpoint. */
  readonly customEndpoint?: boolean;
  /** Whether it authenticates there too. */
  readonly useAuthWithCustomEndpoint?: boolean | undefined;
  /** Adds the credentials and makes the request. */
  readonly authClient: {
    /** Resolves to an answer with `status`, `headers` and the stream `data`, all checked by the caller. */
    request(request: GcsRingRequest): Promise<unknown>;
  };
}
