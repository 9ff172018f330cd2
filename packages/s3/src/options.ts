import { option } from '@sealring/core/adapter';
import type { S3RingClient } from './client.ts';

/** How S3 encrypts the object at rest; `x-amz-server-side-encryption`. */
export type S3Encryption = 'AES256' | 'aws:kms' | 'aws:kms:dsse';

/** Options of {@link s3Ring}. */
export interface S3RingOptions {
  /** The bucket's name, or the alias or ARN of an access point in one Region. Required. */
  readonly bucket: string;
  /** The object's key; 1 to 1 024 bytes of UTF-8, without the path segments `.` and `..`. One per ring. Required. */
  readonly key: string;
  /**
   * The client to call, with `maxAttempts: 1`; the store does not destroy it. Default: the store creates an `S3Client`,
   * with credentials and region from the AWS default chain (environment, shared configuration files, container or
   * instance role).
   */
  readonly client?: S3RingClient;
  /**
   * Whether the bucket is in the path of the URL, not in its host name, as emulators and some S3-compatible services
   * require. Cannot be combined with `client` or the ARN of an access point. The environment variable
   * `AWS_ENDPOINT_URL_S3` or `AWS_ENDPOINT_URL` sets the endpoint itself. Default false.
   */
  readonly forcePathStyle?: boolean;
  /**
   * Longest wait for one request, in seconds; 0.01 to 60. A write that replaces a document takes two requests. Default
   * 5.
   */
  readonly callTimeoutSeconds?: number;
  /** The 12 digits of the AWS account that owns the bucket; S3 then refuses buckets of other accounts. Default: not checked. */
  readonly expectedBucketOwner?: string;
  /** How S3 encrypts the object at rest. Default: the bucket's setting. */
  readonly serverSideEncryption?: S3Encryption;
  /** The KMS key for `aws:kms` and `aws:kms:dsse`; 1 to 2 048 characters. Default: the bucket's setting. */
  readonly sseKmsKeyId?: string;
}

/** A copy of the validated options. */
export interface Settings {
  readonly bucket: string;
  readonly key: string;
  readonly client: S3RingClient | undefined;
  /** Whether the store's own client puts the bucket in the path. */
  readonly forcePathStyle: boolean;
  readonly timeoutMs: number;
  readonly expectedBucketOwner: string | undefined;
  readonly serverSideEncryption: S3Encryption | undefined;
  readonly sseKmsKeyId: string | undefined;
}

export const OWNER = 's3Ring';

const OPTION_NAMES = [
  'bucket',
  'key',
  'client',
  'forcePathStyle',
  'callTimeoutSeconds',
  'expectedBucketOwner',
  'serverSideEncryption',
  'sseKmsKeyId',
] as const satisfies readonly (keyof S3RingOptions)[];

const ENCRYPTIONS: readonly S3Encryption[] = ['AES256', 'aws:kms', 'aws:kms:dsse'];
const MAX_KEY_BYTES = 1_024;

/**
 * @throws {TypeError} for an unknown option or a wrong type.
 * @throws {RangeError} for a value outside its bounds, or options that contradict each other.
 */
export function readOptions(options: S3RingOptions): Settings {
  option.refuseUnknown(OWNER, options, OPTION_NAMES);
  const { client, forcePathStyle, callTimeoutSeconds = 5, expectedBucketOwner } = options;
  const { serverSideEncryption, sseKmsKeyId } = options;
  if (client !== undefined && forcePathStyle !== undefined) {
    throw option.rangeError(`${OWNER}: forcePathStyle cannot be combined with client: set it on the client`);
  }
  if (sseKmsKeyId !== undefined && !(serverSideEncryption === 'aws:kms' || serverSideEncryption === 'aws:kms:dsse')) {
    throw option.rangeError(`${OWNER}: sseKmsKeyId needs a serverSideEncryption of aws:kms or aws:kms:dsse`);
  }
  const bucket = bucketOf(options.bucket);
  if (forcePathStyle === true && ACCESS_POINT.test(bucket)) {
    throw option.rangeError(`${OWNER}: forcePathStyle cannot be combined with the ARN of an access point`);
  }
  return {
    bucket,
    key: keyOf(options.key),
    client: client === undefined ? undefined : clientOf(client),
    forcePathStyle: option.flag(OWNER, 'forcePathStyle', forcePathStyle ?? false),
    timeoutMs: option.timeoutMsOf(OWNER, callTimeoutSeconds),
    expectedBucketOwner: expectedBucketOwner === undefined ? undefined : accountOf(expectedBucketOwner),
    serverSideEncryption: serverSideEncryption === undefined ? undefined : encryptionOf(serverSideEncryption),
    sseKmsKeyId:
      sseKmsKeyId === undefined
        ? undefined
        : option.textMatching(OWNER, 'sseKmsKeyId', sseKmsKeyId, /^[\x21-\x7e]{1,2048}$/),
  };
}

// Wider than AWS's current rules, because old buckets and other services have names with upper case and underscores.
const BUCKET_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]$/;
// The ARN must have a Region: a Multi-Region Access Point has none, and may answer from a replica that lags behind.
const ACCESS_POINT = /^arn:aws[a-z-]*:s3:[a-z0-9-]+:\d{12}:accesspoint\/[a-z0-9-]{3,63}$/;

function bucketOf(value: unknown): string {
  const bucket = option.text(OWNER, 'bucket', value);
  if (BUCKET_NAME.test(bucket) || ACCESS_POINT.test(bucket)) return bucket;
  throw option.outOfRange(OWNER, 'bucket', 'a bucket name, or an access point of one Region', bucket);
}

function keyOf(value: unknown): string {
  const key = option.text(OWNER, 'key', value);
  const bytes = Buffer.byteLength(key);
  if (bytes === 0 || bytes > MAX_KEY_BYTES || !key.isWellFormed()) {
    throw option.rangeError(`${OWNER}: key must be 1 to ${MAX_KEY_BYTES} bytes of UTF-8, got ${bytes}`);
  }
  // A proxy may resolve these parts, and the key would then name another object.
  if (key.split('/').some((part) => part === '.' || part === '..')) {
    throw option.rangeError(`${OWNER}: no part of key may be . or .., got ${option.quote(key)}`);
  }
  return key;
}

function clientOf(client: unknown): S3RingClient {
  return option.objectWith<S3RingClient>(OWNER, 'client', client, 'send', 'an S3Client (an object with send)');
}

function accountOf(value: unknown): string {
  return option.textMatching(OWNER, 'expectedBucketOwner', value, /^\d{12}$/);
}

function encryptionOf(value: unknown): S3Encryption {
  return option.oneOf(OWNER, 'serverSideEncryption', value, ENCRYPTIONS);
}
