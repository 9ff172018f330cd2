import { randomBytes } from 'node:crypto';
import { acceptedContent, fromJsonSchema, inputRequired, McpServer } from '@modelcontextprotocol/server';
import { createProtectedMcpServer, RequestStateSecurity } from '@sealring/mcp';
import { type Served, serve } from './serve.ts';

export const inputSchema = fromJsonSchema<{ parcel: string }>({
  type: 'object',
  properties: { parcel: { type: 'string' } },
  required: ['parcel'],
});

/** A server of another company. It seals its state with its own key. */
export function startCarrier(name: string): Promise<Served> {
  const refusals: string[] = [];
  const security = new RequestStateSecurity({
    keys: [randomBytes(32)],
    requireSubject: true,
    onReject: ({ reason }) => refusals.push(reason),
  });
  return serve(name, refusals, () => {
    const server = createProtectedMcpServer({ McpServer, serverInfo: { name, version: '1.0.0' }, security });
    server.registerTool('ship', { description: 'Ships a parcel', inputSchema }, ({ parcel }, ctx) => {
      const price = ctx.mcpReq.requestState<string>();
      if (price === undefined) {
        const insure = inputRequired.elicit({
          message: `${name} ships ${parcel} for €7. Insure it?`,
          requestedSchema: { type: 'object', properties: { insured: { type: 'boolean' } }, required: ['insured'] },
        });
        return inputRequired({ inputRequests: { insure }, requestState: '€7' });
      }
      const insured = acceptedContent(ctx.mcpReq.inputResponses, 'insure')?.['insured'] === true;
      const text = `${name} ships ${parcel} for ${price}, ${insured ? 'insured' : 'not insured'}`;
      return { content: [{ type: 'text', text }] };
    });
    return server;
  });
}
