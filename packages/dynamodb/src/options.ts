import { types } from 'node:util';
import type { DynamodbStoreClient } from './client.ts';

/** Options of {@link dynamodbSingleUse}: where the table is. */
export interface DynamodbSingleUseOptions {
  /** The table's name or ARN; its only key is a string, `pk`. Required. */
  readonly table: string;
  /**
   * The client to call, with `maxAttempts: 1`; stays yours to destroy. Default: a `DynamoDBClient` of the store's own,
   * with credentials, and the region unless `table` is an ARN, by the AWS default chain (environment, shared
   * configuration files, container or instance role).
   */
  readonly client?: DynamodbStoreClient;
  /** Longest wait for one call, in seconds; 0.01 to 60. Default 5. */
  readonly timeoutSeconds?: number;
}

/** Options of {@link dynamodbRing}: where the table is, and the ring in it. */
export interface DynamodbRingOptions extends DynamodbSingleUseOptions {
  /** The ring's name: its item has the key `ring#<name>`. 1 to 64 of `[A-Za-z0-9._-]`. Default `default`. */
  readonly name?: string;
}

/** Validated options: a frozen copy. */
export interface Settings {
  readonly table: string;
  readonly client: DynamodbStoreClient | undefined;
  readonly region: string | undefined;
  readonly timeoutMs: number;
  /** Empty for a single-use store. */
  readonly name: string;
}

const SOURCE_OPTIONS: readonly (keyof DynamodbSingleUseOptions)[] = ['table', 'client', 'timeoutSeconds'];

/**
 * @throws {TypeError} for an unknown option or a wrong type.
 * @throws {RangeError} for a value outside its bounds.
 */
export function readRingOptions(owner: string, options: DynamodbRingOptions): Settings {
  refuseUnknown(owner, options, [...SOURCE_OPTIONS, 'name']);
  return Object.freeze({ ...readSource(owner, options), name: nameOf(owner, options.name ?? 'default') });
}

/** @throws {TypeError | RangeError} as {@link readRingOptions} does. */
export function readSingleUseOptions(owner: string, options: DynamodbSingleUseOptions): Settings {
  refuseUnknown(owner, options, SOURCE_OPTIONS);
  return Object.freeze({ ...readSource(owner, options), name: '' });
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

function readSource(
  owner: string,
  { table, client, timeoutSeconds = 5 }: DynamodbSingleUseOptions,
): Omit<Settings, 'name'> {
  return {
    table: tableOf(owner, table),
    client: client === undefined ? undefined : clientOf(owner, client),
    region: regionOf(table),
    timeoutMs: secondsOf(owner, timeoutSeconds) * 1000,
  };
}

const TABLE_NAME = /^[A-Za-z0-9._-]{3,255}$/;
const TABLE_ARN = /^arn:aws[a-z-]*:dynamodb:([a-z0-9-]+):\d{12}:table\/[A-Za-z0-9._-]{3,255}$/;

function tableOf(owner: string, value: unknown): string {
  if (typeof value !== 'string') throw new TypeError(`${owner}: table must be a string, got ${show(value)}`);
  if (!TABLE_NAME.test(value) && !TABLE_ARN.test(value)) {
    throw new RangeError(`${owner}: table must be a table's name or ARN, got ${quote(value)}`);
  }
  return value;
}

function regionOf(table: string): string | undefined {
  return TABLE_ARN.exec(table)?.[1];
}

function nameOf(owner: string, value: unknown): string {
  if (typeof value !== 'string') throw new TypeError(`${owner}: name must be a string, got ${show(value)}`);
  if (!/^[A-Za-z0-9._-]{1,64}$/.test(value)) {
    throw new RangeError(`${owner}: name must be 1 to 64 of [A-Za-z0-9._-], got ${quote(value)}`);
  }
  return value;
}

function clientOf(owner: string, client: unknown): DynamodbStoreClient {
  if (!isClient(client)) {
    throw new TypeError(`${owner}: client must be a DynamoDBClient (an object with send), got ${show(client)}`);
  }
  return client;
}

function isClient(value: unknown): value is DynamodbStoreClient {
  return typeof value === 'object' && value !== null && 'send' in value && typeof value.send === 'function';
}

function secondsOf(owner: string, value: unknown): number {
  if (typeof value !== 'number') {
    throw new TypeError(`${owner}: timeoutSeconds must be a number, got ${show(value)}`);
  }
  if (!(value >= 0.01 && value <= 60)) {
    throw new RangeError(`${owner}: timeoutSeconds must be from 0.01 to 60, got ${value}`);
  }
  return value;
}

function quote(value: string): string {
  return JSON.stringify(value.slice(0, 120));
}
