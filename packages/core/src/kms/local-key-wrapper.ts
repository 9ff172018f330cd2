import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
  randomFillSync,
} from 'node:crypto';
import { types } from 'node:util';
import { canonicalJson } from '../base/canonical-json.ts';
import {
  isConstant,
  optionRangeError,
  optionTypeError,
  refuseUnknownOptions,
  secretBytes,
  show,
  unpooled,
} from '../base/options.ts';
import {
  DATA_KEY_BYTES,
  type KeyWrapper,
  KeyWrapperError,
  type KeyWrapperErrorSummary,
  type WrapOptions,
  type WrappedKey,
} from '../contracts/key-wrapper.ts';

const OWNER = 'localKeyWrapper';
const PROVIDER = 'local';
const KEY_INFO = 'sealring/v1/local-key-wrapper';
const KEY_ID_LABEL = 'sealring/v1/local-key-wrapper/key-id';
const KEY_BYTES = 32;
const KEY_ID_BYTES = 9;
const MIN_MASTER_KEY_BYTES = 32;
const PRINTS_A_KEY = '"openssl rand -base64 32"';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const WRAPPED_BYTES = NONCE_BYTES + DATA_KEY_BYTES + TAG_BYTES;

/** How {@link localKeyWrapper} wraps. */
export interface LocalKeyWrapperOptions {
  /**
   * The key that wraps and unwraps: at least 32 random bytes, or their base64 or base64url text, as printed by
   * `openssl rand -base64 32`. It is copied.
   */
  readonly masterKey: Uint8Array | string;
  /** Earlier master keys, in the same form, that only unwrap. Default: none. */
  readonly alsoUnwrap?: readonly (Uint8Array | string)[];
}

interface MasterKey {
  readonly keyId: string;
  readonly key: KeyObject;
}

/**
 * Wraps data keys in this process, under a master key that you keep: for development, tests, and machines without a
 * KMS. This key cannot be disabled from outside, and anyone who can read the configuration of the process has it.
 *
 * The AES-256 key is derived from the master key with HKDF-SHA256 (RFC 5869). A wrapped key has 60 bytes: nonce (12),
 * ciphertext (32) and tag (16) of AES-256-GCM, which also authenticates the context, the provider and the key id. Nonces
 * are random, so one master key may make at most 2^32 wraps (SP 800-38D section 8.3).
 *
 * To change the master key, pass the new one as `masterKey` and the old one in `alsoUnwrap`, on every server.
 *
 * @throws {TypeError} for a master key that is neither bytes nor text, and for an unknown option.
 * @throws {RangeError} for a master key that is too short, repeats one byte, is readable text, or was given twice.
 *
 * @example
 * ```ts
 * const keyWrapper = localKeyWrapper({ masterKey: randomBytes(32) });
 * ```
 */
export function localKeyWrapper(options: LocalKeyWrapperOptions): KeyWrapper {
  refuseUnknownOptions(OWNER, options, ['masterKey', 'alsoUnwrap']);
  const earlier: unknown = options.alsoUnwrap ?? [];
  if (!Array.isArray(earlier)) throw optionTypeError(`${OWNER}: alsoUnwrap must be an array, got ${show(earlier)}`);
  const master = deriveMasterKey('masterKey', options.masterKey);
  const byKeyId = new Map([[master.keyId, master]]);
  for (const [index, value] of earlier.entries()) {
    const key = deriveMasterKey(`alsoUnwrap[${index}]`, value);
    if (byKeyId.has(key.keyId)) throw optionRangeError(`${OWNER}: alsoUnwrap[${index}] repeats another master key`);
    byKeyId.set(key.keyId, key);
  }

  // The keys are in a closure, not in fields, so no property leads inspect, JSON or a debugger's getter to a key.
  return Object.freeze<KeyWrapper>({
    provider: PROVIDER,
    keyId: master.keyId,
    supports: Object.freeze({ context: true, authenticated: true }),

    async wrap(dataKey, wrapOptions) {
      checkDataKey(dataKey);
      const additionalData = authenticated(master.keyId, wrapOptions);
      refuseAborted('wrap', wrapOptions);
      return seal(master, dataKey, additionalData);
    },

    owns: (wrapped) => wrapped.provider === PROVIDER && byKeyId.has(wrapped.keyId),
    async unwrap(wrapped, wrapOptions) {
      if (typeof wrapped !== 'object' || wrapped === null) {
        throw optionTypeError(`${OWNER}: wrapped must be an object, got ${show(wrapped)}`);
      }
      const key = wrapped.provider === PROVIDER ? byKeyId.get(wrapped.keyId) : undefined;
      if (key === undefined) throw failure('corrupt', 'unwrap', 'wrapped by another provider or master key');
      if (!types.isUint8Array(wrapped.wrapped)) {
        throw optionTypeError(`${OWNER}: wrapped.wrapped must be a Uint8Array, got ${show(wrapped.wrapped)}`);
      }
      const additionalData = authenticated(key.keyId, wrapOptions);
      refuseAborted('unwrap', wrapOptions);
      return open(key, wrapped.wrapped, additionalData);
    },

    async generate(wrapOptions) {
      const additionalData = authenticated(master.keyId, wrapOptions);
      refuseAborted('generate', wrapOptions);
      const dataKey = randomFillSync(new Uint8Array(DATA_KEY_BYTES));
      return { dataKey, wrapped: seal(master, dataKey, additionalData) };
    },
  });
}

