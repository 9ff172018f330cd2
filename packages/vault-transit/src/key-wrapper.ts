import {
  canonicalJson,
  type KeyWrapper,
  type KeyWrapperOperation,
  type WrapOptions,
  type WrappedKey,
} from '@sealring/core';
import { type Calls, keyWrapping, type ServiceFailure, serviceDate, vendorError } from '@sealring/core/adapter';
import { classify } from './error-table.ts';
import { bytesOf, keyIdOf, parseKeyId, type TransitKey, versionOf } from './key-path.ts';
import { readOptions, type Settings, type VaultTransitKeyWrapperOptions } from './options.ts';
import { request } from './transit-request.ts';

const PROVIDER = 'vault-transit';
/** Longer than any ciphertext of a data key: `vault:v`, ten digits, a colon, and 96 characters for XChaCha20-Poly1305. */
const MAX_WRAPPED_BYTES = 256;

const IGNORED = 'this server ignores associated_data: HashiCorp Vault 1.13 or later, or OpenBao, is required';

/** A configured key, and the version of that key that a wrapped key names. */
type VersionedKey = TransitKey & { readonly version: string };
type Checked = ReturnType<typeof keyWrapping.readWrapOptions>;

/**
 * Wraps 32-byte data keys with a key of the transit engine of HashiCorp Vault or OpenBao: `encrypt` and `decrypt`, by
 * `fetch`. The context, as canonical JSON, is the associated data, and Vault authenticates it. A wrapped key is Vault's
 * ciphertext, `vault:v3:…` in ASCII; its `keyId` is the key's path and version, `team/transit/keys/payments:v3`, which
 * does not depend on the address.
 *
 * A wrapped key never chooses which key is called: a wrapped key that names neither the configured key nor one of
 * `alsoUnwrap`, or is not in the canonical form, is refused before any call.
 *
 * Data keys are generated in this process, not by `datakey`, because HashiCorp Vault, and OpenBao before 2.5, silently
 * ignore associated data in `datakey` requests.
 *
 * The methods reject with {@link KeyWrapperError}, or with a `TypeError` or `RangeError` for wrong arguments. A call
 * ends within `maxAttempts` × `callTimeoutSeconds`, plus pauses of up to 0.1, 0.2, 0.4 … 2 seconds.
 *
 * Source: the transit secrets engine's HTTP API, as OpenBao 2.7 and HashiCorp Vault 1.13 and later serve it.
 *
 * @throws {TypeError} for an unknown option, or for an option of the wrong type.
 * @throws {RangeError} for an option outside its bounds.
 *
 * @example
 * ```ts
 * import { vaultTransitKeyWrapper } from '@sealring/vault-transit';
 *
 * const keyWrapper = vaultTransitKeyWrapper({
 *   address: 'https://vault.example.com:8200',
 *   keyId: 'payments',
 *   token: () => readFileSync('/run/vault/token', 'utf8').trim(),
 * });
 * ```
 */
export function vaultTransitKeyWrapper(
  options: VaultTransitKeyWrapperOptions,
): KeyWrapper & Required<Pick<KeyWrapper, 'close'>> {
  return Object.freeze(new VaultTransitKeyWrapper(readOptions(options)));
}

// Everything else is in private fields, including the token.
class VaultTransitKeyWrapper implements KeyWrapper {
  readonly provider = PROVIDER;
  readonly keyId: string;
  readonly supports: KeyWrapper['supports'] = Object.freeze({
    context: true,
    authenticated: true,
    keyVersions: true,
  });
  readonly #settings: Settings;
  readonly #calls: Calls<ServiceFailure>;

  constructor(settings: Settings) {
    this.keyId = settings.key.path;
    this.#settings = settings;
    this.#calls = keyWrapping.calls(settings, classify);
  }

