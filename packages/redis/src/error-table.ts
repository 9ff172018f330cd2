import { findRow, type StoreFailure, unexplained, unreachable } from '@sealring/core/adapter';

/** What a failed call says. */
export type Failure = StoreFailure;

const REPLICA = 'the server is a replica, or has too few replicas: a failover is under way, or the address is wrong';
const LOGIN = 'the server refused the login: check user and password';
const DENIED = 'the user lacks a permission: check its ACL';
const BUSY = 'the server cannot serve requests at the moment';
const CLUSTER = 'the server is a node of a cluster that does not hold this key at the moment';

/**
 * Maps the prefix of an error reply to a kind. The first word of the reply is its code (Redis serialization protocol
 * specification, "Simple errors"); the rest is for humans.
 */
export const ERROR_TABLE: Readonly<Record<string, Failure>> = Object.freeze({
  NOAUTH: { kind: 'denied', detail: LOGIN },
  WRONGPASS: { kind: 'denied', detail: LOGIN },
  NOPERM: { kind: 'denied', detail: DENIED },
  DENIED: { kind: 'denied', detail: 'the server is in protected mode and refuses other machines' },
  WRONGTYPE: { kind: 'corrupt', detail: 'the key holds something other than a ring' },

  // Not `read-only`, which means that no server may write through this store: after the failover writes succeed.
  READONLY: { kind: 'unavailable', detail: REPLICA },
  NOREPLICAS: { kind: 'unavailable', detail: REPLICA },
  MASTERDOWN: { kind: 'unavailable', detail: REPLICA },
  UNBLOCKED: { kind: 'unavailable', detail: REPLICA },

  OOM: { kind: 'unavailable', detail: 'the server is out of memory (maxmemory)' },
  MISCONF: { kind: 'unavailable', detail: 'the server cannot persist and refuses writes' },
  LOADING: { kind: 'unavailable', detail: BUSY },
  BUSY: { kind: 'unavailable', detail: BUSY },
  TRYAGAIN: { kind: 'unavailable', detail: BUSY },
  CLUSTERDOWN: { kind: 'unavailable', detail: CLUSTER },
  MOVED: { kind: 'unavailable', detail: CLUSTER },
  ASK: { kind: 'unavailable', detail: CLUSTER },
} satisfies Record<string, Failure>);

/** Errors of the client itself, by name. */
const CLIENT_TABLE: Readonly<Record<string, Failure>> = Object.freeze({
  ClientClosedError: { kind: 'unavailable', detail: 'the client is closed, or was never connected' },
  ClientOfflineError: { kind: 'unavailable', detail: 'the client is not connected' },
  ConnectionTimeoutError: {
    kind: 'unavailable',
    detail: 'the server accepted no connection in time: check whether the port uses TLS (rediss://)',
  },
  SocketClosedUnexpectedlyError: {
    kind: 'unavailable',
    detail: 'the server closed the connection: check whether the port requires TLS (rediss://)',
  },
} satisfies Record<string, Failure>);

/** What a rejection means. Anything that is not in the tables is `unavailable`, never an absent ring. */
export function classify(error: unknown): Failure {
  const name = error instanceof Error ? error.constructor.name : '';
  const found = findRow(ERROR_TABLE, [codeOf(error)]) ?? findRow(CLIENT_TABLE, [name]);
  if (found !== undefined) return { ...found.row, serviceCode: found.code };
  return unreachable(error, 'the server') ?? unexplained();
}

/** The code of an error reply; empty for anything without one. */
export function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return '';
  // A missing permission inside a script has no code of its own in Redis 7 (acl.c, script.c).
  if (/^ERR (?:The user executing the script can't|ACL failure in script)/.test(error.message)) return 'NOPERM';
  return /^([A-Z]{2,32}) /.exec(`${error.message} `)?.[1] ?? '';
}
