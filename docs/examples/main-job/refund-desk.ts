import {
  acceptedContent,
  type CallToolResult,
  fromJsonSchema,
  type InputRequiredResult,
  inputRequired,
  McpServer,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { createProtectedMcpServer, type RequestStateSecurity } from '@sealring/mcp';

interface Order {
  readonly order: string;
  readonly cents: number;
}

/**
 * The state that the server needs between the two rounds. The server does not store it: the client carries it, sealed.
 */
interface Asked extends Order {
  readonly askedBy: string;
}

const inputSchema = fromJsonSchema<Order>({
  type: 'object',
  properties: { order: { type: 'string' }, cents: { type: 'integer', minimum: 1 } },
  required: ['order', 'cents'],
});

/**
 * An MCP server with two tools that ask before they act. The SDK creates one for each request; `security` holds what
 * lasts longer.
 */
export function refundDesk(name: string, security: RequestStateSecurity): McpServer {
  const server = createProtectedMcpServer({
    McpServer,
    serverInfo: { name: 'refund-desk', version: '1.0.0' },
    security,
  });
  for (const tool of ['refund', 'credit']) {
    server.registerTool(tool, { description: `Asks, then pays a ${tool}`, inputSchema }, (order, ctx) =>
      payAfterAsking(name, tool, order, ctx),
    );
  }
  return server;
}

/** This function receives and returns plaintext: it does not see that the state is sealed in between. */
function payAfterAsking(
  name: string,
  tool: string,
  { order, cents }: Order,
  ctx: ServerContext,
): CallToolResult | InputRequiredResult {
  const state = ctx.mcpReq.requestState<string>();
  if (state === undefined) {
    const asked: Asked = { order, cents, askedBy: name };
    return inputRequired({
      inputRequests: { confirm: confirmation(`Pay a ${tool} of ${euros(cents)} for order ${order}?`) },
      requestState: JSON.stringify(asked),
    });
  }
  // This is safe to trust: a server of this fleet wrote it, for this tool, these arguments and this person.
  const asked = JSON.parse(state) as Asked;
  const answer = acceptedContent<{ sure: boolean }>(ctx.mcpReq.inputResponses, 'confirm');
  const outcome = answer?.sure === true ? `${euros(asked.cents)} paid` : 'nothing paid';
  return say(`${outcome} for order ${asked.order}, asked by ${asked.askedBy}, done by ${name}`);
}

function confirmation(message: string) {
  return {
    method: 'elicitation/create' as const,
    params: {
      mode: 'form' as const,
      message,
      requestedSchema: {
        type: 'object' as const,
        properties: { sure: { type: 'boolean' as const } },
        required: ['sure'],
      },
    },
  };
}

function say(text: string): CallToolResult {
  return { content: [{ type: 'text', text }] };
}

function euros(cents: number): string {
  return `€${(cents / 100).toFixed(2)}`;
}
