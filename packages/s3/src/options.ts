import { types } from 'node:util';
import type { S3RingClient } from './client.ts';

/** How S3 encrypts the object at rest; `x-amz-server-side-encryption`. */
export type S3Encryption = 'AES256' | 'aws:kms' | 'aws:kms:dsse';

/** Options of {@link s3Ring}. */
export interface S3RingOptions {
  /** The bucket's name, or the alias or ARN of an access point in one Region. Required. */
  readonly bucket: string;
  /** The object's key; 1 to 1 024 bytes of UTF-8, no part of it `.` or `..`. One per ring. Required. */
  readonly key: string;
  /**
   * The client to call, with `maxAttempts: 1`; stays yours to destroy. Default: an `S3Client` of the store's own, with
   * credentials and region by the AWS default chain (environment, shared configuration files, container or instance
   * role).
   */
  readonly client?: S3RingClient;
  /** Longest wait for one request, in seconds; 0.01 to 60. A write that replaces makes two. Default 5. */
  readonly timeoutSeconds?: number;
  /** The 12 digits of the AWS account that owns the bucket; S3 then refuses any other's. Default: not checked. */
  readonly expectedBucketOwner?: string;
  /** How S3 encrypts the object at rest. Default: as the bucket says. */
  readonly serverSideEncryption?: S3Encryption;
  /** The KMS key for `aws:kms` and `aws:kms:dsse`; 1 to 2 048 characters. Default: as the bucket says. */
  readonly sseKmsKeyId?: string;
}

/** Validated options: a frozen copy. */
export interface Settings {
  readonly bucket: string;
  readonly key: string;
  readonly client: S3RingClient | undefined;
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
  'timeoutSeconds',
  'expectedBucketOwner',
  'serverSideEncryption',
  'sseKmsKeyId',
] as const satisfies readonly (keyof S3RingOptions)[];

const ENCRYPTIONS: readonly S3Encryption[] = ['AES256', 'aws:kms', 'aws:kms:dsse'];
const MAX_KEY_BYTES = 1_024;

/**
 * @throws {TypeError} for an unknown option or a wrong type.
 * @throws {RangeError} for a value outside its bounds, or options that contradict.
 */
export function readOptions(options: S3RingOptions): Settings {
  refuseUnknown(OWNER, options, OPTION_NAMES);
  const { client, timeoutSeconds = 5, expectedBucketOwner, serverSideEncryption, sseKmsKeyId } = options;
  if (sseKmsKeyId !== undefined && !(serverSideEncryption === 'aws:kms' || serverSideEncryption === 'aws:kms:dsse')) {
    throw new RangeError(`${OWNER}: sseKmsKeyId needs a serverSideEncryption of aws:kms or aws:kms:dsse`);
  }
  return Object.freeze({
    bucket: bucketOf(options.bucket),
    key: keyOf(options.key),
    client: client === undefined ? undefined : clientOf(client),
    timeoutMs: secondsOf(timeoutSeconds) * 1000,
    expectedBucketOwner: expectedBucketOwner === undefined ? undefined : accountOf(expectedBucketOwner),
    serverSideEncryption: serverSideEncryption === undefined ? undefined : encryptionOf(serverSideEncryption),
    sseKmsKeyId: sseKmsKeyId === undefined ? undefined : text('sseKmsKeyId', sseKmsKeyId, /^[\x21-\x7e]{1,2048}$/),
  });
}

/** @throws {TypeError} unless `options` is an object whose every key is in `known`. */
export function refuseUnknown(owner: string, options: unknown, known: readonly string[]): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new TypeError(`${owner}: options must be an object, got ${show(options)}`);
  }
  for (const key of Object.keys(options)) {
    if (!known.includes(key)) {
      throw new TypeError(`${owner}: unknown option ${JSON.stringify(key)}; known are ${known.join(', ')}`);
    }
  }
}

/** Shows a wrong value by its type only: it may be a secret that went astray. */
export function show(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (types.isUint8Array(value)) return `${value.length} bytes`;
  if (Array.isArray(value)) return `an array of ${value.length}`;
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

// Wider than AWS's rules of today: old buckets and other services have upper case and underscores.
const BUCKET_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]$/;
// With a Region: a Multi-Region Access Point has none, and may answer from a copy that is behind.
const ACCESS_POINT = /^arn:aws[a-z-]*:s3:[a-z0-9-]+:\d{12}:accesspoint\/[a-z0-9-]{3,63}$/;

function bucketOf(value: unknown): string {
  if (typeof value !== 'string') throw wrongType('bucket', 'a string', value);
  if (!BUCKET_NAME.test(value) && !ACCESS_POINT.test(value)) {
    throw new RangeError(
      `${OWNER}: bucket must be a bucket name, or an access point of one Region, got ${quote(value)}`,
    );
  }
  return value;
}

function keyOf(value: unknown): string {
  if (typeof value !== 'string') throw wrongType('key', 'a string', value);
  const bytes = Buffer.byteLength(value);
  if (bytes === 0 || bytes > MAX_KEY_BYTES || !value.isWellFormed()) {
    throw new RangeError(`${OWNER}: key must be 1 to ${MAX_KEY_BYTES} bytes of UTF-8, got ${bytes}`);
  }
  // Somebody on the way may resolve them, and then it is another object.
  if (value.split('/').some((part) => part === '.' || part === '..')) {
    throw new RangeError(`${OWNER}: no part of key may be . or .., got ${quote(value)}`);
  }
  return value;
}

function clientOf(client: unknown): S3RingClient {
  if (!isClient(client)) throw wrongType('client', 'an S3Client (an object with send)', client);
  return client;
}

function isClient(value: unknown): value is S3RingClient {
  return typeof value === 'object' && value !== null && 'send' in value && typeof value.send === 'function';
}

function accountOf(value: unknown): string {
  return text('expectedBucketOwner', value, /^\d{12}$/);
}

function encryptionOf(value: unknown): S3Encryption {
  if (typeof value !== 'string') throw wrongType('serverSideEncryption', 'a string', value);
  const found = ENCRYPTIONS.find((encryption) => encryption === value);
  if (found === undefined) {
    throw new RangeError(
      `${OWNER}: serverSideEncryption must be one of ${ENCRYPTIONS.join(', ')}, got ${quote(value)}`,
    );
  }
  return found;
}

function text(name: string, value: unknown, form: RegExp): string {
  if (typeof value !== 'string') throw wrongType(name, 'a string', value);
  if (!form.test(value)) throw new RangeError(`${OWNER}: ${name} must match ${form.source}, got ${quote(value)}`);
  return value;
}

function secondsOf(value: unknown): number {
  if (typeof value !== 'number') throw wrongType('timeoutSeconds', 'a number', value);
  if (!(value >= 0.01 && value <= 60)) {
    throw new RangeError(`${OWNER}: timeoutSeconds must be from 0.01 to 60, got ${value}`);
  }
  return value;
}

function wrongType(name: string, wanted: string, value: unknown): TypeError {
  return new TypeError(`${OWNER}: ${name} must be ${wanted}, got ${show(value)}`);
}

function quote(value: string): string {
  return JSON.stringify(value.slice(0, 120));
}
