import {
  acceptedContent,
  fromJsonSchema,
  type InputRequiredResult,
  inputRequired,
  type McpServer,
} from '@modelcontextprotocol/server';

interface Order {
  readonly order: string;
  readonly cents: number;
}

const inputSchema = fromJsonSchema<Order>({
  type: 'object',
  properties: { order: { type: 'string' }, cents: { type: 'integer', minimum: 1 } },
  required: ['order', 'cents'],
});

/** A tool that asks before it pays. Its state is plaintext on both sides. */
export function registerRefund(server: McpServer, name: string): void {
  server.registerTool('refund', { description: 'Asks, then refunds', inputSchema }, ({ order, cents }, ctx) => {
    const state = ctx.mcpReq.requestState<string>();
    if (state === undefined) return ask(order, cents);
    // A server of this fleet wrote it, for this call and this person, and it has not been returned before.
    const asked = JSON.parse(state) as Order;
    const answer = acceptedContent<{ sure: boolean }>(ctx.mcpReq.inputResponses, 'confirm');
    const text = answer?.sure === true ? `${euros(asked.cents)} refunded for order ${asked.order}` : 'nothing refunded';
    return { content: [{ type: 'text', text: `${text} by ${name}` }] };
  });
}

function ask(order: string, cents: number): InputRequiredResult {
  const confirm = inputRequired.elicit({
    message: `Refund ${euros(cents)} for order ${order}?`,
    requestedSchema: { type: 'object', properties: { sure: { type: 'boolean' } }, required: ['sure'] },
  });
  return inputRequired({ inputRequests: { confirm }, requestState: JSON.stringify({ order, cents }) });
}

function euros(cents: number): string {
  return `€${(cents / 100).toFixed(2)}`;
}
