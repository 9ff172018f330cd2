import { inputRequired, isInputRequiredResult, McpServer } from '@modelcontextprotocol/server';
import { createKmsCodec, type KeyWrapper, type RingStore } from '@sealring/core';
import { createProtectedMcpServer, RequestStateSecurity } from '@sealring/mcp';
import { inputSchema } from './carrier.ts';
import { type Served, serve } from './serve.ts';
import { callUpstream } from './upstream.ts';

interface ProxyOptions {
  readonly keyWrapper: KeyWrapper;
  readonly ring: RingStore;
  /** Where to find each carrier, by name. */
  readonly carriers: ReadonlyMap<string, string>;
  /** Where this proxy sends new parcels. */
  readonly prefers: string;
}

/** The state that the proxy needs between two rounds. */
interface Held {
  readonly carrier: string;
  /** The carrier's own token, opaque to us. */
  readonly requestState?: string;
}

/** One server in front of several. Its clients see one tool and one kind of token. */
export async function startProxy(name: string, { keyWrapper, ring, carriers, prefers }: ProxyOptions): Promise<Served> {
  const codec = await createKmsCodec({ keyWrapper, ring, ringName: 'shipping-proxy' });
  const refusals: string[] = [];
  const security = new RequestStateSecurity({
    codec,
    requireSubject: true,
    onReject: ({ reason }) => refusals.push(reason),
  });
  const served = await serve(name, refusals, () => {
    const server = createProtectedMcpServer({
      McpServer,
      serverInfo: { name: 'shipping-proxy', version: '1.0.0' },
      security,
    });
    server.registerTool('ship', { description: 'Ships with some carrier', inputSchema }, async (args, ctx) => {
      const state = ctx.mcpReq.requestState<string>();
      // Safe to follow: a proxy of this fleet wrote it. A client cannot choose a carrier, or an address.
      const held: Held = state === undefined ? { carrier: prefers } : JSON.parse(state);
      const url = carriers.get(held.carrier);
      if (url === undefined) throw new Error('a carrier that we no longer have');
      const user = String(ctx.http?.authInfo?.extra?.['sub']);
      const { requestState } = held;
      const { inputResponses } = ctx.mcpReq;
      const answer = await callUpstream(url, user, { name: 'ship', arguments: args, requestState, inputResponses });
      if (!isInputRequiredResult(answer)) return answer;
      const { inputRequests, requestState: theirs } = answer;
      const next: Held = { carrier: held.carrier, ...(theirs !== undefined && { requestState: theirs }) };
      return inputRequired({ ...(inputRequests && { inputRequests }), requestState: JSON.stringify(next) });
    });
    return server;
  });
  return {
    ...served,
    async close() {
      await served.close();
      await codec.close();
    },
  };
}
