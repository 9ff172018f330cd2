import { DecryptCommand, EncryptCommand, GenerateDataKeyCommand, KMSClient } from '@aws-sdk/client-kms';
import type { KeyWrapper, KeyWrapperOperation, WrapOptions, WrappedKey } from '@sealring/core';
import { type Calls, keyWrapping, type ServiceFailure, serviceDate, vendorError } from '@sealring/core/adapter';
import type { AwsKmsClient, AwsKmsCommand } from './client.ts';
import { classify } from './error-table.ts';
import { type KeyName, mayMean, parseKeyArn } from './key-name.ts';
import { type AwsKmsKeyWrapperOptions, readOptions, type Settings } from './options.ts';

const PROVIDER = 'aws-kms';
/** A name such as `us-gov-west-1`. */
const REGION = /^[a-z0-9-]{1,32}$/;
/** Longest `CiphertextBlob` that Decrypt accepts (AWS KMS API reference, Decrypt). */
const MAX_WRAPPED_BYTES = 6144;
const PERMISSIONS: Readonly<Partial<Record<KeyWrapperOperation, string>>> = Object.freeze({
  generate: 'kms:GenerateDataKey',
  wrap: 'kms:Encrypt',
  unwrap: 'kms:Decrypt',
});

/**
 * Wraps 32-byte data keys with a symmetric key of AWS KMS: GenerateDataKey (AES_256), Encrypt, Decrypt. The whole
 * context is sent as the encryption context, and KMS authenticates it. A wrapped key records the key ARN that KMS
 * reports.
 *
 * A wrapped key never determines which KMS key is used: a wrapped key that names neither the key in `keyId` nor one in
 * `alsoUnwrap` is refused before any call. If `keyId` is an alias, the wrapper learns from KMS's answer which key the
 * alias refers to. That key must be the one that the wrapped key records.
 *
 * Its methods reject with `KeyWrapperError`, or with a `TypeError` or `RangeError` for wrong arguments. A call ends
 * within `maxAttempts` × `callTimeoutSeconds`, plus pauses of up to 0.1, 0.2, 0.4 … 2 seconds.
 *
 * Source: AWS KMS API reference, version 2014-11-01.
 *
 * @throws {TypeError} for an unknown option, or for an option of the wrong type.
 * @throws {RangeError} for an option outside its bounds.
 *
 * @example
 * ```ts
 * import { KMSClient } from '@aws-sdk/client-kms';
 * import { awsKmsKeyWrapper } from '@sealring/aws-kms';
 *
 * const keyWrapper = awsKmsKeyWrapper({
 *   keyId: 'arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab',
 *   client: new KMSClient({ region: 'eu-west-1', maxAttempts: 1 }),
 * });
 * ```
 */
export function awsKmsKeyWrapper(
  options: AwsKmsKeyWrapperOptions,
): KeyWrapper & Required<Pick<KeyWrapper, 'generate' | 'close'>> {
  return Object.freeze(new AwsKmsKeyWrapper(readOptions(options)));
}

// Everything else is in private fields, because inspect() shows the fields of a client, credentials included.
class AwsKmsKeyWrapper implements KeyWrapper {
  readonly provider = PROVIDER;
  readonly keyId: string;
  readonly supports: KeyWrapper['supports'] = Object.freeze({ context: true, authenticated: true });
  readonly #settings: Settings;
  readonly #client: AwsKmsClient;
  /** The wrapper's own client; undefined if the client belongs to the caller. */
  readonly #own: KMSClient | undefined;
  readonly #calls: Calls<ServiceFailure>;

  constructor(settings: Settings) {
    this.keyId = settings.keyId;
    this.#settings = settings;
    this.#client = settings.client ?? ownClient(settings);
    this.#own = settings.client === undefined ? (this.#client as KMSClient) : undefined;
    this.#calls = keyWrapping.calls(settings, classify);
  }

