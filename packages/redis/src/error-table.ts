import { type StoreFailure, vendorError } from '@sealring/core/adapter';

/** The meaning of a failed call. */
export type Failure = StoreFailure;

/**
 * Maps the prefix of an error reply to a kind. The first word of the reply is its code (Redis serialization protocol
 * specification, "Simple errors"); the rest is for humans.
 */
export const ERROR_TABLE: Readonly<Record<string, Failure>> = vendorError.errorTable<Failure['kind']>([
  ['denied', 'the server refused the login: check user and password', 'NOAUTH WRONGPASS'],
  ['denied', 'the user lacks a permission: check its ACL', 'NOPERM'],
  ['denied', 'the server is in protected mode and refuses other machines', 'DENIED'],
  ['corrupt', 'the key holds something other than a ring', 'WRONGTYPE'],

  // Not `read-only`, which means that no server may write through this store: after the failover, writes succeed.
  [
    'unavailable',
    'the server is a replica, or has too few replicas: a failover is under way, or the address is wrong',
    'READONLY NOREPLICAS MASTERDOWN UNBLOCKED',
  ],
  ['unavailable', 'the server is out of memory (maxmemory)', 'OOM'],
  ['unavailable', 'the server cannot persist data, so it refuses writes', 'MISCONF'],
  ['unavailable', 'the server cannot serve requests at the moment', 'LOADING BUSY TRYAGAIN'],
  [
    'unavailable',
    'the server is a node of a cluster that does not hold this key at the moment',
    'CLUSTERDOWN MOVED ASK',
  ],
]);

/** Errors of the client itself, by name. */
const CLIENT_TABLE = vendorError.errorTable<Failure['kind']>([
  ['unavailable', 'the client is closed, or was never connected', 'ClientClosedError'],
  ['unavailable', 'the client is not connected', 'ClientOfflineError'],
  [
    'unavailable',
    'the server accepted no connection in time: check whether the port uses TLS (rediss://)',
    'ConnectionTimeoutError',
  ],
  [
    'unavailable',
    'the server closed the connection: check whether the port requires TLS (rediss://)',
    'SocketClosedUnexpectedlyError',
  ],
]);

/** Classifies a rejection. Anything that is not in the tables is `unavailable`, never an absent ring. */
export function classify(error: unknown): Failure {
  const table = { ...ERROR_TABLE, ...CLIENT_TABLE };
  const name = error instanceof Error ? error.constructor.name : undefined;
  return vendorError.storeFailure({ service: 'the server', table }, error, undefined, [codeOf(error), name]);
}

/** The code of an error reply; undefined for anything without one. */
export function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  // A missing permission inside a script has no separate code in Redis 7 (acl.c, script.c).
  if (/^ERR (?:The user executing the script can't|ACL failure in script)/.test(error.message)) return 'NOPERM';
  return /^([A-Z]{2,32})(?: |$)/.exec(error.message)?.[1];
}
