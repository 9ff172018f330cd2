/** A refund server on the official TypeScript SDK, in a fleet with Python ones. Settings: JSON, as `settings.ts` describes them. */
import { createServer } from 'node:http';
import { KMSClient } from '@aws-sdk/client-kms';
import { toNodeHandler } from '@modelcontextprotocol/node';
import {
  type AuthInfo,
  type CallToolResult,
  createMcpHandler,
  fromJsonSchema,
  type InputRequiredResult,
  inputRequired,
  McpServer,
} from '@modelcontextprotocol/server';
import { awsKmsKeyWrapper } from '@sealring/aws-kms';
import { createKmsCodec } from '@sealring/core';
import { createProtectedMcpServer, RequestStateSecurity } from '@sealring/mcp';
import { redisRing } from '@sealring/redis';
import type { ServerSettings } from './settings.ts';

const settings: ServerSettings = JSON.parse(process.argv[2] ?? '');
const { name, kms } = settings;
const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
const client = new KMSClient({ endpoint: kms.endpoint, region: 'us-east-1', maxAttempts: 1, credentials });
const ring = redisRing({ url: settings.redis, key: settings.redisKey });

const codec = await createKmsCodec({
  keyWrapper: awsKmsKeyWrapper({ keyId: kms.keyId, client }),
  ring,
  ringName: settings.ringName,
  policy: settings.policy,
});
const security = new RequestStateSecurity({ codec, ttlSeconds: settings.ttlSeconds, audience: settings.audience });

const mcp = createMcpHandler(() => {
  const server = createProtectedMcpServer({ McpServer, serverInfo: { name, version: '1.0.0' }, security });
  const inputSchema = fromJsonSchema<{ order: string }>({
    type: 'object',
    properties: { order: { type: 'string' } },
    required: ['order'],
  });
  server.registerTool('refund', { inputSchema }, ({ order }, ctx): CallToolResult | InputRequiredResult => {
    const state = ctx.mcpReq.requestState<string>();
    if (state !== undefined) {
      return { content: [{ type: 'text', text: JSON.stringify({ ...JSON.parse(state), openedBy: name }) }] };
    }
    const sure = inputRequired.elicit({
      message: 'Refund?',
      requestedSchema: { type: 'object', properties: { ok: { type: 'boolean' } } },
    });
    return inputRequired({ inputRequests: { sure }, requestState: JSON.stringify({ order, sealedBy: name }) });
  });
  server.registerTool('keep', {}, (ctx): CallToolResult | InputRequiredResult => {
    const state = ctx.mcpReq.requestState<string>();
    return state === undefined ? inputRequired({ requestState: 'kept' }) : { content: [{ type: 'text', text: state }] };
  });
  return server;
});

const handle = toNodeHandler(mcp);
const http = createServer((request, response) => {
  const { method = 'GET', url = '/' } = request;
  // The bearer token is the user's name.
  const user = request.headers.authorization?.slice('Bearer '.length) ?? '';
  const auth: AuthInfo = { token: user, clientId: 'web', scopes: [], extra: { iss: settings.issuer, sub: user } };
  void handle(Object.assign(request, { method, url, auth }), response);
});
http.listen(0, '127.0.0.1', () => {
  const address = http.address();
  if (address === null || typeof address === 'string') throw new Error('not listening on a port');
  process.stdout.write(`${JSON.stringify({ port: address.port })}\n`);
});

process.once('SIGTERM', () => {
  http.close(() => {
    void (async () => {
      await mcp.close();
      await codec.close();
      await ring.close?.();
      client.destroy();
    })();
  });
});
