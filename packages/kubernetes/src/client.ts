import type { RequestOptions } from 'node:https';
import type { Outcome } from '@sealring/core/adapter';
import type { Failure } from './error-table.ts';

/**
 * The part of `KubeConfig` (`@kubernetes/client-node`) that is used: which cluster to call, and what authenticates the
 * calls (service account, client certificate, exec plugin, OIDC). A fake that matches these types also works.
 *
 * The generated API classes are not used: they read an answer of any length, and turn a refusal by the API server into
 * an error whose message contains the whole response.
 */
export interface KubernetesRingClient {
  /** The cluster of the current context; null if there is none. */
  getCurrentCluster(): { readonly server: string } | null;
  /** Adds the agent, certificates and credentials to one request's options. This may read a token or run a program. */
  applyToHTTPSOptions(options: RequestOptions): Promise<void>;
}

/** Returns the client of a store, or the reason why there is none. */
export type ClientSource = () => Promise<Outcome<KubernetesRingClient, Failure>>;

/**
 * The caller's client or, if there is none, a client with the default configuration. The latter is created for the
 * first request, because the vendor's package takes a while to load, and does not load on every version of Node.js that
 * Sealring supports.
 */
export function clientSource(given: KubernetesRingClient | undefined): ClientSource {
  let answer = given;
  return async () => {
    try {
      answer ??= await defaultClient();
      return { answer };
    } catch {
      const detail =
        'the client could not be created: check the kubeconfig, and whether this version of Node.js can load @kubernetes/client-node';
      return { failure: { kind: 'unavailable', detail } };
    }
  };
}

async function defaultClient(): Promise<KubernetesRingClient> {
  const { KubeConfig } = await import('@kubernetes/client-node');
  const config = new KubeConfig();
  config.loadFromDefault();
  return config;
}
