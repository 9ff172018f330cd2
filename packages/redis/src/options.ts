import { types } from 'node:util';
import type { RedisClient } from './client.ts';

/** Where the server is: exactly one of the two. */
export interface RedisSource {
  /** A client of yours, connected by you; stays yours to close. */
  readonly client?: RedisClient;
  /**
   * For convenience: `redis://[user:password@]host[:port][/db]`, or `rediss://` for TLS. The store then makes a client,
   * connects it at the first call, and closes it with its own `close`.
   */
  readonly url?: string;
  /** Longest wait for one call, in seconds; 0.01 to 60. Default 5. */
  readonly timeoutSeconds?: number;
}

/** Options of {@link redisRing}: `client` or `url`, and where the ring lies. */
export interface RedisRingOptions extends RedisSource {
  /** The ring's key, and the name of its channel; 1 to 512 characters. One per ring. Default `sealring:ring`. */
  readonly key?: string;
}

/** Options of {@link redisSingleUse}: `client` or `url`, and the names of the keys. */
export interface RedisSingleUseOptions extends RedisSource {
  /** What every key begins with; 1 to 512 characters. Default `sealring:used:`. */
  readonly prefix?: string;
}

/** Validated options: a frozen copy. */
export interface Settings {
  readonly client: RedisClient | undefined;
  readonly url: string | undefined;
  readonly timeoutMs: number;
  /** The ring's key or the prefix. */
  readonly name: string;
}

const MAX_NAME_LENGTH = 512;

/** @throws {TypeError | RangeError} naming option and value, but never the URL: it may hold a password. */
export function readOptions(owner: string, options: unknown, nameOption: 'key' | 'prefix', fallback: string): Settings {
  refuseUnknown(owner, options, ['client', 'url', 'timeoutSeconds', nameOption]);
  const given = options as Readonly<Record<string, unknown>>;
  const { client, url, timeoutSeconds = 5, [nameOption]: name = fallback } = given;
  if ((client === undefined) === (url === undefined)) throw new TypeError(`${owner}: give either client or url`);
  return Object.freeze({
    client: client === undefined ? undefined : clientOf(owner, client),
    url: url === undefined ? undefined : urlOf(owner, url),
    timeoutMs: secondsOf(owner, timeoutSeconds) * 1000,
    name: nameOf(owner, nameOption, name),
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

function clientOf(owner: string, client: unknown): RedisClient {
  if (!isClient(client)) throw new TypeError(`${owner}: client must have sendCommand, got ${show(client)}`);
  return client;
}

function isClient(value: unknown): value is RedisClient {
  return (
    typeof value === 'object' && value !== null && 'sendCommand' in value && typeof value.sendCommand === 'function'
  );
}

function urlOf(owner: string, url: unknown): string {
  if (typeof url !== 'string') throw new TypeError(`${owner}: url must be a string, got ${show(url)}`);
  const protocol = URL.canParse(url) ? new URL(url).protocol : '';
  if (protocol !== 'redis:' && protocol !== 'rediss:') {
    throw new RangeError(`${owner}: url must be a redis:// or rediss:// URL`);
  }
  return url;
}

function secondsOf(owner: string, value: unknown): number {
  if (typeof value !== 'number') throw new TypeError(`${owner}: timeoutSeconds must be a number, got ${show(value)}`);
  if (!(value >= 0.01 && value <= 60)) {
    throw new RangeError(`${owner}: timeoutSeconds must be from 0.01 to 60, got ${value}`);
  }
  return value;
}

function nameOf(owner: string, option: string, value: unknown): string {
  if (typeof value !== 'string') throw new TypeError(`${owner}: ${option} must be a string, got ${show(value)}`);
  if (value.length === 0 || value.length > MAX_NAME_LENGTH || !value.isWellFormed()) {
    throw new RangeError(`${owner}: ${option} must be 1 to ${MAX_NAME_LENGTH} characters, got ${value.length}`);
  }
  return value;
}
