import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

interface Target {
  readonly name: string;
  readonly url: string;
}

/** One `tools/call` as it was sent, for an attacker to copy. */
export class Sent {
  readonly headers: Headers;
  readonly body: string;

  constructor(headers: Headers, body: string) {
    this.headers = headers;
    this.body = body;
  }

  by(name: string): Sent {
    const headers = new Headers(this.headers);
    headers.set('authorization', `Bearer ${name}`);
    return new Sent(headers, this.body);
  }

  withState(change: (token: string) => string): Sent {
    const message = JSON.parse(this.body);
    message.params.requestState = change(message.params.requestState);
    return new Sent(this.headers, JSON.stringify(message));
  }

  withArguments(args: object): Sent {
    const message = JSON.parse(this.body);
    message.params.arguments = args;
    return new Sent(this.headers, JSON.stringify(message));
  }
}

/** Sends a copied request, and describes the answer in a few words. */
export async function repeat(url: string, { headers, body }: Sent): Promise<string> {
  const response = await fetch(url, { method: 'POST', headers, body });
  return inWords((await response.json()) as Message);
}

/** The official client of a person who says yes, behind a toy load balancer: each call goes to the next server. */
export async function signInAs(name: string, servers: readonly Target[], say: (who: string, what: string) => void) {
  const client = new Client(
    { name: 'shop', version: '1.0.0' },
    { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: { pin: '2026-07-28' } } },
  );
  client.setRequestHandler('elicitation/create', ({ params }) => {
    say(name, `is asked: ${params.message} Yes.`);
    return { action: 'accept', content: { sure: true } };
  });
  const sent: Sent[] = [];
  const balance: typeof fetch = async (input, init) => {
    const headers = new Headers(init?.headers);
    const server = servers[sent.length % servers.length];
    const body = init?.body;
    const isCall = headers.get('mcp-method') === 'tools/call';
    if (server === undefined || !isCall || typeof body !== 'string') return fetch(input, init);
    sent.push(new Sent(headers, body));
    const response = await fetch(server.url, init);
    say(`${name} → ${server.name}`, inWords((await response.clone().json()) as Message));
    return response;
  };
  const url = new URL(servers[0]?.url ?? '');
  await client.connect(
    new StreamableHTTPClientTransport(url, { authProvider: { token: async () => name }, fetch: balance }),
  );
  return {
    sent,
    async callTool(tool: string, args: Record<string, unknown>): Promise<string> {
      const { content } = await client.callTool({ name: tool, arguments: args });
      return content[0]?.type === 'text' ? content[0].text : '';
    },
    close: () => client.close(),
  };
}

interface Message {
  readonly error?: { readonly code: number; readonly message: string };
  readonly result?: { readonly requestState?: string; readonly content?: readonly { readonly text?: string }[] };
}

function inWords({ error, result }: Message): string {
  if (error !== undefined) return `${error.code} ${error.message}`;
  const { requestState, content } = result ?? {};
  return requestState === undefined ? String(content?.[0]?.text) : `a question, and ${requestState.slice(0, 12)}…`;
}
