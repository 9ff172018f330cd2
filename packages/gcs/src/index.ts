export type { GcsRingClient, GcsRingRequest } from './client.ts';
export type { GcsRingOptions } from './options.ts';
export { gcsRing } from './ring.ts';
