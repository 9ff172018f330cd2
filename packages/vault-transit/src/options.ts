import { option } from '@sealring/core/adapter';
import { PLATFORM_CLIENT, type VaultClient, type VaultToken } from './client.ts';
import { KEY_NAME, MOUNT, parseKeyPath, type TransitKey, transitKey } from './key-path.ts';

/** Options of {@link vaultTransitKeyWrapper}. */
export interface VaultTransitKeyWrapperOptions {
  /** The address of Vault or OpenBao: an `https://` URL, or an `http://` URL of this machine. Required. */
  readonly address: string;
  /** The transit key: one of type `aes256-gcm96` or `chacha20-poly1305`, not derived. Required. */
  readonly keyId: string;
  /** Where the transit engine is mounted, within the namespace. Default `transit`. */
  readonly mount?: string | undefined;
  /** The namespace. Default: the root namespace. */
  readonly namespace?: string | undefined;
  /** The token, or a function that returns one and is called for every request. Required unless `client` is set. */
  readonly token?: VaultToken | undefined;
  /** The client that makes the requests; the wrapper does not close it. Default: the platform's `fetch`. */
  readonly client?: VaultClient | undefined;
  /**
   * Full paths of replaced transit keys whose wrapped keys may still be unwrapped, such as `team/transit/keys/old`; 0
   * to 64. Default none.
   */
  readonly alsoUnwrap?: readonly string[] | undefined;
  /** Longest wait for one attempt, in seconds; 0.01 to 60. Default 5. */
  readonly callTimeoutSeconds?: number | undefined;
  /** Attempts per call, the first one included; only `throttled` and `unavailable` are retried; 1 to 10. Default 3. */
  readonly maxAttempts?: number | undefined;
  /**
   * Whether `address` may be an `http://` URL of another machine: the token and the data keys then cross the
   * network in plaintext. Default false.
   */
  readonly dangerouslyAllowHttp?: boolean | undefined;
}

/** A frozen copy of the validated options. */
export interface Settings {
  /** The address without a trailing slash. */
  readonly address: string;
  readonly key: TransitKey;
  readonly alsoUnwrap: readonly TransitKey[];
  readonly token: VaultToken | undefined;
  readonly client: VaultClient;
  readonly timeoutMs: number;
  readonly maxAttempts: number;
}

const OWNER = 'vaultTransitKeyWrapper';

const OPTION_NAMES = [
  'address',
  'keyId',
  'mount',
  'namespace',
  'token',
  'client',
  'alsoUnwrap',
  'callTimeoutSeconds',
  'maxAttempts',
  'dangerouslyAllowHttp',
] as const satisfies readonly (keyof VaultTransitKeyWrapperOptions)[];

const MAX_ALSO_UNWRAP = 64;
const TOKEN = /^[\x21-\x7e]{1,8192}$/;

/**
 * @throws {TypeError} for an unknown option or a wrong type.
 * @throws {RangeError} for a value outside its bounds.
 */
export function readOptions(options: VaultTransitKeyWrapperOptions): Settings {
  option.refuseUnknown(OWNER, options, OPTION_NAMES);
  const { keyId, mount = 'transit', namespace, alsoUnwrap = [], callTimeoutSeconds = 5, maxAttempts = 3 } = options;
  const { client, token, dangerouslyAllowHttp = false } = options;
  if (client === undefined && token === undefined) {
    throw option.typeError(`${OWNER}: token must be given, unless a client adds it`);
  }
  return Object.freeze({
    address: addressOf(options.address, option.flag(OWNER, 'dangerouslyAllowHttp', dangerouslyAllowHttp)),
    key: transitKey(
      namespace === undefined ? '' : mountPath('namespace', namespace),
      mountPath('mount', mount),
      option.textMatching(OWNER, 'keyId', keyId, KEY_NAME),
    ),
    alsoUnwrap: option.listOf(OWNER, 'alsoUnwrap', alsoUnwrap, 'paths of transit keys', MAX_ALSO_UNWRAP, replacedKey),
    token: token === undefined ? undefined : tokenOf(token),
    client:
      client === undefined
        ? PLATFORM_CLIENT
        : option.objectWith<VaultClient>(OWNER, 'client', client, 'fetch', 'a VaultClient (an object with fetch)'),
    timeoutMs: option.timeoutMsOf(OWNER, callTimeoutSeconds),
    maxAttempts: option.integerWithin(OWNER, 'maxAttempts', maxAttempts, 1, 10),
  });
}

/** Whether a token can be sent in a header. The token is never shown. */
export function isToken(token: unknown): token is string {
  return typeof token === 'string' && TOKEN.test(token);
}

function addressOf(value: unknown, mayBeHttp: boolean): string {
  const { origin, pathname } = option.endpointUrl(OWNER, 'address', value, mayBeHttp);
  return `${origin}${pathname}`.replace(/\/+$/, '');
}

// Vault prints both with a trailing slash.
function mountPath(name: string, value: unknown): string {
  return option.textMatching(OWNER, name, value, MOUNT).replace(/\/$/, '');
}

function replacedKey(name: string, value: unknown): TransitKey {
  const path = option.text(OWNER, name, value);
  const key = parseKeyPath(path);
  if (key === undefined) throw option.outOfRange(OWNER, name, 'the whole path of a transit key (transit/keys/…)', path);
  return key;
}

function tokenOf(token: unknown): VaultToken {
  if (typeof token === 'function') return token as VaultToken;
  if (typeof token !== 'string') throw option.wrongType(OWNER, 'token', 'a string or a function', token);
  if (!isToken(token)) throw option.rangeError(`${OWNER}: token must be 1 to 8192 visible ASCII characters`);
  return token;
}
