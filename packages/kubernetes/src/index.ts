/**
 * Keeps a ring in a Secret or ConfigMap of Kubernetes: {@link kubernetesRing}.
 *
 * @packageDocumentation
 */

export type { KubernetesRingClient } from './client.ts';
export type { KubernetesRingOptions } from './options.ts';
export { kubernetesRing } from './ring.ts';
