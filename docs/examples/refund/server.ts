import { createServer, type Server } from 'node:http';
import { localhostHostValidation, toNodeHandler } from '@modelcontextprotocol/node';
import { type AuthInfo, createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { createKmsCodec, type KeyWrapper, type KmsCodec, type RingStore } from '@sealring/core';
import { createProtectedMcpServer, RequestStateSecurity, type SingleUseStore } from '@sealring/mcp';
import { registerRefund } from './refund.ts';

interface Shared {
  readonly keyWrapper: KeyWrapper;
  readonly ring: RingStore;
  readonly singleUse: SingleUseStore;
}

/** One server of the fleet, on its own port, with its own codec over the shared ring. */
export class RefundServer {
  readonly name: string;
  readonly url: string;
  /** The reasons why tokens were refused, which only the server knows. */
  readonly refusals: string[];
  readonly #http: Server;
  readonly #codec: KmsCodec;

  private constructor(name: string, url: string, refusals: string[], http: Server, codec: KmsCodec) {
    this.name = name;
    this.url = url;
    this.refusals = refusals;
    this.#http = http;
    this.#codec = codec;
  }

  static async start(name: string, { keyWrapper, ring, singleUse }: Shared): Promise<RefundServer> {
    const codec = await createKmsCodec({ keyWrapper, ring, ringName: 'refund-desk' });
    const refusals: string[] = [];
    // Once per process; the factory below runs once per request.
    const security = new RequestStateSecurity({
      codec,
      singleUse,
      requireSubject: true,
      onReject: ({ reason }) => refusals.push(reason),
    });
    const serve = toNodeHandler(
      createMcpHandler(() => {
        const server = createProtectedMcpServer({
          McpServer,
          serverInfo: { name: 'refund-desk', version: '1.0.0' },
          security,
        });
        registerRefund(server, name);
        return server;
      }),
    );
    const isLocal = localhostHostValidation();
    const http = createServer((request, response) => {
      if (!isLocal(request, response)) return;
      const { method = 'GET', url = '/' } = request;
      void serve(Object.assign(request, { method, url, auth: signIn(request.headers.authorization) }), response);
    });
    await new Promise<void>((listening) => http.listen(0, '127.0.0.1', listening));
    const address = http.address();
    const port = typeof address === 'object' ? address?.port : undefined;
    return new RefundServer(name, `http://127.0.0.1:${port}/mcp`, refusals, http, codec);
  }

  async close(): Promise<void> {
    this.#http.closeAllConnections();
    this.#http.close();
    await this.#codec.close();
  }
}

/** A toy: the bearer token is the name. Your verifier takes `sub` and `iss` from a signed access token. */
function signIn(authorization: string | undefined): AuthInfo {
  const name = authorization?.replace('Bearer ', '') ?? 'nobody';
  const extra = name === 'nobody' ? {} : { extra: { iss: 'https://login.example', sub: name } };
  return { token: 'verified', clientId: 'shop-app', scopes: [], ...extra };
}
