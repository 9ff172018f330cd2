/** A JSON-RPC answer to a `tools/call`. */
export interface ToolAnswer {
  readonly result?: { readonly requestState?: string; readonly content?: readonly { readonly text: string }[] };
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

/** A tool, and its arguments as JSON, which the request contains unchanged. */
export interface ToolCall {
  readonly name: string;
  readonly argumentsText?: string;
  /** The bearer token. Default: none. */
  readonly user?: string;
  /** The state that a client echoes, with the answer `accept` to the question `sure`. */
  readonly requestState?: string | undefined;
}

let lastId = 0;

/** One hand-written `tools/call` of the 2026-07-28 revision, as no client would send it. */
export async function callTool(
  url: string,
  { name, argumentsText = '{}', user, requestState }: ToolCall,
): Promise<ToolAnswer> {
  lastId += 1;
  const answers = { sure: { action: 'accept', content: {} } };
  const echo = requestState === undefined ? {} : { requestState, inputResponses: answers };
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1.0.0' },
    'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} } },
  };
  const params = JSON.stringify({ name, ...echo, _meta: meta }).replace('{', `{"arguments":${argumentsText},`);
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': name,
      ...(user === undefined ? {} : { authorization: `Bearer ${user}` }),
    },
    body: `{"jsonrpc":"2.0","id":${lastId},"method":"tools/call","params":${params}}`,
  });
  return JSON.parse(await response.text());
}
