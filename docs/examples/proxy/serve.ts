import { createServer } from 'node:http';
import { localhostHostValidation, toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, type McpServerFactory } from '@modelcontextprotocol/server';

/** A server on a free port of this machine. */
export interface Served {
  readonly name: string;
  readonly url: string;
  /** The reasons why tokens were refused, which only the server knows. */
  readonly refusals: string[];
  close(): Promise<void>;
}

export async function serve(name: string, refusals: string[], factory: McpServerFactory): Promise<Served> {
  const handle = toNodeHandler(createMcpHandler(factory));
  const isLocal = localhostHostValidation();
  const http = createServer((request, response) => {
    if (!isLocal(request, response)) return;
    const { method = 'GET', url = '/' } = request;
    // A toy: the bearer token is the name. Your verifier takes `sub` and `iss` from a signed access token.
    const sub = request.headers.authorization?.replace('Bearer ', '');
    const auth = { token: 'verified', clientId: 'shop', scopes: [], extra: { iss: 'https://login.example', sub } };
    void handle(Object.assign(request, { method, url, auth }), response);
  });
  await new Promise<void>((listening) => http.listen(0, '127.0.0.1', listening));
  const address = http.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  return {
    name,
    url: `http://127.0.0.1:${port}/mcp`,
    refusals,
    async close() {
      http.closeAllConnections();
      http.close();
    },
  };
}
