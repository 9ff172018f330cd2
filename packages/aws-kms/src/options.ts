import { types } from 'node:util';
import type { AwsKmsClient } from './client.ts';
import { isMultiRegionId, type KeyName, parseKeyArn, parseKeyName } from './key-name.ts';

/** Options of {@link awsKmsKeyWrapper}. */
export interface AwsKmsKeyWrapperOptions {
  /** The symmetric KMS key: a key ARN, a key id, an alias ARN or `alias/…`. Required. */
  readonly keyId: string;
  /**
   * The client to call, with `maxAttempts: 1`; stays yours to destroy. Default: a `KMSClient` of the wrapper's own,
   * with credentials, and the region unless `keyId` is an ARN, by the AWS default chain (environment, shared
   * configuration files, container or instance role).
   */
  readonly client?: AwsKmsClient;
  /** Full ARNs of retired KMS keys whose wrapped keys may still be opened; 0 to 64. Default none. */
  readonly alsoUnwrap?: readonly string[];
  /** Whether any replica's wrapped keys are opened, by calling `keyId`'s; takes an `mrk-…` key or an alias. Default false. */
  readonly multiRegion?: boolean;
  /** Longest wait for one attempt, in seconds; 0.01 to 60. Default 5. */
  readonly timeoutSeconds?: number;
  /** Attempts per call, the first one included; only `throttled` and `unavailable` are tried again; 1 to 10. Default 3. */
  readonly maxAttempts?: number;
}

/** Validated options: a frozen copy. */
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
  'timeoutSeconds',
  'maxAttempts',
] as const satisfies readonly (keyof AwsKmsKeyWrapperOptions)[];

const MAX_ALSO_UNWRAP = 64;

/**
 * @throws {TypeError} for an unknown option or a wrong type.
 * @throws {RangeError} for a value outside its bounds, a name that KMS has no form for, or options that contradict.
 */
export function readOptions(options: AwsKmsKeyWrapperOptions): Settings {
  if (typeof options !== 'object' || options === null) throw wrongType('options', 'an object', options);
  for (const key of Object.keys(options)) {
    if (!OPTION_NAMES.some((name) => name === key)) {
      throw new TypeError(`${OWNER}: unknown option ${JSON.stringify(key)}; known are ${OPTION_NAMES.join(', ')}`);
    }
  }
  const { keyId, client, alsoUnwrap = [], multiRegion = false, timeoutSeconds = 5, maxAttempts = 3 } = options;
  if (typeof multiRegion !== 'boolean') throw wrongType('multiRegion', 'a boolean', multiRegion);
  return Object.freeze({
    keyId,
    keyName: keyNameOf(keyId, multiRegion),
    client: clientOf(client),
    alsoUnwrap: retiredKeys(alsoUnwrap),
    multiRegion,
    timeoutMs: numberWithin('timeoutSeconds', timeoutSeconds, 0.01, 60) * 1000,
    maxAttempts: integerWithin('maxAttempts', maxAttempts, 1, 10),
  });
}

function keyNameOf(keyId: unknown, multiRegion: boolean): KeyName {
  if (typeof keyId !== 'string') throw wrongType('keyId', 'a string', keyId);
  const name = parseKeyName(keyId);
  if (name === undefined) {
    throw new RangeError(`${OWNER}: keyId must be a key ARN, a key id, an alias ARN or alias/…, got ${quote(keyId)}`);
  }
  if (multiRegion && 'id' in name && !isMultiRegionId(name.id)) {
    throw new RangeError(`${OWNER}: multiRegion needs a multi-Region key (mrk-…), but keyId is ${quote(keyId)}`);
  }
  return name;
}

function clientOf(client: unknown): AwsKmsClient | undefined {
  if (client === undefined) return undefined;
  if (!isClient(client)) throw wrongType('client', 'a KMSClient (an object with send)', client);
  return client;
}

function isClient(value: unknown): value is AwsKmsClient {
  return typeof value === 'object' && value !== null && 'send' in value && typeof value.send === 'function';
}

function retiredKeys(alsoUnwrap: unknown): readonly string[] {
  if (!Array.isArray(alsoUnwrap)) throw wrongType('alsoUnwrap', 'an array of key ARNs', alsoUnwrap);
  if (alsoUnwrap.length > MAX_ALSO_UNWRAP) {
    throw new RangeError(`${OWNER}: alsoUnwrap must have at most ${MAX_ALSO_UNWRAP} entries, got ${alsoUnwrap.length}`);
  }
  const arns = alsoUnwrap.map((entry: unknown, index) => {
    const name = `alsoUnwrap[${index}]`;
    if (typeof entry !== 'string') throw wrongType(name, 'a string', entry);
    // An alias could be pointed elsewhere later, and a bare id leaves the account open.
    if (parseKeyArn(entry) === undefined)
      throw new RangeError(`${OWNER}: ${name} must be a key ARN, got ${quote(entry)}`);
    return entry;
  });
  return Object.freeze(arns);
}

function numberWithin(name: string, value: unknown, min: number, max: number): number {
  if (typeof value !== 'number') throw wrongType(name, 'a number', value);
  if (!(value >= min && value <= max)) {
    throw new RangeError(`${OWNER}: ${name} must be from ${min} to ${max}, got ${value}`);
  }
  return value;
}

function integerWithin(name: string, value: unknown, min: number, max: number): number {
  const number = numberWithin(name, value, min, max);
  if (!Number.isInteger(number)) throw new RangeError(`${OWNER}: ${name} must be a whole number, got ${number}`);
  return number;
}

function wrongType(name: string, wanted: string, value: unknown): TypeError {
  return new TypeError(`${OWNER}: ${name} must be ${wanted}, got ${show(value)}`);
}

/** Shows a wrong value by its type only: it may be a secret that went astray. */
export function show(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (types.isUint8Array(value)) return `${value.length} bytes`;
  if (Array.isArray(value)) return `an array of ${value.length}`;
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

function quote(text: string): string {
  return JSON.stringify(text.slice(0, 120));
}
