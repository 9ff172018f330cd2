import type { Readable } from 'node:stream';

/** One request to the JSON API, for the SDK's authenticated transport. */
export interface GcsRingRequest {
  /** Below `apiEndpoint`, with its query. */
  readonly url: string;
  /** GET to read, POST to write. */
  readonly method: 'GET' | 'POST';
  /** The headers without credentials, which `authClient` adds. */
  readonly headers: Readonly<Record<string, string>>;
  /** The body of a POST: at most 263 KiB, and exactly as long as the header `content-length` says. */
  readonly data?: Readable;
  /** So that the store itself reads the body of the answer, up to its limit. */
  readonly responseType: 'stream';
  /** Aborts at the deadline, or when the caller aborts. */
  readonly signal: AbortSignal;
  /** A redirect is an error, because the ring is never at another address. */
  readonly redirect: 'error';
  /** The ring retries where necessary. */
  readonly retry: false;
  /** Accepts every status, because statuses are classified here. */
  readonly validateStatus: () => boolean;
}

/**
 * The part of `Storage` (`@google-cloud/storage`, a peer dependency) that is used: where it sends requests, and what
 * authenticates them; a fake also works.
 *
 * The methods of `File` are not used: `save` deletes the object when a checksum does not match. None of them can be
 * aborted; they follow redirects with the access token, and read an error of any size.
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
