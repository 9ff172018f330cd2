const REVISION = '2026-07-28';
let lastId = 0;

/** What a server answered: a question with a token, the tool's text, or a refusal. */
export interface RawAnswer {
  readonly requestState?: string;
  readonly text?: string;
  readonly refusal?: string;
}

/** One `tools/call` of `refund`, first round or second, over a real socket. */
export async function rawCall(url: string, user: string, requestState?: string): Promise<RawAnswer> {
  lastId += 1;
  const params = {
    name: 'refund',
    arguments: {},
    ...(requestState !== undefined && { requestState, inputResponses: { sure: { action: 'accept', content: {} } } }),
    _meta: {
      'io.modelcontextprotocol/protocolVersion': REVISION,
      'io.modelcontextprotocol/clientInfo': { name: 'raw', version: '1.0.0' },
      'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} } },
    },
  };
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${user}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': REVISION,
      'mcp-method': 'tools/call',
      'mcp-name': 'refund',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: lastId, method: 'tools/call', params }),
  });
  const message = (await response.json()) as Message;
  const { error, result } = message;
  if (error !== undefined) return { refusal: `${error.code} ${error.message}` };
  if (result?.requestState !== undefined) return { requestState: result.requestState };
  return { text: result?.content?.[0]?.text ?? JSON.stringify(message) };
}

interface Message {
  readonly error?: { readonly code: number; readonly message: string };
  readonly result?: { readonly requestState?: string; readonly content?: readonly { readonly text?: string }[] };
}
