/**
 * Keeps a ring in an object of Google Cloud Storage: {@link gcsRing}.
 *
 * @packageDocumentation
 */

export type { GcsRingClient, GcsRingRequest } from './client.ts';
export type { GcsRingOptions } from './options.ts';
export { gcsRing } from './ring.ts';
