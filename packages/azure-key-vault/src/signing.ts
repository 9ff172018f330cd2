import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto';
import { types } from 'node:util';
import { keyWrapping, option, vendorError } from '@sealring/core/adapter';
import type { AzureCryptographyClient } from './clients.ts';
import { isOf, type VaultKeyVersionId } from './key-id.ts';
import { type CallerOptions, PROVIDER, type VaultCalls } from './vault-calls.ts';

const MAX_PUBLIC_KEYS = 16;

/** A public key on P-256, as a JSON Web Key (RFC 7517); other members, such as `kid`, are ignored. */
export interface AzureSignPublicKey {
  /** `EC`, or `EC-HSM`. */
  readonly kty: string;
  /** `P-256`. */
  readonly crv: string;
  /** 32 bytes in base64url. */
  readonly x: string;
  /** 32 bytes in base64url. */
  readonly y: string;
}

/**
 * Reads pinned public keys.
 * @throws {TypeError | RangeError} for a value that is not a P-256 key.
 */
export function readPublicKeys(owner: string, value: unknown): readonly KeyObject[] {
  const keys = option.listOf(owner, 'signPublicKeys', value, 'JSON Web Keys', MAX_PUBLIC_KEYS, (name, entry) => {
    if (typeof entry !== 'object' || entry === null) throw option.wrongType(owner, name, 'a JSON Web Key', entry);
    const key = publicKeyOf(entry);
    if (key === undefined)
      throw option.rangeError(`${owner}: ${name} must be a public key on P-256 (kty EC, crv P-256, x, y)`);
    return key;
  });
  if (keys.length === 0) throw option.rangeError(`${owner}: signPublicKeys must have at least one entry, got none`);
  return keys;
}

/** The P-256 key of a JSON Web Key; undefined for anything else. A private part that was included by mistake is not read. */
export function publicKeyOf(jwk: object): KeyObject | undefined {
  const [crv, x, y] = ['crv', 'x', 'y'].map((name) => vendorError.property(jwk, name));
  if (crv !== 'P-256' || typeof x !== 'string' || typeof y !== 'string') return undefined;
  try {
    return createPublicKey({ format: 'jwk', key: { kty: 'EC', crv, x, y } });
  } catch {
    // The key is not a point on the curve.
    return undefined;
  }
}

/** Whether one of the pinned keys made this signature: ES256, r ‖ s of 32 bytes each (RFC 7518, section 3.4). */
export function isSigned(entry: Uint8Array, signature: Uint8Array, keys: readonly KeyObject[]): boolean {
  if (!types.isUint8Array(entry) || !types.isUint8Array(signature)) {
    throw option.typeError(
      `${PROVIDER}: an entry and its signature must each be a Uint8Array, got ${option.show(entry)} and ${option.show(signature)}`,
    );
  }
  return keys.some((key) => verify('sha256', entry, { key, dsaEncoding: 'ieee-p1363' }, signature));
}

/** Signs ring entries with one version of a key in the vault. */
export class EntrySigner {
  readonly #keyId: VaultKeyVersionId;
  readonly #client: AzureCryptographyClient;
  readonly #calls: VaultCalls;
  readonly #publicKeys: readonly KeyObject[];

  constructor(
    keyId: VaultKeyVersionId,
    client: AzureCryptographyClient,
    calls: VaultCalls,
    publicKeys: readonly KeyObject[],
  ) {
    this.#keyId = keyId;
    this.#client = client;
    this.#calls = calls;
    this.#publicKeys = publicKeys;
  }

  /** @throws {KeyWrapperError} `corrupt` also for a signature by a key that is not pinned. */
  async sign(entry: Uint8Array, options: CallerOptions): Promise<Uint8Array> {
    if (!types.isUint8Array(entry))
      throw option.typeError(`${PROVIDER}: an entry must be a Uint8Array, got ${option.show(entry)}`);
    // A copy, because the caller can change the original while the call is pending.
    const signed = new Uint8Array(entry);
    const digest = createHash('sha256').update(signed).digest();
    const { answer, keyId } = await this.#calls.call('sign', options, (call) =>
      this.#client.sign('ES256', digest, call),
    );
    if (!isOf(this.#keyId, keyId)) {
      throw keyWrapping.corrupt(PROVIDER, 'sign', 'the vault answered for a key other than signKeyId');
    }
    const signature = vendorError.property(answer, 'result');
    if (!types.isUint8Array(signature) || !isSigned(signed, signature, this.#publicKeys)) {
      throw keyWrapping.corrupt(
        PROVIDER,
        'sign',
        'the signature by signKeyId was not made with a key in signPublicKeys',
      );
    }
    return new Uint8Array(signature);
  }
}

/** Reads the options of `sign`; `undefined` means none. */
export function readSignOptions(options: unknown): CallerOptions {
  if (options !== undefined && (typeof options !== 'object' || options === null)) {
    throw option.wrongType(PROVIDER, 'options', 'an object', options);
  }
  return { signal: option.signalOf(PROVIDER, vendorError.property(options, 'signal')), onServiceDate: undefined };
}
