/** Classifies a vendor's error without its text: by a table of codes and a fixed list of connection failures. */

export { type AwsErrorFacts, type AwsErrorRows, awsErrorFacts, awsErrorRows } from './aws-errors.ts';
export { type ConnectionFailure, connectionFailure, unreachable } from './connection-failures.ts';
export { errorTable, storeFailure } from './error-table.ts';
export { findRow, kindOfStatus, property, requestIdOf, sameRow, statusOf, unexplained } from './foreign-errors.ts';
