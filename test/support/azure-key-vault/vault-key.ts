import {
  constants,
  createCipheriv,
  createDecipheriv,
  createECDH,
  generateKeyPairSync,
  type KeyObject,
  privateDecrypt,
  publicEncrypt,
  randomBytes,
} from 'node:crypto';
import { REFUSALS, VaultError } from './vault-error.ts';

/** Kinds of keys that the fake makes: RSA 2048 and EC P-256 of a vault, 256-bit AES of a Managed HSM. */
export type VaultKeyType = 'RSA' | 'EC' | 'oct-HSM';

/** Operations that a key may allow. */
export type CryptographyOperation = 'wrapKey' | 'unwrapKey' | 'sign';

/** Attributes of a version, as Key Vault has them; times in milliseconds since the epoch. */
export interface VersionAttributes {
  enabled: boolean;
  notBefore?: number | undefined;
  expires?: number | undefined;
}

/** Default key operations of each type in a vault. */
const OPERATIONS: Readonly<Record<VaultKeyType, readonly string[]>> = {
  RSA: ['encrypt', 'decrypt', 'sign', 'verify', 'wrapKey', 'unwrapKey'],
  EC: ['sign', 'verify'],
  'oct-HSM': ['encrypt', 'decrypt', 'wrapKey', 'unwrapKey'],
};

const ALGORITHMS: Readonly<Record<string, VaultKeyType>> = {
  'RSA-OAEP-256': 'RSA',
  A256KW: 'oct-HSM',
  ES256: 'EC',
};

/** RFC 3394, section 2.2.3.1. */
const AES_KW_IV = Buffer.alloc(8, 0xa6);

/** One version of a key: its material, which never leaves this object, and its attributes. */
export class KeyVersion {
  readonly id = randomBytes(16).toString('hex');
  readonly type: VaultKeyType;
  readonly attributes: VersionAttributes = { enabled: true };
  /** The allowed operations; assign to restrict them. */
  operations: readonly string[];
  readonly #createdSeconds = Math.floor(Date.now() / 1000);
  readonly #private: KeyObject | undefined;
  readonly #public: KeyObject | undefined;
  readonly #secret: Uint8Array = randomBytes(32);

  constructor(type: VaultKeyType) {
    this.type = type;
    this.operations = OPERATIONS[type];
    if (type === 'oct-HSM') return;
    const pair =
      type === 'RSA'
        ? generateKeyPairSync('rsa', { modulusLength: 2048 })
        : generateKeyPairSync('ec', { namedCurve: 'P-256' });
    this.#private = pair.privateKey;
    this.#public = pair.publicKey;
  }

  /** The public half, which anyone who may get the key can read; undefined for a symmetric key. */
  get publicKey(): KeyObject | undefined {
    return this.#public;
  }

  /** The answer of "get key" (Key Vault REST API reference, KeyBundle). */
  bundle(kid: string): object {
    const { kty: _, ...material } = this.#public?.export({ format: 'jwk' }) ?? { kty: '' };
    const { enabled, notBefore, expires } = this.attributes;
    return {
      key: { kid, kty: this.type, key_ops: this.operations, ...material },
      attributes: {
        enabled,
        ...(notBefore !== undefined && { nbf: Math.floor(notBefore / 1000) }),
        ...(expires !== undefined && { exp: Math.floor(expires / 1000) }),
        created: this.#createdSeconds,
        updated: this.#createdSeconds,
        recoveryLevel: 'Recoverable+Purgeable',
        recoverableDays: 90,
      },
    };
  }

  /** @throws {VaultError} with the refusal of Key Vault. */
  perform(operation: CryptographyOperation, algorithm: unknown, value: Uint8Array): Buffer {
    this.#checkUse(operation);
    if (typeof algorithm !== 'string' || ALGORITHMS[algorithm] !== this.type) {
      throw new VaultError(REFUSALS.badParameter);
    }
    try {
      if (operation === 'sign') return signDigest(this.#privateKey(), value);
      if (this.type === 'RSA') return operation === 'wrapKey' ? this.#wrapRsa(value) : this.#unwrapRsa(value);
      return operation === 'wrapKey' ? this.#wrapAes(value) : this.#unwrapAes(value);
    } catch {
      // A value of the wrong length, or from another key.
      throw new VaultError(REFUSALS.badParameter);
    }
  }

  #checkUse(operation: CryptographyOperation): void {
    if (!this.operations.includes(operation)) throw new VaultError(REFUSALS.notPermitted);
    const { enabled, notBefore = 0, expires = Number.POSITIVE_INFINITY } = this.attributes;
    // A disabled key still wraps on the live service (Azure/azure-sdk-for-python#45342).
    if (!enabled && operation !== 'wrapKey') throw new VaultError(REFUSALS.disabled);
    // A key still unwraps outside its dates ("About keys", date-time controlled operations).
    if (operation === 'unwrapKey') return;
    if (Date.now() < notBefore) throw new VaultError(REFUSALS.notYetValid);
    if (Date.now() >= expires) throw new VaultError(REFUSALS.expired);
  }

