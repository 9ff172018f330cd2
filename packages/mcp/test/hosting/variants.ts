import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { StreamableHTTPClientTransport, type Transport } from '@modelcontextprotocol/client';
import { getDefaultEnvironment, StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { type DeskSettings, deskFactory, type Told } from './desk.ts';
import { onExpress } from './express.ts';
import { onFastify } from './fastify.ts';
import { onHono } from './hono.ts';
import { type HttpVariant, type Mount, verifier } from './http-variant.ts';
import { nodeHttp } from './node-http.ts';

// The workspace's own Node strips types, whatever version the tests themselves run on.
const NODE = fileURLToPath(new URL('../../../../node_modules/.bin/node', import.meta.url));
const STDIO_SERVER = fileURLToPath(new URL('stdio-server.ts', import.meta.url));

/** A protocol era, and the address of its clients. */
export interface Era {
  readonly name: string;
  readonly revision: '2026-07-28' | '2025-11-25';
  readonly mount: Mount;
  /** Whether a client is asked: the server of a single HTTP request cannot ask in the 2025 era. */
  readonly asks: boolean;
}

export const MODERN: Era = { name: '2026-07-28', revision: '2026-07-28', mount: '/mcp', asks: true };
const SESSIONS: Era = { name: '2025-11-25, sessions', revision: '2025-11-25', mount: '/sessions', asks: true };
const STATELESS: Era = { name: '2025-11-25, stateless', revision: '2025-11-25', mount: '/mcp', asks: false };
const CONNECTION: Era = { ...SESSIONS, name: '2025-11-25' };

/** The way to a desk: a transport that is not connected yet, for one user. */
export interface Desk extends AsyncDisposable {
  readonly told: readonly Told[];
  /** Its address, if it has one. */
  readonly origin?: string;
  transport(era: Era, user: string): Transport;
}

export interface Variant {
  readonly name: string;
  readonly eras: readonly Era[];
  open(settings: DeskSettings): Promise<Desk>;
}

/** The variants with an address. */
export const HTTP_VARIANTS: Readonly<Record<string, HttpVariant>> = {
  'node:http': nodeHttp,
  Express: onExpress,
  Fastify: onFastify,
  Hono: onHono,
};

/** A client's transport to one or several desks: every `tools/call` goes to the next. */
export function httpTransport(origins: readonly string[], mount: Mount, user: string): Transport {
  const [first = ''] = origins;
  let calls = 0;
  return new StreamableHTTPClientTransport(new URL(mount, first), {
    authProvider: { token: async () => user },
    fetch: async (input, init) => {
      const isCall = new Headers(init?.headers).get('mcp-method') === 'tools/call';
      const origin = isCall ? origins[calls++ % origins.length] : first;
      return await fetch(new URL(new URL(String(input)).pathname, origin), init);
    },
  });
}

function overHttp(name: string, host: HttpVariant): Variant {
  return {
    name,
    eras: [MODERN, SESSIONS, STATELESS],
    async open(settings) {
      const told: Told[] = [];
      const hosted = await host(
        deskFactory(settings, (event) => told.push(event)),
        { verifier },
      );
      return {
        told,
        origin: hosted.origin,
        transport: ({ mount }, user) => httpTransport([hosted.origin], mount, user),
        [Symbol.asyncDispose]: () => hosted[Symbol.asyncDispose](),
      };
    },
  };
}

/** Every connection has its own process, which works for one user. */
const overStdio: Variant = {
  name: 'stdio',
  eras: [MODERN, CONNECTION],
  async open(settings) {
    const told: Told[] = [];
    return {
      told,
      transport(_era, user) {
        const desk: DeskSettings = { ...settings, worksFor: user };
        const transport = new StdioClientTransport({
          command: NODE,
          args: [STDIO_SERVER],
          env: { ...getDefaultEnvironment(), DESK: JSON.stringify(desk) },
          stderr: 'pipe',
        });
        const { stderr } = transport;
        if (!(stderr instanceof Readable)) throw new Error('standard error is not piped');
        createInterface({ input: stderr }).on('line', (line) => told.push(JSON.parse(line)));
        return transport;
      },
      // A process ends with its connection.
      async [Symbol.asyncDispose]() {},
    };
  },
};

export const VARIANTS: readonly Variant[] = [
  ...Object.entries(HTTP_VARIANTS).map(([name, host]) => overHttp(name, host)),
  overStdio,
];
