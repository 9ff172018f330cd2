import { option, singleUseStorage } from '@sealring/core/adapter';
import type { RedisClient } from './client.ts';

/** How to reach the server: exactly one of `client` and `url` is required. */
export interface RedisSource {
  /** Your client, which you connect and close. */
  readonly client?: RedisClient;
  /**
   * For convenience: `redis://[user:password@]host[:port][/db]`, or `rediss://` for TLS. The store then creates a client,
   * connects it at the first call, and closes it with its own `close`.
   */
  readonly url?: string;
  /** Longest wait for one call, in seconds; 0.01 to 60. Default 5. */
  readonly callTimeoutSeconds?: number;
}

/** Options of {@link redisRing}: `client` or `url`, and where the ring is. */
export interface RedisRingOptions extends RedisSource {
  /** The ring's key, and the name of its channel; 1 to 512 characters. One per ring. Default `sealring:ring`. */
  readonly key?: string;
}

/** Options of {@link redisSingleUse}: `client` or `url`, and the names of the keys. */
export interface RedisSingleUseOptions extends RedisSource {
  /** The prefix of every key; 1 to 512 characters. Default `sealring:used:`. */
  readonly prefix?: string;
  /**
   * How long to remember a token after it expires, in seconds; 0 to 86 400. Use the value of the ring's policy. Default
   * 300.
   */
  readonly clockSkewSeconds?: number;
}

/** A copy of the validated options. */
export interface Settings {
  /** The caller's client, or the URL for the store's own client. */
  readonly source: RedisClient | string;
  readonly timeoutMs: number;
  /** The ring's key or the prefix. */
  readonly name: string;
  /** How long a token is remembered after it expires; used only for a single-use store. */
  readonly clockSkewMs: number;
}

const MAX_NAME_LENGTH = 512;

/**
 * @throws {TypeError | RangeError} that names the option and its value, but never the URL, which can contain a
 * password.
 */
export function readRingOptions(options: unknown): Settings {
  return readOptions('redisRing', options, 'key', 'sealring:ring', []);
}

/** @throws {TypeError | RangeError} as {@link readRingOptions} does. */
export function readSingleUseOptions(options: unknown): Settings {
  return readOptions('redisSingleUse', options, 'prefix', 'sealring:used:', ['clockSkewSeconds']);
}

function readOptions(
  owner: string,
  options: unknown,
  nameOption: 'key' | 'prefix',
  fallback: string,
  more: readonly string[],
): Settings {
  option.refuseUnknown(owner, options, ['client', 'url', 'callTimeoutSeconds', nameOption, ...more]);
  const given = options as Readonly<Record<string, unknown>>;
  const { client, url, callTimeoutSeconds = 5, [nameOption]: name = fallback } = given;
  if ((client === undefined) === (url === undefined)) throw option.typeError(`${owner}: give either client or url`);
  return {
    source: client === undefined ? urlOf(owner, url) : clientOf(owner, client),
    timeoutMs: option.timeoutMsOf(owner, callTimeoutSeconds),
    name: option.textWithin(owner, nameOption, name, MAX_NAME_LENGTH),
    clockSkewMs: singleUseStorage.clockSkewMsOf(owner, given['clockSkewSeconds']),
  };
}

function urlOf(owner: string, value: unknown): string {
  const wanted = 'a redis:// or rediss:// URL';
  const url = option.urlWith(owner, 'url', value, ['redis:', 'rediss:'], wanted);
  if (!isReadable(new URL(url))) {
    throw option.rangeError(
      `${owner}: url must be ${wanted} whose path is the number of a database, and in which % begins an escape`,
    );
  }
  return url;
}

/** Whether the SDK can read the URL: otherwise, it throws an error that does not name the option. */
function isReadable({ username, password, pathname }: URL): boolean {
  try {
    for (const part of [username, password]) decodeURIComponent(part);
    return /^(?:\/\d*)?$/.test(pathname);
  } catch {
    return false;
  }
}

/** The arguments of `sendCommand`: the command and its options. */
const SEND_ARGUMENTS = 2;

function clientOf(owner: string, value: unknown): RedisClient {
  const wanted = 'a Redis client (an object with sendCommand)';
  const client = option.objectWith<RedisClient>(owner, 'client', value, 'sendCommand', wanted);
  // The method of a cluster, or of Sentinel, takes the key or the kind of node first.
  if (client.sendCommand.length <= SEND_ARGUMENTS) return client;
  throw option.typeError(
    `${owner}: client must be the client of one server, not of a cluster or of Sentinel: pass the client of one node, ` +
      'or of the primary',
  );
}
