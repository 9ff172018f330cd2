import type { StoreFailure } from './failures.ts';
import { property } from './foreign-errors.ts';

/** Why a call got no answer: a code from a fixed list, and a fixed sentence. */
export interface ConnectionFailure {
  /** A system code of Node.js, a verification or handshake code of OpenSSL, a code of undici, an error name, or `RegionMissing`. */
  readonly code: string;
  /** The failure, and what to check. */
  readonly hint: string;
}

/** For a missing Region, the AWS SDK throws a plain `Error` without a code; only its message names the cause. */
const NO_REGION_MESSAGE = 'Region is missing';
const NO_REGION: ConnectionFailure = Object.freeze({
  code: 'RegionMissing',
  hint: "no AWS Region is set: set AWS_REGION, or the client's region",
});

/** Each hint, with the codes that it explains. */
const HINTS: readonly (readonly [hint: string, codes: string])[] = [
  ['the connection was refused: check the host and the port', 'ECONNREFUSED'],
  [
    'the connection was closed before an answer arrived',
    'ECONNRESET ECONNABORTED EPIPE UND_ERR_SOCKET ERR_STREAM_PREMATURE_CLOSE',
  ],
  ['the host name does not exist: check the address', 'ENOTFOUND'],
  ['the host name could not be resolved: check DNS', 'EAI_AGAIN EAI_FAIL EAI_NODATA EAI_NONAME'],
  ['the host cannot be reached: check routes and firewalls', 'EHOSTUNREACH ENETUNREACH EHOSTDOWN'],
  ['no answer in time', 'ETIMEDOUT UND_ERR_CONNECT_TIMEOUT UND_ERR_HEADERS_TIMEOUT UND_ERR_BODY_TIMEOUT TimeoutError'],
  [
    'the certificate of the server is not trusted: add its certificate authority to NODE_EXTRA_CA_CERTS',
    `DEPTH_ZERO_SELF_SIGNED_CERT SELF_SIGNED_CERT_IN_CHAIN UNABLE_TO_GET_ISSUER_CERT
     UNABLE_TO_GET_ISSUER_CERT_LOCALLY UNABLE_TO_VERIFY_LEAF_SIGNATURE CERT_CHAIN_TOO_LONG CERT_REJECTED
     CERT_REVOKED CERT_SIGNATURE_FAILURE CERT_UNTRUSTED INVALID_CA INVALID_PURPOSE`,
  ],
  [
    'the certificate of the server has expired or is not valid yet: check it, and the clock of this machine',
    'CERT_HAS_EXPIRED CERT_NOT_YET_VALID',
  ],
  [
    'the certificate of the server is for a different host name: check the address',
    'ERR_TLS_CERT_ALTNAME_INVALID HOSTNAME_MISMATCH',
  ],
  [
    'the server does not use TLS on this port: check the address',
    'ERR_SSL_WRONG_VERSION_NUMBER ERR_SSL_PACKET_LENGTH_TOO_LONG ERR_SSL_UNKNOWN_PROTOCOL',
  ],
  ['the TLS handshake failed: check whether the server uses TLS on this port', 'EPROTO'],
  [
    'the TLS handshake failed: check TLS versions, and whether the server requires a client certificate',
    `ERR_SSL_NO_PROTOCOLS_AVAILABLE ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE ERR_SSL_SSL/TLS_ALERT_BAD_CERTIFICATE
     ERR_SSL_SSL/TLS_ALERT_CERTIFICATE_UNKNOWN ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE
     ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE ERR_SSL_SSLV3_ALERT_CERTIFICATE_UNKNOWN
     ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION ERR_SSL_TLSV1_ALERT_UNKNOWN_CA
     ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED ERR_SSL_UNSUPPORTED_PROTOCOL`,
  ],
  [
    'the answer is not HTTP: check the port, and whether it requires TLS',
    'HPE_INVALID_CONSTANT HPE_INVALID_VERSION HPE_INVALID_STATUS HPE_CR_EXPECTED HPE_LF_EXPECTED HTTPParserError',
  ],
  ['the call was aborted', 'AbortError'],
];

const BY_CODE: ReadonlyMap<string, string> = new Map(
  HINTS.flatMap(([hint, codes]) => codes.split(/\s+/).map((code) => [code, hint] as const)),
);

/** Depth of the search for causes: `fetch` and the SDKs wrap the system's error once or twice. */
const MAX_DEPTH = 4;

/**
 * Why a call got no answer; undefined if nothing in the error shows the reason. Reads `code`, then `name`, of the
 * error, its causes and the first of its `errors`. The only message that it reads is the AWS SDK's about a missing
 * Region. A code takes precedence over any name, because the AWS SDK names a reset connection `TimeoutError`. Never
 * throws.
 *
 * Sources: the errors of Node.js (`os.constants.errno`, `tls`, `http`), OpenSSL's verification codes as Node.js names
 * them, and the errors of undici.
 */
export function connectionFailure(error: unknown): ConnectionFailure | undefined {
  const errors = causesOf(error);
  if (property(error, 'message') === NO_REGION_MESSAGE) return NO_REGION;
  for (const name of ['code', 'name']) {
    for (const each of errors) {
      const code = property(each, name) as string;
      const hint = BY_CODE.get(code);
      if (hint !== undefined) return { code, hint };
    }
  }
  return undefined;
}

/**
 * The failure of a store whose service gave no answer; undefined as in {@link connectionFailure}.
 *
 * @param service - The name of the service in the message, such as `S3` or `the server`.
 */
export function unreachable(error: unknown, service: string): StoreFailure<'unavailable'> | undefined {
  const found = connectionFailure(error);
  if (found === undefined) return undefined;
  const { code, hint } = found;
  return { kind: 'unavailable', detail: `${service} cannot be reached: ${hint} (${code})`, serviceCode: code };
}

/** The error itself, followed by its causes. */
function causesOf(error: unknown): readonly unknown[] {
  const found = [error];
  while (found.length < MAX_DEPTH) {
    const last = found.at(-1);
    found.push(property(last, 'cause') ?? property(property(last, 'errors'), '0'));
  }
  return found;
}