function deriveMasterKey(name: string, value: unknown): MasterKey {
  const secret = secretBytes(OWNER, name, decoded(name, value), MIN_MASTER_KEY_BYTES);
  if (isPrintable(secret)) {
    throw optionRangeError(
      `${OWNER}: ${name} is printable text, not random bytes: pass the output of ${PRINTS_A_KEY}, as a string, or decode it`,
    );
  }
  if (isConstant(secret))
    throw optionRangeError(`${OWNER}: ${name} consists of one repeated byte, like a buffer that was never filled`);
  const derived = Buffer.from(hkdfSync('sha256', secret, '', KEY_INFO, KEY_BYTES));
  secret.fill(0);
  const fingerprint = createHash('sha256').update(KEY_ID_LABEL).update(derived).digest();
  const key = createSecretKey(derived);
  derived.fill(0);
  return { keyId: `${PROVIDER}:${fingerprint.toString('base64url', 0, KEY_ID_BYTES)}`, key };
}

/** The bytes of base64 or base64url text. Text that people can read or remember has too little randomness. */
function decoded(name: string, value: unknown): unknown {
  if (typeof value !== 'string') return value;
  // Hexadecimal text is also valid base64, but other programs would decode it to different bytes.
  if (/^(?:[0-9a-f]{2}){32,}$/i.test(value)) {
    throw optionRangeError(
      `${OWNER}: ${name} is hexadecimal text: decode it with Buffer.from(text, 'hex'), or pass the output of ${PRINTS_A_KEY}`,
    );
  }
  const bytes = unpooled(Buffer.from(value, 'base64'));
  const spelling = value
    .replace(/={1,2}$/, '')
    .replaceAll('+', '-')
    .replaceAll('/', '_');
  if (bytes.toString('base64url') === spelling) return bytes;
  throw optionRangeError(
    `${OWNER}: ${name} is text that is not base64: pass 32 random bytes, or the output of ${PRINTS_A_KEY}`,
  );
}

/** Whether every byte is printable ASCII or white space, which is true of 32 random bytes about once in 10^13 cases. */
function isPrintable(bytes: Uint8Array): boolean {
  return bytes.every((byte) => (byte >= 0x20 && byte <= 0x7e) || (byte >= 0x09 && byte <= 0x0d));
}

function checkDataKey(dataKey: unknown): void {
  if (!types.isUint8Array(dataKey)) {
    throw optionTypeError(`${OWNER}: a data key must be a Uint8Array, got ${show(dataKey)}`);
  }
  if (dataKey.length !== DATA_KEY_BYTES) {
    throw optionRangeError(`${OWNER}: a data key must have ${DATA_KEY_BYTES} bytes, got ${dataKey.length}`);
  }
  if (isConstant(dataKey)) throw optionRangeError(`${OWNER}: a data key must not be one byte repeated`);
}

/** The additional authenticated data of a wrap. */
function authenticated(keyId: string, options: WrapOptions): Buffer {
  const context: unknown = options?.context;
  if (typeof context !== 'object' || context === null || Array.isArray(context)) {
    throw optionTypeError(`${OWNER}: context must be an object of strings, got ${show(context)}`);
  }
  for (const [name, value] of Object.entries(context)) {
    if (typeof value !== 'string') {
      throw optionTypeError(`${OWNER}: context[${JSON.stringify(name)}] must be a string, got ${show(value)}`);
    }
  }
  return Buffer.from(canonicalJson({ context, keyId, provider: PROVIDER }, { sortKeys: true }));
}

function refuseAborted(operation: KeyWrapperErrorSummary['operation'], options: WrapOptions): void {
  if (options.signal?.aborted === true) throw failure('unavailable', operation, 'aborted by the caller');
}

function seal(master: MasterKey, dataKey: Uint8Array, additionalData: Uint8Array): WrappedKey {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', master.key, nonce);
  cipher.setAAD(additionalData);
  const wrapped = new Uint8Array(WRAPPED_BYTES);
  wrapped.set(nonce, 0);
  wrapped.set(cipher.update(dataKey), NONCE_BYTES);
  cipher.final();
  wrapped.set(cipher.getAuthTag(), NONCE_BYTES + DATA_KEY_BYTES);
  return { provider: PROVIDER, keyId: master.keyId, wrapped };
}

function open(master: MasterKey, wrapped: Uint8Array, additionalData: Uint8Array): Uint8Array {
  if (wrapped.length !== WRAPPED_BYTES)
    throw failure('corrupt', 'unwrap', `the wrapped key is not ${WRAPPED_BYTES} bytes long`);
  const nonce = wrapped.subarray(0, NONCE_BYTES);
  const decipher = createDecipheriv('aes-256-gcm', master.key, nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(additionalData);
  decipher.setAuthTag(wrapped.subarray(NONCE_BYTES + DATA_KEY_BYTES));
  const plaintext = decipher.update(wrapped.subarray(NONCE_BYTES, NONCE_BYTES + DATA_KEY_BYTES));
  try {
    decipher.final();
  } catch {
    plaintext.fill(0);
    throw failure('corrupt', 'unwrap', 'wrapped key or context changed');
  }
  const dataKey = Uint8Array.from(plaintext);
  plaintext.fill(0);
  if (isConstant(dataKey)) throw failure('corrupt', 'unwrap', 'the data key is one byte repeated');
  return dataKey;
}

function failure(
  kind: 'corrupt' | 'unavailable',
  operation: KeyWrapperErrorSummary['operation'],
  hint: string,
): KeyWrapperError {
  return new KeyWrapperError(kind, { provider: PROVIDER, operation, hint });
}