  async generate(options: WrapOptions): Promise<{ readonly dataKey: Uint8Array; readonly wrapped: WrappedKey }> {
    const { context: EncryptionContext, ...call } = keyWrapping.readWrapOptions(PROVIDER, options);
    const command = new GenerateDataKeyCommand({ KeyId: this.keyId, KeySpec: 'AES_256', EncryptionContext });
    const answer = await this.#call('generate', command, call);
    try {
      return { wrapped: this.#wrappedKeyOf('generate', answer), dataKey: this.#takeDataKey('generate', answer) };
    } finally {
      keyWrapping.overwrite(vendorError.property(answer, 'Plaintext'));
    }
  }

  async wrap(dataKey: Uint8Array, options: WrapOptions): Promise<WrappedKey> {
    const { context: EncryptionContext, ...call } = keyWrapping.readWrapOptions(PROVIDER, options);
    const Plaintext = keyWrapping.copyDataKey(PROVIDER, dataKey, this.supports);
    try {
      const command = new EncryptCommand({ KeyId: this.keyId, Plaintext, EncryptionContext });
      return this.#wrappedKeyOf('wrap', await this.#call('wrap', command, call));
    } finally {
      keyWrapping.overwrite(Plaintext);
    }
  }

  async unwrap(wrapped: WrappedKey, options: WrapOptions): Promise<Uint8Array> {
    const { context: EncryptionContext, ...call } = keyWrapping.readWrapOptions(PROVIDER, options);
    const { keyId: recorded, wrapped: CiphertextBlob } = keyWrapping.readWrappedKey(PROVIDER, wrapped, {
      maxBytes: MAX_WRAPPED_BYTES,
      owns: (keyId) => this.#mayAsk(keyId),
    });
    const KeyId = this.#keyToAsk(recorded);
    const answer = await this.#call('unwrap', new DecryptCommand({ KeyId, CiphertextBlob, EncryptionContext }), call);
    try {
      if (this.#isAnswerFor(recorded, KeyId, vendorError.property(answer, 'KeyId')))
        return this.#takeDataKey('unwrap', answer);
      throw keyWrapping.corrupt(
        PROVIDER,
        'unwrap',
        'KMS answered for a key other than the one that the wrapped key names',
      );
    } finally {
      keyWrapping.overwrite(vendorError.property(answer, 'Plaintext'));
    }
  }

  owns({ provider, keyId }: WrappedKey): boolean {
    return provider === PROVIDER && this.#mayAsk(keyId);
  }

  async close(): Promise<void> {
    this.#calls.close();
    this.#own?.destroy();
  }

  #mayAsk(keyId: string): boolean {
    const { alsoUnwrap, keyName, multiRegion } = this.#settings;
    return alsoUnwrap.includes(keyId) || mayMean(keyName, keyId, multiRegion);
  }

  /** The key as it was configured, never text from the wrapped key. */
  #keyToAsk(recorded: string): string {
    const { alsoUnwrap, keyName, multiRegion } = this.#settings;
    // KMS finds an ARN only in its own Region, so a replica of the key in keyId is asked for by keyId. An alias may mean
    // any key, so for a listed key it is not asked.
    if ('id' in keyName && mayMean(keyName, recorded, multiRegion)) return this.keyId;
    return alsoUnwrap.find((arn) => arn === recorded) ?? this.keyId;
  }

  #isAnswerFor(recorded: string, asked: string, answered: unknown): boolean {
    if (typeof answered !== 'string') return false;
    if (asked !== this.keyId) return answered === asked;
    const { keyName, multiRegion } = this.#settings;
    // `recorded` is a full ARN, because `#mayAsk` accepts nothing else.
    const name = parseKeyArn(recorded) as KeyName;
    return mayMean(name, answered, multiRegion) && mayMean(keyName, answered, false);
  }

  #wrappedKeyOf(operation: KeyWrapperOperation, answer: unknown): WrappedKey {
    const keyId = vendorError.property(answer, 'KeyId');
    if (typeof keyId !== 'string' || !mayMean(this.#settings.keyName, keyId, false)) {
      throw keyWrapping.corrupt(PROVIDER, operation, 'KMS answered for a key other than keyId');
    }
    const wrapped = keyWrapping.copyWrapped(
      PROVIDER,
      operation,
      vendorError.property(answer, 'CiphertextBlob'),
      MAX_WRAPPED_BYTES,
    );
    return { provider: PROVIDER, keyId, wrapped };
  }

  #takeDataKey(operation: KeyWrapperOperation, answer: unknown): Uint8Array {
    return keyWrapping.takeDataKey(PROVIDER, operation, vendorError.property(answer, 'Plaintext'), this.supports);
  }

  async #call(
    operation: KeyWrapperOperation,
    command: AwsKmsCommand,
    { signal, onServiceDate }: Omit<keyWrapping.CheckedWrapOptions, 'context'>,
  ): Promise<unknown> {
    serviceDate.noteDateOf(command, onServiceDate);
    const outcome = await this.#calls.run<unknown>(
      signal,
      async (abortSignal) => ({ answer: await this.#client.send(command, { abortSignal }) }),
      (late) => keyWrapping.overwrite(vendorError.property(late, 'Plaintext')),
    );
    if ('answer' in outcome) return outcome.answer;
    const failure = outcome.failure.kind === 'not-found' ? await this.#withRegion(outcome.failure) : outcome.failure;
    throw keyWrapping.errorOf(PROVIDER, operation, { ...outcome, failure, permission: PERMISSIONS[operation] });
  }

  /** Adds the client's region to the hint, because the most common cause of a missing key is a wrong region. */
  async #withRegion(failure: ServiceFailure): Promise<ServiceFailure> {
    // Reads the region only from the wrapper's own client, because the caller's client is foreign code. A value
    // that does not look like the name of a region could be any text, so it is not shown.
    const region = await this.#own?.config.region();
    return region !== undefined && REGION.test(region) ? { ...failure, hint: `${failure.hint}: ${region}` } : failure;
  }
}

function ownClient({ keyName }: Settings): KMSClient {
  // KMS finds a key by ARN only in the ARN's region.
  return new KMSClient({ maxAttempts: 1, ...('region' in keyName && { region: keyName.region }) });
}
