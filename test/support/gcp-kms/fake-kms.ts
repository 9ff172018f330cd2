import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { crc32cBitwise } from './crc32c-bitwise.ts';
import { type GrpcFailure, Status } from './grpc-failure.ts';

/** Values of a field of type `google.protobuf.Int64Value`, as both SDKs decode it. */
interface Int64Value {
  readonly value: string | number;
}

/** EncryptRequest and DecryptRequest of google.cloud.kms.v1 in one, as proto-loader returns them. */
export interface KmsRequest {
  readonly name: string;
  readonly plaintext?: Uint8Array;
  readonly plaintextCrc32c?: Int64Value | null;
  readonly ciphertext?: Uint8Array;
  readonly ciphertextCrc32c?: Int64Value | null;
  readonly additionalAuthenticatedData: Uint8Array;
  readonly additionalAuthenticatedDataCrc32c?: Int64Value | null;
}

/** EncryptResponse and DecryptResponse of google.cloud.kms.v1 in one. */
export interface KmsAnswer {
  readonly name?: string;
  readonly ciphertext?: Uint8Array;
  readonly ciphertextCrc32c?: Int64Value | null;
  readonly verifiedPlaintextCrc32c?: boolean;
  readonly verifiedAdditionalAuthenticatedDataCrc32c?: boolean;
  readonly plaintext?: Uint8Array;
  readonly plaintextCrc32c?: Int64Value | null;
  readonly usedPrimary?: boolean;
  readonly protectionLevel?: 'SOFTWARE';
}

export type KmsMethod = 'encrypt' | 'decrypt';

/** A request as received. */
export interface SeenRequest extends KmsRequest {
  readonly method: KmsMethod;
  /** The bearer token, or empty. */
  readonly caller: string;
}

type VersionState = 'ENABLED' | 'DISABLED' | 'DESTROY_SCHEDULED' | 'DESTROYED';

interface KeyVersion {
  readonly name: string;
  /** The first bytes of every ciphertext. */
  readonly id: Buffer;
  readonly material: Buffer;
  state: VersionState;
}

interface CryptoKey {
  readonly versions: KeyVersion[];
  primary: KeyVersion;
}

const ID_BYTES = 8;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const PERMISSIONS: Readonly<Record<KmsMethod, string>> = {
  encrypt: 'cloudkms.cryptoKeyVersions.useToEncrypt',
  decrypt: 'cloudkms.cryptoKeyVersions.useToDecrypt',
};

/**
 * Google Cloud KMS in memory: Encrypt and Decrypt of symmetric keys with real AES-256-GCM, versions and their states,
 * CRC32C both ways, permissions by caller, and settings for failures. `startGcpKms` puts it behind gRPC.
 *
 * Unlike at the service, where it may take hours, a change of state takes effect at once.
 */
export class FakeGcpKms {
  /** Every request that reached a handler, in order. */
  readonly requests: SeenRequest[] = [];
  /** How many requests were cancelled, or were past their deadline, before they were answered. */
  cancelled = 0;
  readonly #keys = new Map<string, CryptoKey>();
  readonly #permissions = new Map<string, readonly string[]>();
  #nextFailures: GrpcFailure[] = [];
  #failure: GrpcFailure | undefined;
  #spoil: ((answer: KmsAnswer, request: SeenRequest) => KmsAnswer) | undefined;
  #delayMs = 0;
  #isHanging = false;
  #hanging: (() => void)[] = [];

  /** Creates a key with one enabled version and returns its resource name. */
  createKey(id = 'sealring', keyRing = 'projects/fake-project/locations/europe-west1/keyRings/mcp'): string {
    const name = `${keyRing}/cryptoKeys/${id}`;
    const first = newVersion(name, 1);
    this.#keys.set(name, { versions: [first], primary: first });
    return name;
  }

  /** Adds a version, makes it primary and returns its resource name; older ones still decrypt. */
  rotate(keyName: string): string {
    const key = this.#key(keyName);
    key.primary = newVersion(keyName, key.versions.length + 1);
    key.versions.push(key.primary);
    return key.primary.name;
  }

  /** Makes an older version primary again. */
  setPrimary(versionName: string): void {
    const version = this.#version(versionName);
    if (version === undefined) throw new Error(`no such version: ${versionName}`);
    this.#key(versionName.replace(/\/cryptoKeyVersions\/\d+$/, '')).primary = version;
  }

