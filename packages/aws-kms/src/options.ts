import { option } from '@sealring/core/adapter';
import type { AwsKmsClient } from './client.ts';
import { isMultiRegionId, type KeyName, mayMean, parseKeyArn, parseKeyName } from './key-name.ts';

/** Options of {@link awsKmsKeyWrapper}. */
export interface AwsKmsKeyWrapperOptions {
  /** The symmetric KMS key: a key ARN, a key id, an alias ARN or `alias/…`. Required. */
  readonly keyId: string;
  /**
   * The client to call, with `maxAttempts: 1`; the wrapper does not destroy it. Default: a new `KMSClient`,
   * which takes its credentials from the AWS default chain (environment, shared configuration files, container or
   * instance role), and also its region unless `keyId` is an ARN.
   */
  readonly client?: AwsKmsClient | undefined;
  /**
   * Full ARNs of replaced KMS keys whose wrapped keys may still be unwrapped; 0 to 64, in the region of `keyId` if that is
   * an ARN. Default none.
   */
  readonly alsoUnwrap?: readonly string[] | undefined;
  /**
   * Whether to unwrap data keys that any replica of the key wrapped, by calling the replica that `keyId` names;
   * requires an `mrk-…` key or an alias. Default false.
   */
  readonly multiRegion?: boolean | undefined;
  /** Longest wait for one attempt, in seconds; 0.01 to 60. Default 5. */
  readonly callTimeoutSeconds?: number | undefined;
  /** Attempts per call, the first one included; only `throttled` and `unavailable` are retried; 1 to 10. Default 3. */
  readonly maxAttempts?: number | undefined;
}

/** A frozen copy of the validated options. */
export interface Settings {
  readonly keyId: string;
  readonly keyName: KeyName;
  readonly client: AwsKmsClient | undefined;
  readonly alsoUnwrap: readonly string[];
  readonly multiRegion: boolean;
  readonly timeoutMs: number;
  readonly maxAttempts: number;
}

const OWNER = 'awsKmsKeyWrapper';

const OPTION_NAMES = [
  'keyId',
  'client',
  'alsoUnwrap',
  'multiRegion',
  'callTimeoutSeconds',
  'maxAttempts',
] as const satisfies readonly (keyof AwsKmsKeyWrapperOptions)[];

const MAX_ALSO_UNWRAP = 64;

/**
 * @throws {TypeError} for an unknown option or a wrong type.
 * @throws {RangeError} for a value outside its bounds, a key name in an unknown form, or options that contradict each
 * other.
 */
export function readOptions(options: AwsKmsKeyWrapperOptions): Settings {
  option.refuseUnknown(OWNER, options, OPTION_NAMES);
  const { keyId, client, alsoUnwrap = [], multiRegion = false, callTimeoutSeconds = 5, maxAttempts = 3 } = options;
  option.flag(OWNER, 'multiRegion', multiRegion);
  const keyName = keyNameOf(keyId, multiRegion);
  return Object.freeze({
    keyId,
    keyName,
    client: client === undefined ? undefined : clientOf(client),
    alsoUnwrap: option.listOf(OWNER, 'alsoUnwrap', alsoUnwrap, 'key ARNs', MAX_ALSO_UNWRAP, (name, entry) =>
      replacedKey(name, entry, keyName, multiRegion),
    ),
    multiRegion,
    timeoutMs: option.timeoutMsOf(OWNER, callTimeoutSeconds),
    maxAttempts: option.integerWithin(OWNER, 'maxAttempts', maxAttempts, 1, 10),
  });
}

function keyNameOf(value: unknown, multiRegion: boolean): KeyName {
  const keyId = option.text(OWNER, 'keyId', value);
  const name = parseKeyName(keyId);
  if (name === undefined)
    throw option.outOfRange(OWNER, 'keyId', 'a key ARN, a key id, an alias ARN or alias/…', keyId);
  if (multiRegion && 'id' in name && !isMultiRegionId(name.id)) {
    throw option.rangeError(
      `${OWNER}: multiRegion needs a multi-Region key (mrk-…), but keyId is ${option.quote(keyId)}`,
    );
  }
  return name;
}

function clientOf(client: unknown): AwsKmsClient {
  return option.objectWith<AwsKmsClient>(OWNER, 'client', client, 'send', 'a KMSClient (an object with send)');
}

// An alias could later point to another key, and a bare key id does not name the account.
function replacedKey(name: string, entry: unknown, keyName: KeyName, multiRegion: boolean): string {
  const arn = option.text(OWNER, name, entry);
  const key = parseKeyArn(arn);
  if (key === undefined) throw option.outOfRange(OWNER, name, 'a key ARN', arn);
  // KMS finds an ARN only in its own Region, and this wrapper calls only the Region of `keyId`.
  const isReplica = 'id' in keyName && mayMean(keyName, arn, multiRegion);
  if ('region' in keyName && keyName.region !== key.region && !isReplica) {
    throw option.rangeError(
      `${OWNER}: ${name} must be a key in the region of keyId, ${keyName.region}, got ${option.quote(arn)}; ` +
        'for a key of another region, pass createKmsCodec a key wrapper for each key: keyWrapper: [old, new]',
    );
  }
  return arn;
}
