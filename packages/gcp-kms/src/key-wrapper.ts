import {
  canonicalJson,
  type KeyWrapper,
  type KeyWrapperOperation,
  type WrapOptions,
  type WrappedKey,
} from '@sealring/core';
import { type Calls, keyWrapping, type ServiceFailure, vendorError } from '@sealring/core/adapter';
import type { GcpKmsCallOptions, GcpKmsClient } from './client.ts';
import { type Connection, givenConnection, makeClient, ownConnection } from './connection.ts';
import { checksumHolds, crc32c } from './crc32c.ts';
import { classify } from './error-table.ts';
import { keyOfVersion } from './key-name.ts';
import { type GcpKmsKeyWrapperOptions, readOptions, type Settings } from './options.ts';
import { VERSION_TAG_BYTES, versionTag, versionTagHolds } from './version-tag.ts';

const PROVIDER = 'gcp-kms';
/**
 * Longest wrapped key, in bytes, its tag included. Cloud KMS documents no limit; its ciphertext of a data key is about
 * 100 bytes long.
 */
const MAX_WRAPPED_BYTES = 4096;

/** Cloud KMS gives the same answer whether the permission is missing or the key does not exist. */
const PERMISSIONS: Readonly<Partial<Record<KeyWrapperOperation, string>>> = Object.freeze({
  wrap: 'cloudkms.cryptoKeyVersions.useToEncrypt, or the key does not exist',
  unwrap: 'cloudkms.cryptoKeyVersions.useToDecrypt, or the key does not exist',
});

const NOT_INITIALIZED: ServiceFailure = Object.freeze({
  kind: 'unavailable',
  hint: 'the client could not be initialized: check its credentials',
});

/**
 * Wraps 32-byte data keys with a symmetric Google Cloud KMS key, using Encrypt and Decrypt over gRPC. The context is
 * sent as additional authenticated data, in canonical JSON with sorted keys. Every byte string is sent with its CRC32C,
 * and the CRC32C of every answer is verified. Wrapped keys record the name of the key version that Cloud KMS reports.
 *
 * A wrapped key cannot cause a call to a key that is not configured: a wrapped key that names a version of neither
 * `keyId` nor a key in `alsoUnwrap` is refused before any call. Decrypt takes no version and does not report which
 * version it used, so a wrapped key is Cloud KMS's ciphertext of the data key followed by 32 bytes: an HMAC, under the
 * data key, of the version's name. A wrapped key that names another version of the same key is refused after it has
 * been unwrapped.
 *
 * The methods reject with `KeyWrapperError`, or with a `TypeError` or `RangeError` for wrong arguments. A call ends
 * within `maxAttempts` × `callTimeoutSeconds`, plus pauses of up to 0.1, 0.2, 0.4 … 2 seconds.
 *
 * Source: Cloud KMS API reference, google.cloud.kms.v1.
 *
 * @throws {TypeError} for an unknown option, or for an option of the wrong type.
 * @throws {RangeError} for an option outside its bounds.
 *
 * @example
 * ```ts
 * import { KeyManagementServiceClient } from '@google-cloud/kms';
 * import { gcpKmsKeyWrapper } from '@sealring/gcp-kms';
 *
 * const keyWrapper = gcpKmsKeyWrapper({
 *   keyId: 'projects/shop/locations/europe-west1/keyRings/mcp/cryptoKeys/sealring',
 *   client: new KeyManagementServiceClient(),
 * });
 * ```
 */
export function gcpKmsKeyWrapper(options: GcpKmsKeyWrapperOptions): KeyWrapper & Required<Pick<KeyWrapper, 'close'>> {
  return Object.freeze(new GcpKmsKeyWrapper(readOptions(options)));
}

// Everything else is in private fields, because inspect() shows the fields of a client, credentials included.
class GcpKmsKeyWrapper implements KeyWrapper {
  readonly provider = PROVIDER;
  readonly keyId: string;
  readonly supports: KeyWrapper['supports'] = Object.freeze({
    context: true,
    authenticated: true,
    keyVersions: true,
  });
  readonly #settings: Settings;
  readonly #connection: Connection;
  readonly #calls: Calls<ServiceFailure>;

  constructor(settings: Settings) {
    this.keyId = settings.keyId;
    this.#settings = settings;
    this.#connection =
      settings.client === undefined
        ? ownConnection(() => makeClient(settings.endpoint))
        : givenConnection(settings.client);
    this.#calls = keyWrapping.calls(settings, (error) => classify(error, 'unwrap'), mayPass);
  }