  /** Disables one version, or every version of a key. */
  disable(name: string): void {
    this.#setState(name, 'DISABLED');
  }

  enable(name: string): void {
    this.#setState(name, 'ENABLED');
  }

  scheduleDestruction(name: string): void {
    this.#setState(name, 'DESTROY_SCHEDULED');
  }

  /** Destroys one version, or every version of a key, permanently. */
  destroy(name: string): void {
    this.#setState(name, 'DESTROYED');
  }

  /** After the first call, only callers whose bearer token has the method's permission are served. */
  grant(token: string, permissions: readonly string[]): void {
    this.#permissions.set(token, permissions);
  }

  failNext(count: number, how: GrpcFailure): void {
    for (let i = 0; i < count; i++) this.#nextFailures.push(how);
  }

  failAlways(how: GrpcFailure): void {
    this.#failure = how;
  }

  throttleNext(count: number): void {
    this.failNext(count, { code: Status.RESOURCE_EXHAUSTED, details: 'Quota exceeded for quota metric.' });
  }

  /** Refuses every caller. */
  deny(): void {
    this.failAlways(permissionDenied('encrypt', 'any'));
  }

  /** Changes every answer before it is sent. */
  spoil(change: (answer: KmsAnswer, request: SeenRequest) => KmsAnswer): void {
    this.#spoil = change;
  }

  delay(ms: number): void {
    this.#delayMs = ms;
  }

  /** Accepts requests without an answer, until {@link answerLate} or {@link heal}. */
  hang(): void {
    this.#isHanging = true;
  }

  /** Number of requests that wait for an answer. */
  get hanging(): number {
    return this.#hanging.length;
  }