  #wrapRsa(value: Uint8Array): Buffer {
    return publicEncrypt(
      { key: this.#publicKey(), padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: 'sha256' },
      value,
    );
  }

  #unwrapRsa(value: Uint8Array): Buffer {
    return privateDecrypt(
      { key: this.#privateKey(), padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: 'sha256' },
      value,
    );
  }

  #wrapAes(value: Uint8Array): Buffer {
    const cipher = createCipheriv('id-aes256-wrap', this.#secret, AES_KW_IV);
    return Buffer.concat([cipher.update(value), cipher.final()]);
  }

  #unwrapAes(value: Uint8Array): Buffer {
    const decipher = createDecipheriv('id-aes256-wrap', this.#secret, AES_KW_IV);
    return Buffer.concat([decipher.update(value), decipher.final()]);
  }

  #privateKey(): KeyObject {
    if (this.#private === undefined) throw new VaultError(REFUSALS.badParameter);
    return this.#private;
  }

  #publicKey(): KeyObject {
    if (this.#public === undefined) throw new VaultError(REFUSALS.badParameter);
    return this.#public;
  }
}

/** A named key with its versions, the current one last. */
export class VaultKey {
  readonly name: string;
  readonly type: VaultKeyType;
  readonly versions: KeyVersion[] = [];
  state: 'present' | 'being deleted' | 'deleted' = 'present';

  constructor(name: string, type: VaultKeyType) {
    this.name = name;
    this.type = type;
    this.rotate();
  }

  get current(): KeyVersion {
    const last = this.versions.at(-1);
    if (last === undefined) throw new Error('a key has a version');
    return last;
  }

  /** Creates a new version, which becomes the current one. */
  rotate(): KeyVersion {
    const version = new KeyVersion(this.type);
    this.versions.push(version);
    return version;
  }

  /** Sets attributes of every version. */
  set(attributes: Partial<VersionAttributes>): void {
    for (const version of this.versions) Object.assign(version.attributes, attributes);
  }

  /** @throws {VaultError} if the version does not exist, or the key is gone. */
  version(id: string): KeyVersion {
    if (this.state === 'deleted') throw new VaultError(REFUSALS.notFound);
    if (this.state === 'being deleted') throw new VaultError(REFUSALS.beingDeleted);
    const version = id === '' ? this.current : this.versions.find((other) => other.id === id);
    if (version === undefined) throw new VaultError(REFUSALS.notFound);
    return version;
  }
}

const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;

/**
 * ECDSA on P-256 over a digest (FIPS 186-5, section 6.4.1): 64 bytes, r ‖ s. node:crypto signs only messages, but a
 * vault receives the digest. It does not run in constant time, so use it for test keys only.
 */
function signDigest(key: KeyObject, digest: Uint8Array): Buffer {
  if (digest.length !== 32) throw new RangeError('ES256 signs 32 bytes');
  const d = numberOf(Buffer.from(key.export({ format: 'jwk' }).d ?? '', 'base64url'));
  for (;;) {
    const k = randomBytes(32);
    const nonce = numberOf(k);
    if (nonce === 0n || nonce >= ORDER) continue;
    const point = createECDH('prime256v1');
    point.setPrivateKey(k);
    const r = numberOf(point.getPublicKey().subarray(1, 33)) % ORDER;
    const s = (power(nonce, ORDER - 2n) * (numberOf(digest) + r * d)) % ORDER;
    if (r !== 0n && s !== 0n) return Buffer.from(hexOf(r) + hexOf(s), 'hex');
  }
}

function numberOf(bytes: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(bytes).toString('hex')}`);
}

function hexOf(value: bigint): string {
  return value.toString(16).padStart(64, '0');
}

/** `base` to the power of `exponent`, modulo the order of P-256. */
function power(base: bigint, exponent: bigint): bigint {
  let result = 1n;
  let square = base;
  for (let left = exponent; left > 0n; left >>= 1n) {
    if ((left & 1n) === 1n) result = (result * square) % ORDER;
    square = (square * square) % ORDER;
  }
  return result;
}
