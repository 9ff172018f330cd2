import { createServer, type Server } from 'node:http';
import { localhostHostValidation, toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { createKmsCodec, type KeyWrapper, type KmsCodec, type RingStore } from '@sealring/core';
import { createProtectedMcpServer, RequestStateSecurity } from '@sealring/mcp';
import { registerWizard } from './wizard.ts';

interface Shared {
  readonly keyWrapper: KeyWrapper;
  readonly ring: RingStore;
  readonly bookings: Set<string>;
}

/** One server of the fleet, on its own port, with its own codec over the shared ring. */
export class WizardServer {
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

  static async start(name: string, { keyWrapper, ring, bookings }: Shared): Promise<WizardServer> {
    const codec = await createKmsCodec({ keyWrapper, ring, ringName: 'wizard' });
    const refusals: string[] = [];
    // Once per process; the factory below runs once per request. Every page gives its reader ten minutes.
    const security = new RequestStateSecurity({
      codec,
      ttlSeconds: 600,
      requireSubject: true,
      onReject: ({ reason }) => refusals.push(reason),
    });
    const serve = toNodeHandler(
      createMcpHandler(() => {
        const server = createProtectedMcpServer({
          McpServer,
          serverInfo: { name: 'wizard', version: '1.0.0' },
          security,
        });
        registerWizard(server, bookings);
        return server;
      }),
    );
    const isLocal = localhostHostValidation();
    const http = createServer((request, response) => {
      if (!isLocal(request, response)) return;
      const { method = 'GET', url = '/' } = request;
      // A toy: the bearer token is the name. Your verifier takes `sub` and `iss` from a signed access token.
      const sub = request.headers.authorization?.replace('Bearer ', '');
      const auth = {
        token: 'verified',
        clientId: 'travel-app',
        scopes: [],
        extra: { iss: 'https://login.example', sub },
      };
      void serve(Object.assign(request, { method, url, auth }), response);
    });
    await new Promise<void>((listening) => http.listen(0, '127.0.0.1', listening));
    const address = http.address();
    const port = typeof address === 'object' ? address?.port : undefined;
    return new WizardServer(name, `http://127.0.0.1:${port}/mcp`, refusals, http, codec);
  }

  async close(): Promise<void> {
    this.#http.closeAllConnections();
    this.#http.close();
    await this.#codec.close();
  }
}
