import type { Readable } from 'node:stream';

/** One request to the JSON API, for the SDK's authenticated transport. */
export interface GcsRingRequest {
  /** A URL below `apiEndpoint`, with its query. */
  readonly url: string;
  /** GET to read, POST to write. */
  readonly method: 'GET' | 'POST';
  /** The headers without credentials, which `authClient` adds. */
  readonly headers: Readonly<Record<string, string>>;
  /** The body of a POST: at most 263 KiB, and exactly as long as the header `content-length` says. */
  readonly data?: Readable;
  /** A stream, so that the store itself can read the body of the answer, up to its own limit. */
  readonly responseType: 'stream';
  /** Aborts at the deadline, or when the caller aborts. */
  readonly signal: AbortSignal;
  /** A redirect is an error, because the ring is never at another address. */
  readonly redirect: 'error';
  /** No retries in the SDK: the ring retries if necessary. */
  readonly retry: false;
  /** Accepts every status, because statuses are classified here. */
  readonly validateStatus: () => boolean;
}

/**
 * The part of `Storage` (`@google-cloud/storage`, a peer dependency) that is used: where it sends requests, and what
 * authenticates them; a fake also works.
 *
 * The methods of `File` are not used: `save` deletes the object when a checksum does not match. None of these methods
 * can be aborted; they follow redirects with the access token, and read error responses of any size.
 */
export interface GcsRingClient {
  /** `https://storage.googleapis.com`, or the configured endpoint. */
  readonly apiEndpoint: string;
  /** Whether the client has a configured endpoint. */
  readonly customEndpoint?: boolean;
  /** Whether the client also authenticates at its configured endpoint. */
  readonly useAuthWithCustomEndpoint?: boolean | undefined;
  /** Adds the credentials and makes the request. */
  readonly authClient: {
    /** Resolves to an answer with `status`, `headers` and the stream `data`, all checked by the caller. */
    request(request: GcsRingRequest): Promise<unknown>;
  };
}
