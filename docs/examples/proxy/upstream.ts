import {
  type CallToolResult,
  Client,
  type InputRequiredResult,
  StreamableHTTPClientTransport,
  specTypeSchemas,
  withInputRequired,
} from '@modelcontextprotocol/client';

interface Call {
  readonly name: string;
  readonly arguments: Record<string, unknown>;
  readonly requestState: string | undefined;
  readonly inputResponses: Record<string, unknown> | undefined;
}

/**
 * One round with a server behind the proxy, on behalf of its user. Questions are passed on, not answered. A real proxy
 * exchanges the user's access token for one of the upstream's, and keeps its connections.
 */
export async function callUpstream(
  url: string,
  user: string,
  { name, arguments: args, requestState, inputResponses }: Call,
): Promise<CallToolResult | InputRequiredResult> {
  const client = new Client(
    { name: 'shipping-proxy', version: '1.0.0' },
    { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: { pin: '2026-07-28' } } },
  );
  const authProvider = { token: async () => user };
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { authProvider }));
  try {
    const more = { ...(requestState !== undefined && { requestState }), ...(inputResponses && { inputResponses }) };
    return await client.request(
      { method: 'tools/call', params: { name, arguments: args, ...more } },
      withInputRequired(specTypeSchemas.CallToolResult),
      { allowInputRequired: true },
    );
  } finally {
    await client.close();
  }
}
