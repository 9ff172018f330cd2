import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import type { RefundServer } from './fleet.ts';
import { readAnswer } from './raw-call.ts';
import { accessTokens } from './sign-in.ts';

/** Receives a description of each step of this client. */
export interface Narration {
  line(who: string, what: string): void;
  /** How a token is shown; its text is not printed. */
  token(token: string): string;
}

/**
 * Calls `refund` with the official client, behind a toy load balancer: every `tools/call` goes to the next server. The
 * client answers the question and repeats the call with the token by itself; this code never handles `requestState`.
 */
export async function askAndConfirm(
  servers: readonly RefundServer[],
  order: { readonly order: string; readonly cents: number },
  narration: Narration,
): Promise<string> {
  const [front] = servers;
  if (front === undefined) throw new Error('a fleet has servers');
  const client = new Client(
    { name: 'main-job', version: '1.0.0' },
    { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: { pin: '2026-07-28' } } },
  );
  client.setRequestHandler('elicitation/create', ({ params }) => {
    narration.line('Ada', `is asked: ${params.message} Yes.`);
    return { action: 'accept', content: { sure: true } };
  });
  const transport = new StreamableHTTPClientTransport(new URL(front.url()), {
    authProvider: { token: async () => accessTokens.ada },
    fetch: balance(servers, narration),
  });
  try {
    await client.connect(transport);
    const result = await client.callTool({ name: 'refund', arguments: { ...order } });
    const [content] = result.content;
    return content?.type === 'text' ? content.text : '';
  } finally {
    await client.close();
  }
}

function balance(servers: readonly RefundServer[], narration: Narration): typeof fetch {
  let calls = 0;
  return async (input, init) => {
    const isCall = new Headers(init?.headers).get('mcp-method') === 'tools/call';
    const server = servers[isCall ? calls++ % servers.length : 0];
    if (server === undefined || !isCall) return fetch(input, init);
    narration.line(
      `Ada → ${server.name}`,
      `tools/call refund${calls > servers.length - 1 ? ', again, with the token' : ''}`,
    );
    const response = await fetch(server.url(), init);
    const { error, requestState, text } = readAnswer(await response.clone().json());
    if (requestState !== undefined) {
      narration.line(`${server.name} → Ada`, `input_required, with ${narration.token(requestState)}`);
    } else {
      narration.line(`${server.name} → Ada`, text ?? `${error?.code} ${error?.message}`);
    }
    return response;
  };
}
