import { KeyWrapperError, type WrapOptions, type WrappedKey } from '@sealring/core';
import { keyWrapping, vendorError } from '@sealring/core/adapter';
import { type AzureCryptographyClient, type AzureWrapAlgorithm, cryptographyClient } from './clients.ts';
import { formatKeyId, isOf, parseVersionId, type VaultKeyId, type VaultKeyVersionId } from './key-id.ts';
import type { Settings } from './options.ts';
import { type CallerOptions, PROVIDER, type VaultCalls } from './vault-calls.ts';

/** Neither RSA-OAEP-256 nor A256KW takes a context, so the ring binds the context inside the wrapped plaintext. */
export const SUPPORTS: keyWrapping.ContextSupport = Object.freeze({ context: false });

/** RSA with 4096 bits, the longest key that a vault supports. */
const MAX_WRAPPED_BYTES = 512;
/** How long the current version of a key is cached: about the time between two reads of the ring. */
const CURRENT_VERSION_MS = 300_000;
/** Maximum number of cached cryptography clients, one per key version: a ring has at most 64 keys. */
const MAX_CLIENTS = 64;

/**
 * Wraps and unwraps data keys with the versions of one key in a vault, and unwraps with the versions of replaced keys.
 */
export class DataKeyWrapping {
  readonly #keyId: VaultKeyId;
  readonly #mayAsk: readonly VaultKeyId[];
  readonly #algorithm: AzureWrapAlgorithm;
  readonly #clients: Settings['clients'];
  readonly #calls: VaultCalls;
  readonly #cryptography = new Map<string, AzureCryptographyClient>();
  #current: { readonly id: VaultKeyVersionId; readonly until: number } | undefined;

  constructor({ keyId, alsoUnwrap, algorithm, clients }: Settings, calls: VaultCalls) {
    this.#keyId = keyId;
    this.#mayAsk = [keyId, ...alsoUnwrap];
    this.#algorithm = algorithm;
    this.#clients = clients;
    this.#calls = calls;
  }

  async wrap(dataKey: Uint8Array, wrapOptions: WrapOptions): Promise<WrappedKey> {
    const options = keyWrapping.readWrapOptions(PROVIDER, wrapOptions);
    const plaintext = keyWrapping.copyDataKey(PROVIDER, dataKey, SUPPORTS);
    try {
      return await this.#wrapWith(await this.#versionToWrapWith(options), plaintext, options);
    } catch (error) {
      // A refused version may have been replaced, so the next call looks up the current version again.
      if (error instanceof KeyWrapperError) this.#current = undefined;
      throw error;
    } finally {
      keyWrapping.overwrite(plaintext);
    }
  }

  async unwrap(wrappedKey: WrappedKey, wrapOptions: WrapOptions): Promise<Uint8Array> {
    const options = keyWrapping.readWrapOptions(PROVIDER, wrapOptions);
    const { keyId: recorded, wrapped } = keyWrapping.readWrappedKey(PROVIDER, wrappedKey, {
      maxBytes: MAX_WRAPPED_BYTES,
      owns: (keyId) => this.#find(keyId) !== undefined,
    });
    const version = this.#find(recorded) as VaultKeyVersionId;
    const { answer, keyId } = await this.#calls.call('unwrap', options, (call) =>
      this.#clientOf(version).unwrapKey(this.#algorithm, wrapped, call),
    );
    const result = vendorError.property(answer, 'result');
    if (isOf(version, keyId)) return keyWrapping.takeDataKey(PROVIDER, 'unwrap', result, SUPPORTS);
    keyWrapping.overwrite(result);
    throw keyWrapping.corrupt(
      PROVIDER,
      'unwrap',
      'the vault answered for a key other than the one that the wrapped key names',
    );
  }

  owns({ provider, keyId }: WrappedKey): boolean {
    return provider === PROVIDER && this.#find(keyId) !== undefined;
  }

  async #wrapWith(version: VaultKeyVersionId, plaintext: Uint8Array, options: CallerOptions): Promise<WrappedKey> {
    const { answer, keyId } = await this.#calls.call('wrap', options, (call) =>
      this.#clientOf(version).wrapKey(this.#algorithm, plaintext, call),
    );
    if (!isOf(version, keyId))
      throw keyWrapping.corrupt(PROVIDER, 'wrap', 'the vault answered for a key version other than the requested one');
    const wrapped = keyWrapping.copyWrapped(
      PROVIDER,
      'wrap',
      vendorError.property(answer, 'result'),
      MAX_WRAPPED_BYTES,
    );
    return { provider: PROVIDER, keyId: formatKeyId(version), wrapped };
  }

  /**
   * The version is always looked up: a call without a version wraps with the current version, but the SDK's result does
   * not show which version that was. A key wrapped in this way could not be unwrapped after the next rotation.
   */
  async #versionToWrapWith(options: CallerOptions): Promise<VaultKeyVersionId> {
    const { version } = this.#keyId;
    if (version !== undefined) return { ...this.#keyId, version };
    const now = performance.now();
    if (this.#current !== undefined && now < this.#current.until) return this.#current.id;
    const { vaultUrl, name } = this.#keyId;
    const { answer } = await this.#calls.call('wrap', options, (call) =>
      this.#clients.keys(vaultUrl).getKey(name, call),
    );
    const id = this.#find(vendorError.property(answer, 'id'), [this.#keyId]);
    if (id === undefined) throw keyWrapping.corrupt(PROVIDER, 'wrap', 'the vault answered for a key other than keyId');
    this.#current = { id, until: now + CURRENT_VERSION_MS };
    return id;
  }

  /** The version that a recorded identifier names, with the configured spelling of the vault and of the key's name. */
  #find(recorded: unknown, among: readonly VaultKeyId[] = this.#mayAsk): VaultKeyVersionId | undefined {
    const configured = among.find((key) => isOf(key, recorded));
    return configured && { ...configured, version: (parseVersionId(recorded) as VaultKeyVersionId).version };
  }

  /**
   * The client for one version of a key. Call this only inside `VaultCalls.call`, which classifies errors, because a
   * client factory may throw the vendor's errors.
   */
  #clientOf(version: VaultKeyVersionId): AzureCryptographyClient {
    const id = formatKeyId(version);
    let client = this.#cryptography.get(id);
    if (client === undefined) {
      client = cryptographyClient(this.#clients, version);
      const [oldest = ''] = this.#cryptography.keys();
      if (this.#cryptography.size >= MAX_CLIENTS) this.#cryptography.delete(oldest);
      this.#cryptography.set(id, client);
    }
    return client;
  }
}
