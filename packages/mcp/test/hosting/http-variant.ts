import type { AuthInfo, McpServerFactory, OAuthTokenVerifier } from '@modelcontextprotocol/server';
import { CLIENT_ID, ISSUER } from './desk.ts';

/**
 * The ways to serve one factory, each at its own path.
 *
 * - `/mcp`: `createMcpHandler` alone: 2026-07-28, and every request of a 2025-era client by itself.
 * - `/sessions`: `isLegacyRequest` in front of it: sessions for 2025-era clients.
 * - `/transport`: a Streamable HTTP transport for every request, with nothing in front of it.
 * - `/session-transport`: one for every session, with nothing in front of it.
 */
export type Mount = '/mcp' | '/sessions' | '/transport' | '/session-transport';
export const MOUNTS: readonly Mount[] = ['/mcp', '/sessions', '/transport', '/session-transport'];

/**
 * The parser of the body: the framework, which passes on its result; none before the SDK; or one in front whose result
 * is not passed on, which is a mistake.
 */
export type BodyParser = 'before' | 'none' | 'not handed on';

interface HttpOptions {
  /** Requires an access token, in the way of the variant. Default: no login. */
  readonly verifier?: OAuthTokenVerifier;
  /** Default: `before`, as in the variant's own documentation. */
  readonly bodyParser?: BodyParser;
}

export interface HttpHost extends AsyncDisposable {
  /** `http://127.0.0.1:PORT`. */
  readonly origin: string;
}

/** One way to put a server on a socket of the loopback interface, on a free port. */
export type HttpVariant = (factory: McpServerFactory, options?: HttpOptions) => Promise<HttpHost>;

/** Uses the access token as the name of its user. Sets what a token verifier must set. */
export const verifier: OAuthTokenVerifier = {
  async verifyAccessToken(token): Promise<AuthInfo> {
    const expiresAt = Math.floor(Date.now() / 1000) + 600;
    return { token, clientId: CLIENT_ID, scopes: [], expiresAt, extra: { iss: ISSUER, sub: token } };
  },
};

/** The path of a mount, or undefined. */
export function mountOf(url: string): Mount | undefined {
  const { pathname } = new URL(url, 'http://127.0.0.1');
  return MOUNTS.find((mount) => mount === pathname);
}
