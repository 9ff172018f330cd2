/** A CRC32C in the SDK's form: `google.protobuf.Int64Value`. */
export interface GcpKmsChecksum {
  /** 0 to 4 294 967 295. */
  readonly value: number;
}

/** EncryptRequest of google.cloud.kms.v1. */
export interface GcpKmsEncryptRequest {
  /** Resource name of the CryptoKey. */
  readonly name: string;
  /** The data key: 32 bytes. */
  readonly plaintext: Uint8Array;
  /** The checksum of `plaintext`. */
  readonly plaintextCrc32c: GcpKmsChecksum;
  /** The context, in canonical JSON. */
  readonly additionalAuthenticatedData: Uint8Array;
  /** The checksum of `additionalAuthenticatedData`. */
  readonly additionalAuthenticatedDataCrc32c: GcpKmsChecksum;
}

/** DecryptRequest of google.cloud.kms.v1. */
export interface GcpKmsDecryptRequest {
  /** Resource name of the CryptoKey, without a version. */
  readonly name: string;
  /** The ciphertext of an EncryptResponse. */
  readonly ciphertext: Uint8Array;
  /** The checksum of `ciphertext`. */
  readonly ciphertextCrc32c: GcpKmsChecksum;
  /** The context, in canonical JSON. */
  readonly additionalAuthenticatedData: Uint8Array;
  /** The checksum of `additionalAuthenticatedData`. */
  readonly additionalAuthenticatedDataCrc32c: GcpKmsChecksum;
}

/** Options of each call: one attempt, with a deadline. */
export interface GcpKmsCallOptions {
  /** Milliseconds until the call ends by itself. */
  readonly timeout: number;
  /** No codes: the SDK's own retries last up to 600 s and hide the status of the first refusal. */
  readonly retry: { readonly retryCodes: number[] };
  /** Cancels the call. Older versions of the SDK ignore it; the call then ends at its deadline. */
  readonly signal: AbortSignal;
}

/**
 * The part of `KeyManagementServiceClient` (`@google-cloud/kms`, a peer dependency) that the wrapper uses, over gRPC; a
 * fake also works. A client with the REST transport (`fallback: true`) is not supported, because its errors contain the
 * request and therefore the data key.
 */
export interface GcpKmsClient {
  /** Resolves to an array whose first element is the EncryptResponse. The caller checks its contents. */
  encrypt(request: GcpKmsEncryptRequest, options: GcpKmsCallOptions): Promise<unknown>;
  /** Resolves to an array whose first element is the DecryptResponse. The caller checks its contents. */
  decrypt(request: GcpKmsDecryptRequest, options: GcpKmsCallOptions): Promise<unknown>;
  /**
   * Finds credentials and creates the channel; returns the same promise every time. The wrapper awaits it before each
   * call, because missing credentials would otherwise also cause an unhandled rejection, which ends the process.
   */
  initialize?(): Promise<unknown>;
  /** Closes the channel. Called only on a client that the wrapper created. */
  close?(): Promise<void>;
}
