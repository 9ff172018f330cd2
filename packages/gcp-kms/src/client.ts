/** A CRC32C as the SDK takes it: `google.protobuf.Int64Value`. */
export interface GcpKmsChecksum {
  /** 0 to 4 294 967 295. */
  readonly value: number;
}

/** EncryptRequest of google.cloud.kms.v1. */
export interface GcpKmsEncryptRequest {
  /** Resource name of the CryptoKey. */
  readonly name: string;
  /** 32 bytes. */
  readonly plaintext: Uint8Array;
  /** Of `plaintext`. */
  readonly plaintextCrc32c: GcpKmsChecksum;
  /** The context, in canonical JSON. */
  readonly additionalAuthenticatedData: Uint8Array;
  /** Of `additionalAuthenticatedData`. */
  readonly additionalAuthenticatedDataCrc32c: GcpKmsChecksum;
}

/** DecryptRequest of google.cloud.kms.v1. */
export interface GcpKmsDecryptRequest {
  /** Resource name of the CryptoKey, without a version. */
  readonly name: string;
  /** What an EncryptResponse held. */
  readonly ciphertext: Uint8Array;
  /** Of `ciphertext`. */
  readonly ciphertextCrc32c: GcpKmsChecksum;
  /** The context, in canonical JSON. */
  readonly additionalAuthenticatedData: Uint8Array;
  /** Of `additionalAuthenticatedData`. */
  readonly additionalAuthenticatedDataCrc32c: GcpKmsChecksum;
}

/** How each call is made: one attempt, with a deadline. */
export interface GcpKmsCallOptions {
  /** Milliseconds until the call ends by itself. */
  readonly timeout: number;
  /** No codes: the SDK's own retries last up to 600 s and hide the status of the first refusal. */
  readonly retry: { readonly retryCodes: number[] };
  /** Cancels the call. Versions of the SDK that do not know it leave the call to its deadline. */
  readonly signal: AbortSignal;
}

/**
 * The part of `KeyManagementServiceClient` (`@google-cloud/kms`, a peer dependency) that is used, over gRPC; a
 * fake fits too. Not for the REST transport (`fallback: true`): its errors hold the request, and so the data key.
 */
export interface GcpKmsClient {
  /** Resolves to an array whose first element is the EncryptResponse. What it holds is checked by the caller. */
  encrypt(request: GcpKmsEncryptRequest, options: GcpKmsCallOptions): Promise<unknown>;
  /** Resolves to an array whose first element is the DecryptResponse. What it holds is checked by the caller. */
  decrypt(request: GcpKmsDecryptRequest, options: GcpKmsCallOptions): Promise<unknown>;
  /**
   * Finds credentials and makes the channel; the same promise every time. Awaited before each call: without it, missing
   * credentials would be an unhandled rejection besides, which ends a process.
   */
  initialize?(): Promise<unknown>;
  /** Closes the channel. Called on a client that the wrapper made itself, never on one it was given. */
  close?(): Promise<void>;
}
