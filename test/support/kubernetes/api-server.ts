import { fileURLToPath } from 'node:url';
import { KubeConfig } from '@kubernetes/client-node';
import { startLocalServer } from '../local-server.ts';
import type { TestServer } from '../redis.ts';

/** The namespace of the rings in the tests. */
export const NAMESPACE = 'sealring';

/** An API server, and direct access to it without the store under test. */
export interface ApiServer {
  readonly server: TestServer;
  /** The configuration for a bearer token, by default an administrator's; with another port for a proxy. */
  config(options?: { readonly token?: string; readonly port?: number | undefined }): KubeConfig;
  /** One request as an administrator: the answer's status and body. */
  call(method: string, path: string, body?: object): Promise<{ readonly status: number; readonly body: unknown }>;
  /** Creates a bearer token that allows, in {@link NAMESPACE}, each `verb resource/name`; `create` has no name. */
  token(permissions: readonly string[]): Promise<string>;
  /** Forgets all changes so far: older watches cannot be resumed. */
  compact(): Promise<void>;
}

/** The fake can also cause what a real server does only after minutes. */
export interface FakeApiServer extends ApiServer {
  /** Ends every watch as at its `timeoutSeconds`. */
  endWatches(): Promise<void>;
  /** Sends the bookmark of every minute now. */
  bookmarks(): Promise<void>;
}

const FAKE = fileURLToPath(new URL('fake-api-server.ts', import.meta.url));
let tokens = 0;

/** Starts the fake in its own process, so that a test can freeze and kill it. It loses everything when it dies. */
export async function startFakeApiServer(): Promise<FakeApiServer> {
  const server = await startLocalServer({
    name: 'fake-api-server',
    command: process.execPath,
    args: (port) => [FAKE, `${port}`],
    readySeconds: 30,
    ready: async (address) => (await fetch(`${address}/readyz`)).ok,
  });
  const post = (path: string, body: object = {}): Promise<Response> =>
    fetch(`${server.address}${path}`, { method: 'POST', body: JSON.stringify(body) });
  return {
    server,
    config: ({ token = 'admin', port = server.port } = {}) =>
      kubeConfig({ server: `http://127.0.0.1:${port}`, skipTLSVerify: true }, token),
    async call(method, path, body) {
      const headers = {
        authorization: 'Bearer admin',
        'content-type': method === 'PATCH' ? 'application/merge-patch+json' : 'application/json',
      };
      const init = body === undefined ? {} : { body: JSON.stringify(body) };
      const response = await fetch(`${server.address}${path}`, { method, headers, ...init });
      return { status: response.status, body: await response.json() };
    },
    async token(permissions) {
      const token = `token-${++tokens}`;
      await post('/_fake/permissions', { [token]: permissions });
      return token;
    },
    async compact() {
      await post('/_fake/compact');
    },
    async bookmarks() {
      await post('/_fake/bookmarks');
    },
    async endWatches() {
      await post('/_fake/end-watches');
    },
  };
}

/** A configuration with one cluster and one user. */
export function kubeConfig(
  cluster: { readonly server: string; readonly skipTLSVerify?: boolean; readonly caData?: string },
  token: string,
): KubeConfig {
  const config = new KubeConfig();
  config.loadFromOptions({
    clusters: [{ name: 'test', ...cluster }],
    users: [{ name: 'test', token }],
    contexts: [{ name: 'test', cluster: 'test', user: 'test' }],
    currentContext: 'test',
  });
  return config;
}
