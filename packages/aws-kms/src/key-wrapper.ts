import { types } from 'node:util';
import { DecryptCommand, EncryptCommand, GenerateDataKeyCommand, KMSClient } from '@aws-sdk/client-kms';
import {
  type KeyWrapper,
  KeyWrapperError,
  type KeyWrapperErrorSummary,
  type WrapOptions,
  type WrappedKey,
} from '@sealring/core';
import { attempt, overwritePlaintext } from './attempts.ts';
import type { AwsKmsClient, AwsKmsCommand } from './client.ts';
import { mayMean, parseKeyArn } from './key-name.ts';
import { type AwsKmsKeyWrapperOptions, readOptions, type Settings, show } from './options.ts';

const PROVIDER = 'aws-kms';
const DATA_KEY_BYTES = 32;
/** Longest `CiphertextBlob` that Decrypt takes (AWS KMS API reference, Decrypt). */
const MAX_WRAPPED_BYTES = 6144;

type Operation = KeyWrapperErrorSummary['operation'];

/**
 * Wraps 32-byte data keys with a symmetric key of AWS KMS: GenerateDataKey (AES_256), Encrypt, Decrypt. The context
 * is sent whole as the encryption context, and KMS authenticates it; wrapped keys record the ARN of the key that KMS
 * says it used.
 *
 * A wrapped key never chooses which KMS key is asked: one that names neither `keyId`'s key nor one of `alsoUnwrap` is
 * refused before any call. Where `keyId` is an alias, its key is known from the answer only, which is held against the
 * record.
 *
 * Its methods reject with {@link KeyWrapperError}, or with a `TypeError` or `RangeError` for wrong arguments. A call
 * ends within `maxAttempts` × `timeoutSeconds` plus pauses of 0 to 0.1, 0.2, 0.4 … at most 2 seconds.
 *
 * Source: AWS KMS API reference, version 2014-11-01.
 *
 * @throws {TypeError} for an unknown option or one of a wrong type.
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

// Everything but the public facts is in private fields: those of a client show up in inspect(), credentials included.
class AwsKmsKeyWrapper implements KeyWrapper {
  readonly provider = PROVIDER;
  readonly keyId: string;
  readonly supports: KeyWrapper['supports'] = Object.freeze({ context: true, authenticated: true });
  readonly #settings: Settings;
  readonly #client: AwsKmsClient;
  readonly #inFlight = new Set<AbortController>();
  #closed = false;

  constructor(settings: Settings) {
    this.keyId = settings.keyId;
    this.#settings = settings;
    this.#client = settings.client ?? ownClient(settings);
  }

  async generate(options: WrapOptions): Promise<{ readonly dataKey: Uint8Array; readonly wrapped: WrappedKey }> {
    const { EncryptionContext, signal } = readWrapOptions(options);
    const command = new GenerateDataKeyCommand({ KeyId: this.keyId, KeySpec: 'AES_256', EncryptionContext });
    const answer = await this.#call('generate', command, signal);
    const dataKey = takeDataKey('generate', answer);
    try {
      return { dataKey, wrapped: this.#wrappedKeyOf('generate', answer) };
    } catch (error) {
      dataKey.fill(0);
      throw error;
    }
  }

  async wrap(dataKey: Uint8Array, options: WrapOptions): Promise<WrappedKey> {
    const { EncryptionContext, signal } = readWrapOptions(options);
    // A copy, so that a caller who overwrites his before a second attempt does not have zeros wrapped.
    const Plaintext = copyOfDataKey(dataKey);
    try {
      const command = new EncryptCommand({ KeyId: this.keyId, Plaintext, EncryptionContext });
      return this.#wrappedKeyOf('wrap', await this.#call('wrap', command, signal));
    } finally {
      Plaintext.fill(0);
    }
  }

  async unwrap(wrapped: WrappedKey, options: WrapOptions): Promise<Uint8Array> {
    const { EncryptionContext, signal } = readWrapOptions(options);
    const { keyId: recorded, wrapped: CiphertextBlob } = readWrappedKey(wrapped);
    const KeyId = this.#keyToAsk(recorded);
    const answer = await this.#call('unwrap', new DecryptCommand({ KeyId, CiphertextBlob, EncryptionContext }), signal);
    const dataKey = takeDataKey('unwrap', answer);
    if (!this.#isAnswerFor(recorded, KeyId, field(answer, 'KeyId'))) {
      dataKey.fill(0);
      throw corrupt('unwrap', 'KMS answered for another key than the wrapped key names');
    }
    return dataKey;
  }

  owns({ provider, keyId }: WrappedKey): boolean {
    const { alsoUnwrap, keyName, multiRegion } = this.#settings;
    return provider === PROVIDER && (alsoUnwrap.includes(keyId) || mayMean(keyName, keyId, multiRegion));
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const call of this.#inFlight) call.abort();
    if (this.#settings.client === undefined) this.#client.destroy?.();
  }

  /** The `KeyId` for Decrypt: always one of the configuration's own spellings, never text of the wrapped key. */
  #keyToAsk(recorded: string): string {
    const { alsoUnwrap, keyName, multiRegion } = this.#settings;
    const retired = alsoUnwrap.find((arn) => arn === recorded);
    if (retired !== undefined) return retired;
    if (mayMean(keyName, recorded, multiRegion)) return this.keyId;
    throw corrupt('unwrap', 'the wrapped key names a KMS key that is neither keyId nor in alsoUnwrap');
  }

  #isAnswerFor(recorded: string, asked: string, answered: unknown): boolean {
    if (typeof answered !== 'string') return false;
    if (asked !== this.keyId) return answered === asked;
    const name = parseKeyArn(recorded);
    const { keyName, multiRegion } = this.#settings;
    return name !== undefined && mayMean(name, answered, multiRegion) && mayMean(keyName, answered, false);
  }

  #wrappedKeyOf(operation: Operation, answer: unknown): WrappedKey {
    const keyId = field(answer, 'KeyId');
    const wrapped = field(answer, 'CiphertextBlob');
    if (typeof keyId !== 'string' || !mayMean(this.#settings.keyName, keyId, false)) {
      throw corrupt(operation, 'KMS answered for another key than keyId');
    }
    if (!types.isUint8Array(wrapped) || wrapped.length === 0 || wrapped.length > MAX_WRAPPED_BYTES) {
      throw corrupt(operation, 'the answer has no wrapped key');
    }
    return { provider: PROVIDER, keyId, wrapped: new Uint8Array(wrapped) };
  }

  async #call(operation: Operation, command: AwsKmsCommand, signal: AbortSignal | undefined): Promise<unknown> {
    const summary = { provider: PROVIDER, operation };
    if (this.#closed) throw new KeyWrapperError('unavailable', { ...summary, hint: 'the key wrapper is closed' });
    const call = new AbortController();
    const abort = (): void => call.abort();
    if (signal?.aborted === true) abort();
    signal?.addEventListener('abort', abort, { once: true });
    this.#inFlight.add(call);
    try {
      const outcome = await attempt(
        async (abortSignal) => this.#client.send(command, { abortSignal }),
        this.#settings,
        call.signal,
      );
      if ('answer' in outcome) return outcome.answer;
      const { kind, ...facts } = outcome.failure;
      throw new KeyWrapperError(kind, { ...summary, ...facts, attempts: outcome.attempts });
    } finally {
      this.#inFlight.delete(call);
      signal?.removeEventListener('abort', abort);
    }
  }
}