  async wrap(dataKey: Uint8Array, options: WrapOptions): Promise<WrappedKey> {
    const checked = keyWrapping.readWrapOptions(PROVIDER, options);
    const copy = keyWrapping.copyDataKey(PROVIDER, dataKey, this.supports);
    const plaintext = base64(copy);
    keyWrapping.overwrite(copy);
    const { key } = this.#settings;
    const data = await this.#call('wrap', `${key.mount}/encrypt/${key.name}`, { plaintext }, checked);
    return wrappedKeyOf(key, vendorError.property(data, 'ciphertext'), vendorError.property(data, 'key_version'));
  }

  async unwrap(wrapped: WrappedKey, options: WrapOptions): Promise<Uint8Array> {
    const checked = keyWrapping.readWrapOptions(PROVIDER, options);
    const { keyId, wrapped: bytes } = keyWrapping.readWrappedKey(PROVIDER, wrapped, {
      maxBytes: MAX_WRAPPED_BYTES,
      owns: (recorded) => this.#find(recorded) !== undefined,
    });
    const { version, mount, name } = this.#find(keyId) as VersionedKey;
    const ciphertext = Buffer.from(bytes).toString('latin1');
    if (versionOf(ciphertext) !== version) {
      throw keyWrapping.corrupt(
        PROVIDER,
        'unwrap',
        'the wrapped key is not the ciphertext of a data key from the key version that it names',
      );
    }
    const data = await this.#call('unwrap', `${mount}/decrypt/${name}`, { ciphertext }, checked);
    return keyWrapping.takeDataKey(PROVIDER, 'unwrap', bytesOf(vendorError.property(data, 'plaintext')), this.supports);
  }

  owns({ provider, keyId }: WrappedKey): boolean {
    return provider === PROVIDER && this.#find(keyId) !== undefined;
  }

  async close(): Promise<void> {
    this.#calls.close();
  }

  /** Returns the configured key that `keyId` names, or undefined. The path of a call never comes from a wrapped key. */
  #find(keyId: string): VersionedKey | undefined {
    const { key, alsoUnwrap } = this.#settings;
    const recorded = parseKeyId(keyId);
    const found = [key, ...alsoUnwrap].find(({ path }) => path === recorded?.path);
    return found && { ...found, version: String(recorded?.version) };
  }

  async #call(
    operation: KeyWrapperOperation,
    path: string,
    body: object,
    { context, signal, onServiceDate }: Checked,
  ): Promise<unknown> {
    const whole = { ...body, associated_data: base64(Buffer.from(canonicalJson(context, { sortKeys: true }))) };
    const outcome = await this.#calls.run(signal, (abortSignal) => request(this.#settings, path, whole, abortSignal));
    if ('failure' in outcome) throw keyWrapping.errorOf(PROVIDER, operation, outcome);
    const { data, warnings, date } = outcome.answer;
    // A server that does not know the parameter wraps without the context, with at most a warning ("Endpoint ignored
    // these unrecognized parameters: [associated_data]").
    if (JSON.stringify([warnings]).includes('associated_data')) {
      throw keyWrapping.errorOf(PROVIDER, operation, { failure: { kind: 'denied', hint: IGNORED } });
    }
    serviceDate.noteDateHeader(date, onServiceDate);
    return data;
  }
}

function wrappedKeyOf(key: TransitKey, ciphertext: unknown, keyVersion: unknown): WrappedKey {
  const bytes = typeof ciphertext === 'string' ? Buffer.from(ciphertext) : undefined;
  const wrapped = keyWrapping.copyWrapped(PROVIDER, 'wrap', bytes, MAX_WRAPPED_BYTES);
  const version = String(keyVersion);
  if (versionOf(String(ciphertext)) !== version) {
    throw keyWrapping.corrupt(PROVIDER, 'wrap', 'the answer has no ciphertext made by the key version that it names');
  }
  return { provider: PROVIDER, keyId: keyIdOf(key, version), wrapped };
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64');
}
