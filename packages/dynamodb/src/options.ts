import { option, singleUseStorage } from '@sealring/core/adapter';
import type { DynamodbStoreClient } from './client.ts';

/** Options of {@link dynamodbSingleUse}: where the table is. */
export interface DynamodbSingleUseOptions {
  /** The name or ARN of a table whose only key is a string named `pk`. Required. */
  readonly table: string;
  /**
   * The client to call, with `maxAttempts: 1`; the store does not destroy it. Default: a new `DynamoDBClient`,
   * which takes credentials, and the region unless `table` is an ARN, from the AWS default chain (environment, shared
   * configuration files, container or instance role).
   */
  readonly client?: DynamodbStoreClient;
  /** Longest wait for one call, in seconds; 0.01 to 60. Default 5. */
  readonly callTimeoutSeconds?: number;
  /**
   * How long to remember a token after it expires, in seconds; 0 to 86 400. Use the same value as in the ring's policy.
   * Default 300.
   */
  readonly clockSkewSeconds?: number;
}

/** Options of {@link dynamodbRing}: where the table is, and which ring in it to use. */
export interface DynamodbRingOptions extends Omit<DynamodbSingleUseOptions, 'clockSkewSeconds'> {
  /** The ring's name: its item has the key `ring#<name>`. 1 to 64 characters of `[A-Za-z0-9._-]`. Default `default`. */
  readonly name?: string;
}

/** A copy of the validated options. */
export interface Settings {
  readonly table: string;
  readonly client: DynamodbStoreClient | undefined;
  /** `{ region }`, taken from the ARN; undefined if `table` is a name. */
  readonly region: Readonly<Record<string, string>> | undefined;
  readonly timeoutMs: number;
  /** Used only for a single-use store. */
  readonly clockSkewMs: number;
}

const SOURCE_OPTIONS: readonly (keyof DynamodbSingleUseOptions)[] = ['table', 'client', 'callTimeoutSeconds'];

/**
 * @throws {TypeError} for an unknown option or a wrong type.
 * @throws {RangeError} for a value outside its bounds.
 */
export function readRingOptions(owner: string, options: DynamodbRingOptions): Settings & { readonly name: string } {
  option.refuseUnknown(owner, options, [...SOURCE_OPTIONS, 'name']);
  return { ...readSource(owner, options), name: option.label(owner, 'name', options.name ?? 'default') };
}

/** @throws {TypeError | RangeError} as {@link readRingOptions} does. */
export function readSingleUseOptions(owner: string, options: DynamodbSingleUseOptions): Settings {
  option.refuseUnknown(owner, options, [...SOURCE_OPTIONS, 'clockSkewSeconds']);
  return readSource(owner, options);
}

const TABLE_NAME = /^[A-Za-z0-9._-]{3,255}$/;
const TABLE_ARN = /^arn:aws[a-z-]*:dynamodb:(?<region>[a-z0-9-]+):\d{12}:table\/[A-Za-z0-9._-]{3,255}$/;

function readSource(
  owner: string,
  { table, client, callTimeoutSeconds = 5, clockSkewSeconds }: DynamodbSingleUseOptions,
): Settings {
  const arn = TABLE_ARN.exec(option.text(owner, 'table', table));
  if (arn === null && !TABLE_NAME.test(table)) throw option.outOfRange(owner, 'table', "a table's name or ARN", table);
  return {
    table,
    client: client === undefined ? undefined : clientOf(owner, client),
    region: arn?.groups,
    timeoutMs: option.timeoutMsOf(owner, callTimeoutSeconds),
    clockSkewMs: singleUseStorage.clockSkewMsOf(owner, clockSkewSeconds),
  };
}

function clientOf(owner: string, client: unknown): DynamodbStoreClient {
  return option.objectWith<DynamodbStoreClient>(
    owner,
    'client',
    client,
    'send',
    'a DynamoDBClient (an object with send)',
  );
}
