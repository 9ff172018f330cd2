import { randomBytes } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { McpServer } from '@modelcontextprotocol/server';
import { createKmsCodec, localKeyWrapper, memoryRing, type RingStore } from '@sealring/core';
import { createProtectedMcpServer, RequestStateSecurity } from '../../src/index.ts';
import { registerRefund, serveHttp } from '../support/served.ts';

const SEAL_OUTAGE_SECONDS = 1.5;
const POLICY = {
  clockSkewSeconds: 0,
  refreshEverySeconds: 0.3,
  backoffCapSeconds: 0.1,
  kmsCheckEverySeconds: 0.4,
  sealOutageSeconds: SEAL_OUTAGE_SECONDS,
  storeOutageSeconds: 3_600,
  rotateEverySeconds: 86_400,
  missRefreshSeconds: 0,
};

/** A store in a distant region: a read takes longer than the arrival of the request that waits for it. */
function distant(ring: RingStore): RingStore {
  return {
    kind: ring.kind,
    read: async (options) => {
      await setTimeout(200);
      return await ring.read(options);
    },
    write: (document, options) => ring.write(document, options),
  };
}

const codec = await createKmsCodec({
  keyWrapper: localKeyWrapper({ masterKey: randomBytes(32) }),
  ring: distant(memoryRing()),
  policy: POLICY,
});
const security = new RequestStateSecurity({ codec });
const { url } = await serveHttp(() => {
  const server = createProtectedMcpServer({
    McpServer,
    serverInfo: { name: 'refund-desk', version: '1.0.0' },
    security,
  });
  registerRefund(server);
  return server;
});
process.stdout.write(`${JSON.stringify({ url, sealOutageSeconds: SEAL_OUTAGE_SECONDS })}\n`);
