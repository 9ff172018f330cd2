import { option } from '@sealring/core/adapter';
import { field } from './answer.ts';
import type { GcsRingClient } from './client.ts';

/** Options of {@link gcsRing}. */
export interface GcsRingOptions {
  /** The bucket's name. Required. */
  readonly bucket: string;
  /** The object's name; 1 to 1 024 bytes of UTF-8, without line breaks or the path segments `.` and `..`. One per ring. Required. */
  readonly object: string;
  /**
   * The client to call; the store does not close it. A client with its own `apiEndpoint` needs
   * `useAuthWithCustomEndpoint: true`. Default: a new `Storage`, with Application Default Credentials (environment,
   * gcloud's file, metadata server).
   */
  readonly client?: GcsRingClient;
  /**
   * An endpoint other than Google's: an `https://` URL, or, for an emulator, an `http://` URL of this machine, to which
   * no credentials are sent. Allowed only without `client`. Default: `STORAGE_EMULATOR_HOST` if it is set, with the same
   * rules; otherwise the SDK's.
   */
  readonly endpoint?: string;
  /** Whether `endpoint` may be an `http://` URL of another machine. Default false. */
  readonly dangerouslyAllowHttp?: boolean;
  /** Longest wait for one request, in seconds; 0.01 to 60. Detecting an absent ring takes two requests. Default 5. */
  readonly callTimeoutSeconds?: number;
}

/** A copy of the validated options. */
export interface Settings {
  readonly bucket: string;
  readonly object: string;
  readonly client: GcsRingClient | undefined;
  /** The endpoint of the store's own client. */
  readonly endpoint: URL | undefined;
  /** Whether that endpoint may be an `http://` URL of another machine. */
  readonly mayBeHttp: boolean;
  readonly timeoutMs: number;
}

export const OWNER = 'gcsRing';

const OPTION_NAMES = [
  'bucket',
  'object',
  'client',
  'endpoint',
  'dangerouslyAllowHttp',
  'callTimeoutSeconds',
] as const satisfies readonly (keyof GcsRingOptions)[];

// "Bucket naming guidelines" of the Cloud Storage documentation: up to 222 characters if the name has dots.
const BUCKET_NAME = /^[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]$/;
const MAX_OBJECT_BYTES = 1_024;

/**
 * @throws {TypeError} for an unknown option or a wrong type.
 * @throws {RangeError} for a value outside its bounds, or a client that would not authenticate.
 */
export function readOptions(options: GcsRingOptions): Settings {
  option.refuseUnknown(OWNER, options, OPTION_NAMES);
  const { client, endpoint, callTimeoutSeconds = 5 } = options;
  const mayBeHttp = option.flag(OWNER, 'dangerouslyAllowHttp', options.dangerouslyAllowHttp ?? false);
  if (client !== undefined && endpoint !== undefined) {
    throw option.rangeError(`${OWNER}: endpoint cannot be combined with client: set it on the client`);
  }
  return {
    bucket: bucketOf(options.bucket),
    object: objectOf(options.object),
    client: client === undefined ? undefined : checkClient(client),
    endpoint: endpoint === undefined ? undefined : option.endpointUrl(OWNER, 'endpoint', endpoint, mayBeHttp),
    mayBeHttp,
    timeoutMs: option.timeoutMsOf(OWNER, callTimeoutSeconds),
  };
}

/**
 * @throws {TypeError} for a value that is not a client.
 * @throws {RangeError} for a client that does not authenticate at its endpoint, because the store always authenticates
 * its requests.
 */
function checkClient(given: unknown): GcsRingClient {
  const endpoint = field(given, 'apiEndpoint');
  if (typeof endpoint !== 'string' || typeof field(field(given, 'authClient'), 'request') !== 'function') {
    throw option.wrongType(OWNER, 'client', 'a Storage (an object with apiEndpoint and authClient.request)', given);
  }
  option.urlWith(OWNER, 'apiEndpoint of client', endpoint, ['https:', 'http:'], 'an https:// URL');
  const client = given as GcsRingClient;
  if (client.customEndpoint === true && client.useAuthWithCustomEndpoint !== true) {
    throw option.rangeError(
      `${OWNER}: client has its own apiEndpoint and must set useAuthWithCustomEndpoint: true; ` +
        'for an emulator, give the client an authClient without credentials',
    );
  }
  return client;
}

function bucketOf(value: unknown): string {
  const bucket = option.text(OWNER, 'bucket', value);
  if (!BUCKET_NAME.test(bucket)) throw option.outOfRange(OWNER, 'bucket', 'a bucket name', bucket);
  return bucket;
}

function objectOf(value: unknown): string {
  const object = option.text(OWNER, 'object', value);
  const bytes = Buffer.byteLength(object);
  if (bytes === 0 || bytes > MAX_OBJECT_BYTES || !object.isWellFormed()) {
    throw option.rangeError(`${OWNER}: object must be 1 to ${MAX_OBJECT_BYTES} bytes of UTF-8, got ${bytes}`);
  }
  // A proxy may resolve dots, and the name would then belong to another object. The service refuses line breaks.
  if (/[\r\n]/.test(object) || object.split('/').some((part) => part === '.' || part === '..')) {
    throw option.rangeError(
      `${OWNER}: object must not contain a line break or a path segment "." or "..", got ${option.quote(object)}`,
    );
  }
  return object;
}