function ownClient({ keyName }: Settings): AwsKmsClient {
  // KMS finds a key by ARN in the ARN's region only.
  return new KMSClient({ maxAttempts: 1, ...('region' in keyName && { region: keyName.region }) });
}

/** Moves the data key out of an answer: what the SDK holds is overwritten, whether or not it passes. */
function takeDataKey(operation: Operation, answer: unknown): Uint8Array {
  const plaintext = field(answer, 'Plaintext');
  const dataKey = types.isUint8Array(plaintext) ? new Uint8Array(plaintext) : undefined;
  overwritePlaintext(answer);
  if (dataKey?.length === DATA_KEY_BYTES && !isConstant(dataKey)) return dataKey;
  dataKey?.fill(0);
  throw corrupt(operation, 'the answer has no data key of 32 bytes');
}

function corrupt(operation: Operation, hint: string): KeyWrapperError {
  return new KeyWrapperError('corrupt', { provider: PROVIDER, operation, hint });
}

function readWrapOptions(options: WrapOptions): {
  readonly EncryptionContext: Record<string, string>;
  readonly signal: AbortSignal | undefined;
} {
  if (typeof options !== 'object' || options === null) {
    throw new TypeError(`${PROVIDER}: options must be an object with a context, got ${show(options)}`);
  }
  const { context, signal } = options;
  const isObject = typeof context === 'object' && context !== null && !Array.isArray(context);
  if (!isObject || !Object.values(context).every((value) => typeof value === 'string')) {
    throw new TypeError(`${PROVIDER}: context must be an object of strings, got ${show(context)}`);
  }
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new TypeError(`${PROVIDER}: signal must be an AbortSignal, got ${show(signal)}`);
  }
  return { EncryptionContext: { ...context }, signal };
}

function copyOfDataKey(dataKey: unknown): Uint8Array {
  if (!types.isUint8Array(dataKey)) throw new TypeError(`${PROVIDER}: a data key is 32 bytes, got ${show(dataKey)}`);
  if (dataKey.length !== DATA_KEY_BYTES || isConstant(dataKey)) {
    throw new RangeError(`${PROVIDER}: a data key is 32 bytes that are not all equal, got ${show(dataKey)}`);
  }
  return new Uint8Array(dataKey);
}

function readWrappedKey(wrappedKey: WrappedKey): WrappedKey {
  if (typeof wrappedKey !== 'object' || wrappedKey === null) {
    throw new TypeError(`${PROVIDER}: a wrapped key is an object, got ${show(wrappedKey)}`);
  }
  const { provider, keyId, wrapped } = wrappedKey;
  if (typeof provider !== 'string' || typeof keyId !== 'string' || !types.isUint8Array(wrapped)) {
    throw new TypeError(`${PROVIDER}: a wrapped key has a provider, a keyId and wrapped bytes`);
  }
  if (provider !== PROVIDER) throw corrupt('unwrap', 'the wrapped key is of another provider');
  // KMS calls these a ValidationException, which would read as an error of the configuration.
  if (wrapped.length === 0 || wrapped.length > MAX_WRAPPED_BYTES) {
    throw corrupt('unwrap', 'the wrapped key is not 1 to 6144 bytes long');
  }
  return { provider, keyId, wrapped: new Uint8Array(wrapped) };
}

function isConstant(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === bytes[0]);
}

function field(answer: unknown, name: string): unknown {
  return typeof answer === 'object' && answer !== null ? Reflect.get(answer, name) : undefined;
}
