import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

interface Target {
  readonly name: string;
  readonly url: string;
}

/** A copied request, and what the attacker changes in it. */
interface Copy {
  readonly by: string;
  readonly requestState?: string;
}

/** One `tools/call` as it was sent, for an attacker to copy. */
export class Sent {
  readonly #headers: Headers;
  readonly #body: string;

  constructor(headers: Headers, body: string) {
    this.#headers = headers;
    this.#body = body;
  }

  async repeat(url: string, { by, requestState }: Copy): Promise<Message> {
    const headers = new Headers(this.#headers);
    headers.set('authorization', `Bearer ${by}`);
    const message = JSON.parse(this.#body);
    if (requestState !== undefined) message.params.requestState = requestState;
    const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(message) });
    return (await response.json()) as Message;
  }
}

/** The official client of a person who insures everything, behind a toy load balancer: each call goes to the next server. */
export async function signInAs(name: string, servers: readonly Target[], say: (who: string, what: string) => void) {
  const client = new Client(
    { name: 'shop', version: '1.0.0' },
    { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: { pin: '2026-07-28' } } },
  );
  client.setRequestHandler('elicitation/create', ({ params }) => {
    say(name, `is asked: ${params.message} Yes.`);
    return { action: 'accept', content: { insured: true } };
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

/** The parts of an answer that this example uses. */
export interface Message {
  readonly error?: { readonly code: number; readonly message: string };
  readonly result?: { readonly requestState?: string; readonly content?: readonly { readonly text?: string }[] };
}

export function inWords({ error, result }: Message): string {
  if (error !== undefined) return `${error.code} ${error.message}`;
  const { requestState, content } = result ?? {};
  if (requestState === undefined) return String(content?.[0]?.text);
  return `a question, and ${requestState.slice(0, 12)}… of ${requestState.length} characters`;
}
