import { option } from '@sealring/core/adapter';
import type { KubernetesRingClient } from './client.ts';

/** Options of {@link kubernetesRing}. */
export interface KubernetesRingOptions {
  /** The namespace: a DNS label, 1 to 63 characters. Required. */
  readonly namespace: string;
  /** The name of the Secret or ConfigMap: a DNS subdomain, 1 to 253 characters. One per ring. Required. */
  readonly name: string;
  /**
   * The kind of object that holds the ring. Default `Secret`: the data keys in the ring are wrapped either way, but
   * Secrets have separate permissions, and a cluster may encrypt them at rest.
   */
  readonly kind?: 'Secret' | 'ConfigMap';
  /**
   * The entry of `data`: letters, digits, `-`, `_` and `.`, 1 to 253 characters. Other entries are left unchanged.
   * Default `ring`.
   */
  readonly key?: string;
  /**
   * A `KubeConfig` of `@kubernetes/client-node`. Default: the configuration from the default locations, which are
   * `KUBECONFIG`, `~/.kube/config`, and the service account of the pod.
   */
  readonly client?: KubernetesRingClient;
  /** Longest wait for one request, in seconds; 0.01 to 60. The first write takes two requests. Default 5. */
  readonly callTimeoutSeconds?: number;
}

/** A frozen copy of the validated options. */
export interface Settings {
  readonly namespace: string;
  readonly name: string;
  readonly kind: 'Secret' | 'ConfigMap';
  readonly key: string;
  readonly client: KubernetesRingClient | undefined;
  readonly timeoutMs: number;
}

export const OWNER = 'kubernetesRing';

const OPTION_NAMES = [
  'namespace',
  'name',
  'kind',
  'key',
  'client',
  'callTimeoutSeconds',
] as const satisfies readonly (keyof KubernetesRingOptions)[];

// "Object Names and IDs" of the Kubernetes documentation: RFC 1123 labels and subdomains; keys of `data`. Unlike a label, a
// part of a subdomain has no separate limit.
const NAMESPACE = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;
const PART = '[a-z0-9](?:[-a-z0-9]*[a-z0-9])?';
const NAME = new RegExp(`^${PART}(?:\\.${PART})*$`);
const KEY = /^(?!\.\.?$)[-._a-zA-Z0-9]{1,253}$/;
const MAX_LENGTH = 253;

/**
 * @throws {TypeError} for an unknown option or a wrong type.
 * @throws {RangeError} for a value outside its bounds.
 */
export function readOptions(options: KubernetesRingOptions): Settings {
  option.refuseUnknown(OWNER, options, OPTION_NAMES);
  const { kind = 'Secret', key = 'ring', client, callTimeoutSeconds = 5 } = options;
  return Object.freeze({
    namespace: dnsName('namespace', options.namespace, NAMESPACE, 'a DNS label, 1 to 63 characters'),
    name: dnsName('name', options.name, NAME, 'a DNS subdomain, 1 to 253 characters'),
    kind: option.oneOf(OWNER, 'kind', kind, ['Secret', 'ConfigMap']),
    key: dnsName('key', key, KEY, '1 to 253 letters, digits, "-", "_" and "."'),
    client: client === undefined ? undefined : checkClient(client),
    timeoutMs: option.timeoutMsOf(OWNER, callTimeoutSeconds),
  });
}

function dnsName(name: string, value: unknown, form: RegExp, wanted: string): string {
  const given = option.text(OWNER, name, value);
  if (given.length > MAX_LENGTH || !form.test(given)) throw option.outOfRange(OWNER, name, wanted, given);
  return given;
}

/** @throws {TypeError} for a value that is not a client. */
function checkClient(value: unknown): KubernetesRingClient {
  const wanted = 'a KubeConfig (an object with getCurrentCluster and applyToHTTPSOptions)';
  option.objectWith<KubernetesRingClient>(OWNER, 'client', value, 'getCurrentCluster', wanted);
  return option.objectWith<KubernetesRingClient>(OWNER, 'client', value, 'applyToHTTPSOptions', wanted);
}
