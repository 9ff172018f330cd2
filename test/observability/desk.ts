import { InMemoryTransport, Server } from '@modelcontextprotocol/server';
import type { RequestStateCodec } from '@sealring/core';
import { protectRequestState, RequestStateSecurity } from '@sealring/mcp';

/** Makes the boundary seal a state, accept its token, and refuse forgeries of it. */
export async function traffic(codec: RequestStateCodec): Promise<void> {
  const first = await ask(codec, undefined);
  const token = String(Reflect.get(Object(first), 'requestState'));
  await ask(codec, token);
  await ask(codec, `${token.slice(0, -8)}AAAAAAAA`);
  await ask(codec, 'nonsense');
  await ask(codec, token, 'another tool');
}

/** One tools/call to a protected server: without a token it answers with a question, and the token of its state. */
export async function ask(
  codec: RequestStateCodec,
  requestState: string | undefined,
  name = 'refund',
): Promise<unknown> {
  const server = new Server({ name: 'desk', version: '1.0.0' });
  protectRequestState(server, new RequestStateSecurity({ codec }), { defaultAudience: 'desk' });
  server.fallbackRequestHandler = async (_request, ctx) =>
    ctx.mcpReq.requestState() === undefined
      ? { resultType: 'input_required', requestState: 'a state', inputRequests: {} }
      : { content: [] };
  const [client, transport] = InMemoryTransport.createLinkedPair();
  await server.connect(transport);
  const answer = new Promise<unknown>((resolve) => Object.assign(client, { onmessage: resolve }));
  await client.start();
  const params = { name, arguments: {}, ...(requestState === undefined ? {} : { requestState }) };
  await client.send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
  const message = await answer;
  await client.close();
  return Reflect.get(Object(message), 'result');
}
