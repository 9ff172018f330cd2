/** One request to Vault's HTTP API. */
export interface VaultRequest {
  readonly method: 'POST';
  /** `Content-Type`, `X-Vault-Request`, and `X-Vault-Token` if there is a token. */
  readonly headers: Readonly<Record<string, string>>;
  /** JSON. */
  readonly body: string;
  /** A client must not follow redirects, which would send the token to whatever host an answer names. */
  readonly redirect: 'manual';
  /** Aborts at the deadline of the attempt. */
  readonly signal: AbortSignal;
}

/** The part of a `Response` that is used. */
export interface VaultResponse {
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  /** The content of the response; at most 64 KiB are read. */
  readonly body: AsyncIterable<Uint8Array> | null;
}

/**
 * Makes the requests: an object with a `fetch` like the global one. Pass your own for a client certificate,
 * a certificate authority, a proxy or a Unix socket, or to talk to a Vault Agent that adds the token itself.
 */
export interface VaultClient {
  fetch(url: string, request: VaultRequest): Promise<VaultResponse>;
}

/**
 * A Vault token: a string, or a function that is called for every request, so that you control renewal. A function that
 * has no valid token should throw: the failure is then `unavailable`, whereas an expired token would make it `denied`.
 */
export type VaultToken = string | (() => string | Promise<string>);

/** The platform's `fetch`, looked up at each call, so that a replacement (by a tracer, say) takes effect here too. */
export const PLATFORM_CLIENT: VaultClient = Object.freeze({
  fetch: (url: string, request: VaultRequest): Promise<VaultResponse> => fetch(url, request),
});
