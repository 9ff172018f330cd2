import { type StoreFailure, vendorError } from '@sealring/core/adapter';

/** The meaning of a failed call; `serviceCode` is the SQLSTATE, if it is a row of {@link ERROR_TABLE}. */
export type Failure = StoreFailure;

/**
 * Maps a SQLSTATE to a kind (PostgreSQL documentation, appendix A, "PostgreSQL Error Codes"). Any other code is `unavailable`.
 */
export const ERROR_TABLE: Readonly<Record<string, Failure>> = vendorError.errorTable<Failure['kind']>([
  ['denied', 'the server refused the login: check the user and the password', '28000 28P01'],
  ['denied', 'the user lacks a permission on the table', '42501'],

  // A missing table does not mean an absent ring: a ring may be created only if its table shows that it is absent.
  ['unavailable', 'the table is missing: run the migration', '42P01 3F000'],
  ['unavailable', 'the database is missing', '3D000'],
  ['corrupt', 'the table differs from the one that the migration creates', '42703 42804 42883 42P10 23502'],
  ['too-large', 'the document exceeds the size limit of the table', '23514'],

  // This is not `read-only`, which means that no server may write through this store: after the failover, writes
  // succeed.
  ['unavailable', 'the server is read-only: a failover is under way, or the address is wrong', '25006'],
  ['unavailable', 'another transaction changed the row first', '40001 40P01'],
  ['unavailable', 'the disk of the server is full', '53100'],
  ['unavailable', 'the server is out of memory', '53200'],
  ['unavailable', 'the server has too many connections', '53300'],
  ['unavailable', 'another transaction held the row for too long', '55P03'],
  ['unavailable', 'the server ended the statement (statement_timeout)', '57014'],
  ['unavailable', 'the server cannot serve requests at the moment', '57P01 57P02 57P03 08000 08003 08006'],
]);

/** `pg` has no code for this failure, so the whole text is compared; it is never copied. */
const NO_TLS_MESSAGE = 'The server does not support SSL connections';
const NO_TLS = vendorError.errorTable<'unavailable'>([
  ['unavailable', 'the server does not use TLS: check sslmode and the address', 'ERR_POSTGRES_NO_TLS'],
]);

/** Classifies an error that `pg` rejected with. */
export function classify(error: unknown): Failure {
  const code =
    vendorError.property(error, 'message') === NO_TLS_MESSAGE
      ? 'ERR_POSTGRES_NO_TLS'
      : vendorError.property(error, 'code');
  return vendorError.storeFailure({ service: 'the server', table: { ...ERROR_TABLE, ...NO_TLS } }, error, undefined, [
    code,
  ]);
}
