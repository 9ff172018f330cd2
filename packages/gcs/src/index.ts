/**
 * Keeps a ring in a Google Cloud Storage object: {@link gcsRing}.
 *
 * @packageDocumentation
 */

export type { GcsRingClient, GcsRingRequest } from './client.ts';
export type { GcsRingOptions } from './options.ts';
export { gcsRing } from './ring.ts';
