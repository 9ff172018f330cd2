import { findRow, property, type StoreFailure, unexplained, unreachable } from '@sealring/core/adapter';

/** What a failed call means; `serviceCode` is the SQLSTATE, if it is a row of {@link ERROR_TABLE}. */
export type Failure = StoreFailure;

const LOGIN = 'the server refused the user';
const TABLE = 'the table is missing: run the migration';
const SHAPE = 'the table does not match the migration';
const BUSY = 'the server cannot serve requests at the moment';
const STANDBY = 'the server is read-only: a failover is under way, or the address is wrong';

/**
 * Maps a SQLSTATE to a kind (PostgreSQL documentation, appendix A, "PostgreSQL Error Codes"). Any other code is `unavailable`.
 */
export const ERROR_TABLE: Readonly<Record<string, Failure>> = Object.freeze({
  '28000': { kind: 'denied', detail: LOGIN },
  '28P01': { kind: 'denied', detail: LOGIN },
  '42501': { kind: 'denied', detail: 'the user lacks a permission on the table' },

  // Not absent: a ring may be created only if its table shows that it is absent.
  '42P01': { kind: 'unavailable', detail: TABLE },
  '3F000': { kind: 'unavailable', detail: TABLE },
  '3D000': { kind: 'unavailable', detail: 'the database is missing' },
  '42703': { kind: 'corrupt', detail: SHAPE },
  '42804': { kind: 'corrupt', detail: SHAPE },
  '42883': { kind: 'corrupt', detail: SHAPE },
  '42P10': { kind: 'corrupt', detail: SHAPE },
  '23502': { kind: 'corrupt', detail: SHAPE },
  '23514': { kind: 'too-large', detail: 'the document exceeds the bound of the table' },

  // Not `read-only`, which means that no server may write through this store: after the failover writes succeed.
  '25006': { kind: 'unavailable', detail: STANDBY },
  '40001': { kind: 'unavailable', detail: 'another transaction changed the row first' },
  '40P01': { kind: 'unavailable', detail: 'another transaction changed the row first' },
  '53100': { kind: 'unavailable', detail: 'the disk of the server is full' },
  '53200': { kind: 'unavailable', detail: 'the server is out of memory' },
  '53300': { kind: 'unavailable', detail: 'the server has too many connections' },
  '55P03': { kind: 'unavailable', detail: 'another transaction held the row for too long' },
  '57014': { kind: 'unavailable', detail: 'the server ended the statement (statement_timeout)' },
  '57P01': { kind: 'unavailable', detail: BUSY },
  '57P02': { kind: 'unavailable', detail: BUSY },
  '57P03': { kind: 'unavailable', detail: BUSY },
  '08000': { kind: 'unavailable', detail: BUSY },
  '08003': { kind: 'unavailable', detail: BUSY },
  '08006': { kind: 'unavailable', detail: BUSY },
} satisfies Record<string, Failure>);

/** `pg` has no code for this; the whole text is compared, and never copied. */
const NO_TLS_MESSAGE = 'The server does not support SSL connections';
const NO_TLS: Failure = Object.freeze({
  kind: 'unavailable',
  detail: 'the server does not use TLS: check sslmode and the address (ERR_POSTGRES_NO_TLS)',
  serviceCode: 'ERR_POSTGRES_NO_TLS',
});

/** What a rejection of `pg` means. */
export function classify(error: unknown): Failure {
  const found = findRow(ERROR_TABLE, [property(error, 'code')]);
  if (found !== undefined) return { ...found.row, serviceCode: found.code };
  if (property(error, 'message') === NO_TLS_MESSAGE) return NO_TLS;
  return unreachable(error, 'the server') ?? unexplained();
}
