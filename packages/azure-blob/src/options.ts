import { ContainerClient } from '@azure/storage-blob';
import { option } from '@sealring/core/adapter';
import type { AzureBlobRingContainer } from './client.ts';

/** Options of {@link azureBlobRing}. */
export interface AzureBlobRingOptions {
  /**
   * A `ContainerClient`, which you own; or the `https://` URL of a container, with or without a shared access
   * signature, for which the store creates a client. Required.
   */
  readonly container: AzureBlobRingContainer | string;
  /**
   * Required with a URL that has no signature: a credential of `@azure/identity`, for an `https://` URL, or a
   * `StorageSharedKeyCredential`.
   * Default: none.
   */
  readonly credential?: ContainerClient['credential'];
  /**
   * The blob's name: 1 to 1 024 characters, without `.` or `..` as a part, and without `.` or `/` at its end. Each ring
   * needs its own blob. Required.
   */
  readonly blob: string;
  /** Longest wait for one request, in seconds; 0.01 to 60. Default 5. */
  readonly callTimeoutSeconds?: number;
}

/** A copy of the validated options. */
export interface Settings {
  readonly container: AzureBlobRingContainer;
  readonly blob: string;
  readonly timeoutMs: number;
}

export const OWNER = 'azureBlobRing';

const OPTION_NAMES = [
  'container',
  'credential',
  'blob',
  'callTimeoutSeconds',
] as const satisfies readonly (keyof AzureBlobRingOptions)[];

const MAX_BLOB_NAME_LENGTH = 1_024;
const LOOPBACK: readonly string[] = ['127.0.0.1', 'localhost', '[::1]'];

/**
 * @throws {TypeError} for an unknown option or a wrong type.
 * @throws {RangeError} for a value outside its bounds, or a credential without a URL.
 */
export function readOptions(options: AzureBlobRingOptions): Settings {
  option.refuseUnknown(OWNER, options, OPTION_NAMES);
  const { callTimeoutSeconds = 5 } = options;
  return {
    blob: blobOf(options.blob),
    timeoutMs: option.timeoutMsOf(OWNER, callTimeoutSeconds),
    container: containerOf(options.container, options.credential),
  };
}

function containerOf(container: unknown, credential: unknown): AzureBlobRingContainer {
  if (typeof container !== 'string') {
    if (credential !== undefined) throw option.rangeError(`${OWNER}: credential requires a container that is a URL`);
    const wanted = 'a ContainerClient (an object with getBlockBlobClient) or a URL';
    return option.objectWith<AzureBlobRingContainer>(OWNER, 'container', container, 'getBlockBlobClient', wanted);
  }
  const url = urlOf(container);
  if (credential !== undefined && !isCredential(credential)) {
    throw option.wrongType(
      OWNER,
      'credential',
      'a credential of @azure/identity or a StorageSharedKeyCredential',
      credential,
    );
  }
  // The SDK refuses to send a token over http://, with an error that does not show the cause.
  if (new URL(url).protocol === 'http:' && isTokenCredential(credential)) {
    throw option.rangeError(`${OWNER}: credential cannot be a token credential for an http:// container`);
  }
  return new ContainerClient(url, credential, { retryOptions: { maxTries: 1 } });
}

// The URL can contain a signature, so no message includes its text.
function urlOf(value: string): string {
  const url = option.urlWith(OWNER, 'container', value, ['https:', 'http:'], 'an https:// URL');
  const { protocol, hostname, pathname } = new URL(url);
  if (protocol === 'http:' && !LOOPBACK.includes(hostname)) {
    throw option.rangeError(`${OWNER}: container must be an https:// URL, except on this machine`);
  }
  if (/^\/(?:\/|$)/.test(pathname))
    throw option.rangeError(`${OWNER}: container must be a URL with the container's name`);
  return url;
}

function isTokenCredential(value: unknown): boolean {
  return typeof Reflect.get(Object(value), 'getToken') === 'function';
}

function isCredential(value: unknown): value is ContainerClient['credential'] {
  // The credential can belong to another copy of the SDK, so instanceof is not used.
  const { getToken, accountName } = Object(value) as { readonly getToken?: unknown; readonly accountName?: unknown };
  return getToken === undefined ? typeof accountName === 'string' : typeof getToken === 'function';
}

function blobOf(value: unknown): string {
  const blob = option.textWithin(OWNER, 'blob', value, MAX_BLOB_NAME_LENGTH);
  // A proxy may resolve or drop such parts and endings, and the name would then be that of another blob.
  if (blob.split(/[/\\]/).some((part) => part === '.' || part === '..') || /[./\\]$/.test(blob)) {
    throw option.rangeError(
      `${OWNER}: blob must not have . or .. as a part, and must not end with a dot or slash, got ${option.quote(blob)}`,
    );
  }
  return blob;
}
