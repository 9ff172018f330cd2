import { option } from '@sealring/core/adapter';
import type { GcpKmsClient } from './client.ts';
import { isKeyName, KEY_NAME_FORM } from './key-name.ts';

/** Options of {@link gcpKmsKeyWrapper}. */
export interface GcpKmsKeyWrapperOptions {
  /**
   * Resource name of the key, for symmetric encryption (purpose ENCRYPT_DECRYPT), without a version:
   * `projects/…/locations/…/keyRings/…/cryptoKeys/…`. Required.
   */
  readonly keyId: string;
  /**
   * The client to call, over gRPC; the wrapper does not close it. Default: a `KeyManagementServiceClient`, created at the
   * first call with Application Default Credentials (environment, well-known file, metadata server).
   */
  readonly client?: GcpKmsClient | undefined;
  /**
   * An endpoint other than Google's: an `https://` URL, or, for an emulator, an `http://` URL of this machine. Over
   * `http://`, no credentials are sent and the channel is insecure. Allowed only without `client`. Default: the SDK's.
   */
  readonly endpoint?: string | undefined;
  /**
   * Whether `endpoint` may be an `http://` URL of another machine: data keys then cross the network in plaintext.
   * Default false.
   */
  readonly dangerouslyAllowHttp?: boolean | undefined;
  /** Resource names of replaced keys whose wrapped keys may still be unwrapped; 0 to 64. Default none. */
  readonly alsoUnwrap?: readonly string[] | undefined;
  /** Longest wait for one attempt, in seconds; 0.01 to 60. Default 5. */
  readonly callTimeoutSeconds?: number | undefined;
  /** Attempts per call, the first one included; only `throttled` and `unavailable` are retried; 1 to 10. Default 3. */
  readonly maxAttempts?: number | undefined;
}

/** A frozen copy of the validated options. */
export interface Settings {
  readonly keyId: string;
  readonly client: GcpKmsClient | undefined;
  /** The endpoint of the wrapper's own client. */
  readonly endpoint: URL | undefined;
  readonly alsoUnwrap: readonly string[];
  readonly timeoutMs: number;
  readonly maxAttempts: number;
}

const OWNER = 'gcpKmsKeyWrapper';

const OPTION_NAMES = [
  'keyId',
  'client',
  'endpoint',
  'dangerouslyAllowHttp',
  'alsoUnwrap',
  'callTimeoutSeconds',
  'maxAttempts',
] as const satisfies readonly (keyof GcpKmsKeyWrapperOptions)[];

const MAX_ALSO_UNWRAP = 64;

/**
 * @throws {TypeError} for an unknown option or a wrong type.
 * @throws {RangeError} for a value outside its bounds, or a name that is not a key's.
 */
export function readOptions(options: GcpKmsKeyWrapperOptions): Settings {
  option.refuseUnknown(OWNER, options, OPTION_NAMES);
  const { keyId, client, endpoint, alsoUnwrap = [], callTimeoutSeconds = 5, maxAttempts = 3 } = options;
  const mayBeHttp = option.flag(OWNER, 'dangerouslyAllowHttp', options.dangerouslyAllowHttp ?? false);
  if (client !== undefined && endpoint !== undefined) {
    throw option.rangeError(`${OWNER}: endpoint cannot be combined with client: set it on the client`);
  }
  return Object.freeze({
    keyId: keyNameOf('keyId', keyId),
    client: client === undefined ? undefined : clientOf(client),
    endpoint: endpoint === undefined ? undefined : option.endpointUrl(OWNER, 'endpoint', endpoint, mayBeHttp),
    alsoUnwrap: option.listOf(OWNER, 'alsoUnwrap', alsoUnwrap, 'key names', MAX_ALSO_UNWRAP, keyNameOf),
    timeoutMs: option.timeoutMsOf(OWNER, callTimeoutSeconds),
    maxAttempts: option.integerWithin(OWNER, 'maxAttempts', maxAttempts, 1, 10),
  });
}

// With a version, every wrap would be pinned to it, and rotations would go unnoticed.
function keyNameOf(name: string, value: unknown): string {
  const keyId = option.text(OWNER, name, value);
  if (!isKeyName(keyId)) throw option.outOfRange(OWNER, name, KEY_NAME_FORM, keyId);
  return keyId;
}

function clientOf(client: unknown): GcpKmsClient {
  const wanted = 'a KeyManagementServiceClient (an object with encrypt and decrypt)';
  option.objectWith<GcpKmsClient>(OWNER, 'client', client, 'encrypt', wanted);
  return option.objectWith<GcpKmsClient>(OWNER, 'client', client, 'decrypt', wanted);
}
