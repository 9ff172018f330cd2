/** A JSON-RPC answer. */
export interface Answer {
  readonly result?: { readonly requestState?: string; readonly content?: readonly { readonly text: string }[] };
  readonly error?: unknown;
}

/** A tool, and its arguments in JSON, which go into the request as they are. */
export interface ToolCall {
  readonly name: string;
  readonly argumentsText: string;
}

/** One `tools/call` of the 2026-07-28 revision, by hand: what no client would send. */
export async function call(port: number, user: string, tool: ToolCall, requestState?: string): Promise<Answer> {
  const answers = { sure: { action: 'accept', content: {} } };
  const echo = requestState === undefined ? {} : { requestState, inputResponses: answers };
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1.0.0' },
    'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} } },
  };
  const params = JSON.stringify({ name: tool.name, ...echo, _meta: meta }).replace(
    '{',
    `{"arguments":${tool.argumentsText},`,
  );
  const response = await fetch(`http://127.0.0.1:${port}/mcp`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': tool.name,
      authorization: `Bearer ${user}`,
    },
    body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`,
  });
  return JSON.parse(await response.text());
}
