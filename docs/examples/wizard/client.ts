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

  withState(requestState: string): Sent {
    return this.#withParams({ requestState });
  }

  answering(value: unknown): Sent {
    return this.#withParams({ inputResponses: { answer: { action: 'accept', content: { value } } } });
  }

  #withParams(more: object): Sent {
    const message = JSON.parse(this.body);
    return new Sent(this.headers, JSON.stringify({ ...message, params: { ...message.params, ...more } }));
  }
}

/** Sends a copied request, and describes the answer in a few words. */
export async function repeat(url: string, { headers, body }: Sent): Promise<string> {
  const response = await fetch(url, { method: 'POST', headers, body });
  return inWords((await response.json()) as Message);
}

/** The official client of a person who gives these answers, behind a toy load balancer. */
export async function signInAs(
  name: string,
  servers: readonly Target[],
  answers: readonly (string | number | boolean)[],
  say: (who: string, what: string) => void,
) {
  const client = new Client(
    { name: 'travel', version: '1.0.0' },
    { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: { pin: '2026-07-28' } } },
  );
  const left = [...answers];
  client.setRequestHandler('elicitation/create', () => {
    const value = left.shift();
    say(name, value === 'back' ? 'goes back' : `answers ${JSON.stringify(value)}`);
    if (value === undefined) return { action: 'cancel' };
    return value === 'back' ? { action: 'decline' } : { action: 'accept', content: { value } };
  });
  const sent: Sent[] = [];
  const tokenLengths: number[] = [];
  const balance: typeof fetch = async (input, init) => {
    const headers = new Headers(init?.headers);
    const server = servers[sent.length % servers.length];
    const body = init?.body;
    const isCall = headers.get('mcp-method') === 'tools/call';
    if (server === undefined || !isCall || typeof body !== 'string') return fetch(input, init);
    sent.push(new Sent(headers, body));
    const response = await fetch(server.url, init);
    const message = (await response.clone().json()) as Message;
    if (message.result?.requestState !== undefined) tokenLengths.push(message.result.requestState.length);
    say(`${server.name} → ${name}`, inWords(message));
    return response;
  };
  const url = new URL(servers[0]?.url ?? '');
  await client.connect(
    new StreamableHTTPClientTransport(url, { authProvider: { token: async () => name }, fetch: balance }),
  );
  return {
    sent,
    tokenLengths,
    async callTool(tool: string, args: Record<string, unknown>): Promise<string> {
      const { content } = await client.callTool({ name: tool, arguments: args });
      return content[0]?.type === 'text' ? content[0].text : '';
    },
    close: () => client.close(),
  };
}

interface Message {
  readonly error?: { readonly code: number; readonly message: string };
  readonly result?: {
    readonly requestState?: string;
    readonly inputRequests?: { readonly answer?: { readonly params?: { readonly message?: string } } };
    readonly content?: readonly { readonly text?: string }[];
  };
}

function inWords({ error, result }: Message): string {
  if (error !== undefined) return `${error.code} ${error.message}`;
  const { requestState, inputRequests, content } = result ?? {};
  if (requestState === undefined) return String(content?.[0]?.text);
  return `${inputRequests?.answer?.params?.message} (a token of ${requestState.length} characters)`;
}
