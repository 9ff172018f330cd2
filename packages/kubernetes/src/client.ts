import type { RequestOptions } from 'node:https';

/**
 * The part of `KubeConfig` (`@kubernetes/client-node`) that is used: which cluster to call, and what authenticates the
 * calls (service account, client certificate, exec plugin, OIDC). A fake fits its types too.
 *
 * Not the generated API classes: they read an answer of any length, and turn what the API server says into an error whose
 * message contains the whole response.
 */
export interface KubernetesRingClient {
  /** The cluster of the current context; null where there is none. */
  getCurrentCluster(): { readonly server: string } | null;
  /** Adds agent, certificates and credentials to the options of one request. May read a token or run a program. */
  applyToHTTPSOptions(options: RequestOptions): Promise<void>;
}
