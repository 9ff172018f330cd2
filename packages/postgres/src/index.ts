/**
 * Keeps a ring in PostgreSQL, with push: {@link postgresRing}; and ids of tokens that may be redeemed once:
 * {@link postgresSingleUse}.
 *
 * @packageDocumentation
 */

export type { PostgresClient, PostgresListener, PostgresPool, PostgresQuery, PostgresResult } from './client.ts';
export { migrate, type PostgresTables, schemaSql } from './migration.ts';
export type { PostgresRingOptions, PostgresSingleUseOptions, PostgresSource } from './options.ts';
export { postgresRing } from './ring.ts';
export { postgresSingleUse } from './single-use.ts';
