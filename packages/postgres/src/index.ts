/**
 * Keeps a ring in PostgreSQL, with push: {@link postgresRing}. Also keeps the ids of redeemed tokens, so that each
 * token can be redeemed only once: {@link postgresSingleUse}.
 *
 * @packageDocumentation
 */

export type { PostgresClient, PostgresListener, PostgresPool, PostgresQuery, PostgresResult } from './client.ts';
export { migrate, type PostgresTables, schemaSql } from './migration.ts';
export type { PostgresRingOptions, PostgresSingleUseOptions, PostgresSource } from './options.ts';
export { postgresRing } from './ring.ts';
export { postgresSingleUse } from './single-use.ts';
