/** How long a start retries a failure. */
export type Patience =
  /** No retry: the failure lasts until an operator changes something. */
  | 'none'
  /**
   * Retried for ten seconds, because the resolver or the credentials of a starting machine may not be ready yet; then
   * treated as `none`.
   */
  | 'short'
  /** Retried until the start times out, because the failure may pass. */
  | 'long';

const LASTING: ReadonlySet<string | undefined> = codes(
  // The location of the ring does not exist, or part of its path is a file instead of a folder.
  'ENOENT ENOTDIR NoSuchBucket ResourceNotFoundException ContainerNotFound notFound 3D000 3F000 42P01',
  // The location is in another region, or no region is set.
  'AuthorizationHeaderMalformed IllegalLocationConstraintException PermanentRedirect RegionMissing',
  // The certificate does not show that this is the intended server.
  `DEPTH_ZERO_SELF_SIGNED_CERT SELF_SIGNED_CERT_IN_CHAIN UNABLE_TO_GET_ISSUER_CERT
   UNABLE_TO_GET_ISSUER_CERT_LOCALLY UNABLE_TO_VERIFY_LEAF_SIGNATURE ERR_TLS_CERT_ALTNAME_INVALID
   HOSTNAME_MISMATCH ERR_SSL_WRONG_VERSION_NUMBER ERR_SSL_PACKET_LENGTH_TOO_LONG ERR_SSL_UNKNOWN_PROTOCOL
   ERR_POSTGRES_NO_TLS CERT_UNTRUSTED ERR_AZURE_CHALLENGE_RESOURCE`,
);

const LASTING_IF_STARTED: ReadonlySet<string | undefined> = codes(
  `ENOTFOUND CredentialsProviderError TokenProviderError ExpiredToken ExpiredTokenException
   AggregateAuthenticationError AuthenticationRequiredError ChainedTokenCredentialError
   CredentialUnavailableError`,
);

/** How long a start waits for a failure with this code to pass. The codes come from the tables of adapters. */
export function patienceWith(code: string | undefined): Patience {
  if (LASTING.has(code)) return 'none';
  return LASTING_IF_STARTED.has(code) ? 'short' : 'long';
}

function codes(...lines: readonly string[]): ReadonlySet<string> {
  return new Set(lines.flatMap((line) => line.split(/\s+/)));
}