  /** Answers the waiting requests; later ones still wait. */
  answerLate(): void {
    for (const answer of this.#hanging.splice(0)) answer();
  }

  /** Resets every setting except the states of versions and the permissions. */
  heal(): void {
    this.#nextFailures = [];
    this.#failure = undefined;
    this.#spoil = undefined;
    this.#delayMs = 0;
    this.#isHanging = false;
    this.answerLate();
  }

  /** Handles one request. Rejects with a {@link GrpcFailure}. */
  async handle(method: KmsMethod, request: KmsRequest, caller: string): Promise<KmsAnswer> {
    const seen: SeenRequest = { ...request, method, caller };
    this.requests.push(seen);
    if (this.#isHanging) await new Promise<void>((resolve) => this.#hanging.push(resolve));
    if (this.#delayMs > 0) await new Promise((resolve) => setTimeout(resolve, this.#delayMs));
    const told = this.#nextFailures.shift() ?? this.#failure;
    if (told !== undefined) throw told;
    this.#authorize(method, caller, request.name);
    const answer = method === 'encrypt' ? this.#encrypt(request) : this.#decrypt(request);
    return this.#spoil === undefined ? answer : this.#spoil(answer, seen);
  }

  #authorize(method: KmsMethod, caller: string, name: string): void {
    if (this.#permissions.size === 0) return;
    if (caller === '') {
      throw failure(Status.UNAUTHENTICATED, 'Request is missing required authentication credential.', {
        reason: 'CREDENTIALS_MISSING',
      });
    }
    if (this.#permissions.get(caller)?.includes(PERMISSIONS[method]) !== true) throw permissionDenied(method, name);
  }

  #encrypt(request: KmsRequest): KmsAnswer {
    const { name, plaintext = new Uint8Array(), additionalAuthenticatedData: aad } = request;
    const verifiedPlaintextCrc32c = checksumHolds('plaintext', plaintext, request.plaintextCrc32c);
    const verifiedAad = checksumHolds('AAD', aad, request.additionalAuthenticatedDataCrc32c);
    if (plaintext.length === 0) throw failure(Status.INVALID_ARGUMENT, 'The plaintext is empty.');
    // Accepts a key or one version of it.
    const version = this.#keys.get(name)?.primary ?? this.#version(name);
    if (version === undefined) throw failure(Status.NOT_FOUND, `${name} not found.`);
    refuseUnlessEnabled(version);
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', version.material, nonce, { authTagLength: TAG_BYTES }).setAAD(aad);
    const body = [cipher.update(plaintext), cipher.final(), cipher.getAuthTag()];
    const ciphertext = Buffer.concat([version.id, nonce, ...body]);
    return {
      name: version.name,
      ciphertext,
      ciphertextCrc32c: { value: String(crc32cBitwise(ciphertext)) },
      verifiedPlaintextCrc32c,
      verifiedAdditionalAuthenticatedDataCrc32c: verifiedAad,
      protectionLevel: 'SOFTWARE',
    };
  }

  #decrypt(request: KmsRequest): KmsAnswer {
    const { name, ciphertext = new Uint8Array(), additionalAuthenticatedData: aad } = request;
    checksumHolds('ciphertext', ciphertext, request.ciphertextCrc32c);
    checksumHolds('AAD', aad, request.additionalAuthenticatedDataCrc32c);
    const key = this.#keys.get(name);
    if (key === undefined) {
      if (this.#version(name) === undefined) throw failure(Status.NOT_FOUND, `${name} not found.`);
      throw failure(Status.INVALID_ARGUMENT, `${name} is not a valid resource type for this request.`);
    }
    const bytes = Buffer.from(ciphertext);
    const version = key.versions.find(({ id }) => id.equals(bytes.subarray(0, ID_BYTES)));
    if (version === undefined || bytes.length <= ID_BYTES + NONCE_BYTES + TAG_BYTES) {
      throw failure(Status.INVALID_ARGUMENT, "Decryption failed: verify that 'name' refers to the correct CryptoKey.");
    }
    refuseUnlessEnabled(version);
    const nonce = bytes.subarray(ID_BYTES, ID_BYTES + NONCE_BYTES);
    const cipher = createDecipheriv('aes-256-gcm', version.material, nonce, { authTagLength: TAG_BYTES });
    cipher.setAAD(aad).setAuthTag(bytes.subarray(-TAG_BYTES));
    try {
      const body = bytes.subarray(ID_BYTES + NONCE_BYTES, -TAG_BYTES);
      const plaintext = Buffer.concat([cipher.update(body), cipher.final()]);
      return {
        plaintext,
        plaintextCrc32c: { value: String(crc32cBitwise(plaintext)) },
        usedPrimary: version === key.primary,
        protectionLevel: 'SOFTWARE',
      };
    } catch {
      throw failure(Status.INVALID_ARGUMENT, 'Decryption failed: the ciphertext is invalid.');
    }
  }

  #key(name: string): CryptoKey {
    const key = this.#keys.get(name);
    if (key === undefined) throw new Error(`no such key: ${name}`);
    return key;
  }

  #version(name: string): KeyVersion | undefined {
    return [...this.#keys.values()].flatMap(({ versions }) => versions).find((version) => version.name === name);
  }

  #versionsOf(name: string): readonly KeyVersion[] {
    const version = this.#version(name);
    return version === undefined ? this.#key(name).versions : [version];
  }

  #setState(name: string, state: VersionState): void {
    for (const version of this.#versionsOf(name)) {
      if (version.state === 'DESTROYED') throw new Error(`${version.name} is destroyed`);
      version.state = state;
    }
  }
}

function newVersion(keyName: string, number: number): KeyVersion {
  return {
    name: `${keyName}/cryptoKeyVersions/${number}`,
    id: randomBytes(ID_BYTES),
    material: randomBytes(32),
    state: 'ENABLED',
  };
}

/** Whether a checksum was sent and matches. A checksum that does not match ends the request, as in the service. */
function checksumHolds(what: string, bytes: Uint8Array, checksum: Int64Value | null | undefined): boolean {
  if (checksum === undefined || checksum === null) return false;
  if (Number(checksum.value) === crc32cBitwise(bytes)) return true;
  throw failure(Status.INVALID_ARGUMENT, `The checksum of the ${what} did not match.`);
}

function refuseUnlessEnabled({ name, state }: KeyVersion): void {
  if (state === 'ENABLED') return;
  throw failure(Status.FAILED_PRECONDITION, `${name} is not enabled, current state is: ${state}.`, {
    violations: [{ type: `KEY_${state}`, subject: name }],
  });
}

function permissionDenied(method: KmsMethod, name: string): GrpcFailure {
  const details = `Permission '${PERMISSIONS[method]}' denied on resource '${name}' (or it may not exist).`;
  return failure(Status.PERMISSION_DENIED, details, { reason: 'IAM_PERMISSION_DENIED' });
}

function failure(code: number, details: string, more: Pick<GrpcFailure, 'violations' | 'reason'> = {}): GrpcFailure {
  return { code, details, ...more };
}
