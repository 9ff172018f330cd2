/**
 * Keeps a ring in a Kubernetes Secret or ConfigMap: {@link kubernetesRing}.
 *
 * @packageDocumentation
 */

export type { KubernetesRingClient } from './client.ts';
export type { KubernetesRingOptions } from './options.ts';
export { kubernetesRing } from './ring.ts';
