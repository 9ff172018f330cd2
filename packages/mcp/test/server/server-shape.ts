import { randomBytes } from 'node:crypto';
import { runInThisContext } from 'node:vm';
import { InMemoryTransport, McpServer } from '@modelcontextprotocol/server';
import { createProtectedMcpServer, RequestStateSecurity } from '../../src/index.ts';

// Run with --allow-natives-syntax, which is not TypeScript.
const isFast = runInThisContext('(object) => %HasFastProperties(object)');

const security = new RequestStateSecurity({ keys: [randomBytes(32)] });
const server = createProtectedMcpServer({ McpServer, serverInfo: { name: 'a', version: '1.0.0' }, security });
server.server.fallbackRequestHandler = async () => ({});
const [transport] = InMemoryTransport.createLinkedPair();
await server.connect(transport);
const shapes = [server.server, server, transport].map((object) => String(isFast(object)));
process.stdout.write(`server ${shapes[0]}, its McpServer ${shapes[1]}, transport ${shapes[2]}\n`);
await server.close();