  async wrap(dataKey: Uint8Array, options: WrapOptions): Promise<WrappedKey> {
    const { context, signal } = keyWrapping.readWrapOptions(PROVIDER, options);
    const plaintext = keyWrapping.copyDataKey(PROVIDER, dataKey, this.supports);
    const request = {
      name: this.keyId,
      plaintext,
      plaintextCrc32c: { value: crc32c(plaintext) },
      ...authenticated(context),
    };
    try {
      return this.#wrappedKeyOf(
        plaintext,
        await this.#call('wrap', signal, (client, callOptions) => client.encrypt(request, callOptions)),
      );
    } finally {
      keyWrapping.overwrite(plaintext);
    }
  }

  async unwrap(wrapped: WrappedKey, options: WrapOptions): Promise<Uint8Array> {
    const { context, signal } = keyWrapping.readWrapOptions(PROVIDER, options);
    const { keyId: version, wrapped: bytes } = keyWrapping.readWrappedKey(PROVIDER, wrapped, {
      maxBytes: MAX_WRAPPED_BYTES,
      owns: (keyId) => this.#keyToAsk(keyId) !== undefined,
    });
    const ciphertext = bytes.subarray(0, -VERSION_TAG_BYTES);
    if (ciphertext.length === 0) throw keyWrapping.corrupt(PROVIDER, 'unwrap', 'the wrapped key is too short');
    const request = {
      // Decrypt takes the key and finds the version in the ciphertext.
      name: this.#keyToAsk(version) as string,
      ciphertext,
      ciphertextCrc32c: { value: crc32c(ciphertext) },
      ...authenticated(context),
    };
    const answer = await this.#call('unwrap', signal, (client, callOptions) => client.decrypt(request, callOptions));
    const plaintext = vendorError.property(answer, 'plaintext');
    const isWhole = checksumHolds(plaintext, vendorError.property(answer, 'plaintextCrc32c'));
    const dataKey = keyWrapping.takeDataKey(PROVIDER, 'unwrap', plaintext, this.supports);
    if (isWhole && versionTagHolds(bytes.subarray(-VERSION_TAG_BYTES), dataKey, version)) return dataKey;
    keyWrapping.overwrite(dataKey);
    throw keyWrapping.corrupt(
      PROVIDER,
      'unwrap',
      isWhole
        ? 'the wrapped key was made with a key version other than the one that it names'
        : 'the checksum of the answer does not match',
    );
  }

  owns({ provider, keyId }: WrappedKey): boolean {
    return provider === PROVIDER && this.#keyToAsk(keyId) !== undefined;
  }

  async close(): Promise<void> {
    this.#calls.close();
    await this.#connection.close();
  }

  /** The configured key that made a wrapped key of this version, in the configured spelling. */
  #keyToAsk(version: string): string | undefined {
    const key = keyOfVersion(version);
    return [this.keyId, ...this.#settings.alsoUnwrap].find((name) => name === key);
  }

  #wrappedKeyOf(dataKey: Uint8Array, answer: unknown): WrappedKey {
    const version = vendorError.property(answer, 'name');
    if (typeof version !== 'string' || keyOfVersion(version) !== this.keyId) {
      throw keyWrapping.corrupt(
        PROVIDER,
        'wrap',
        'Cloud KMS answered for a key other than keyId, or with a different spelling of its name',
      );
    }
    if (
      vendorError.property(answer, 'verifiedPlaintextCrc32c') !== true ||
      vendorError.property(answer, 'verifiedAdditionalAuthenticatedDataCrc32c') !== true
    ) {
      throw keyWrapping.corrupt(PROVIDER, 'wrap', 'Cloud KMS did not verify the checksums of the request');
    }
    const ciphertext = vendorError.property(answer, 'ciphertext');
    const copy = keyWrapping.copyWrapped(PROVIDER, 'wrap', ciphertext, MAX_WRAPPED_BYTES - VERSION_TAG_BYTES);
    if (!checksumHolds(copy, vendorError.property(answer, 'ciphertextCrc32c'))) {
      throw keyWrapping.corrupt(PROVIDER, 'wrap', 'the checksum of the answer does not match');
    }
    const wrapped = new Uint8Array([...copy, ...versionTag(dataKey, version)]);
    return { provider: PROVIDER, keyId: version, wrapped };
  }

  async #call(
    operation: 'wrap' | 'unwrap',
    signal: AbortSignal | undefined,
    send: (client: GcpKmsClient, options: GcpKmsCallOptions) => Promise<unknown>,
  ): Promise<unknown> {
    const outcome = await this.#calls.run<unknown>(
      signal,
      (abortSignal) => this.#attempt(operation, abortSignal, send),
      (late) => keyWrapping.overwrite(vendorError.property(late, 'plaintext')),
    );
    if ('answer' in outcome) return outcome.answer;
    throw keyWrapping.errorOf(PROVIDER, operation, { ...outcome, permission: PERMISSIONS[operation] });
  }

  async #attempt(
    operation: 'wrap' | 'unwrap',
    signal: AbortSignal,
    send: (client: GcpKmsClient, options: GcpKmsCallOptions) => Promise<unknown>,
  ): Promise<{ readonly answer: unknown } | { readonly failure: ServiceFailure }> {
    let client: GcpKmsClient;
    try {
      client = await this.#connection.ready();
    } catch {
      return { failure: NOT_INITIALIZED };
    }
    try {
      signal.throwIfAborted();
      // A new options object is created for every attempt, because the SDK writes to it.
      const answer = await send(client, { timeout: this.#settings.timeoutMs, retry: { retryCodes: [] }, signal });
      return { answer: vendorError.property(answer, '0') };
    } catch (error) {
      return { failure: classify(error, operation) };
    }
  }
}

/**
 * Other servers of this protocol return INTERNAL for a wrong context, which no retry can fix, so INTERNAL is retried
 * only once.
 */
function mayPass({ code }: ServiceFailure, attempts: number): boolean {
  return code !== 'INTERNAL' || attempts < 2;
}

/** The additional authenticated data: at most 64 KiB, and for HSM keys 8 KiB with the data key. */
function authenticated(context: Readonly<Record<string, string>>): {
  readonly additionalAuthenticatedData: Uint8Array;
  readonly additionalAuthenticatedDataCrc32c: { readonly value: number };
} {
  const bytes = Buffer.from(canonicalJson(context, { sortKeys: true }), 'utf8');
  return { additionalAuthenticatedData: bytes, additionalAuthenticatedDataCrc32c: { value: crc32c(bytes) } };
}
