import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import { afterEach, expect, test } from 'vitest';
import { createMcpdRequestStateCodec } from '../../src/mcpd/index.ts';

const { randomBytes } = crypto;
const setGenerator = (generator: typeof randomBytes): void => {
  crypto.randomBytes = generator;
  syncBuiltinESMExports();
};
afterEach(() => setGenerator(randomBytes));

test('two payloads never get the same nonce in mcp.d’s format, even if the random generator is stuck (F2)', () => {
  const states = createMcpdRequestStateCodec({ key: randomBytes(32), mode: 'encrypted' });
  const stuck = ((size: number) => Buffer.alloc(size, 7)) as typeof randomBytes;
  setGenerator(stuck);
  const tokens = Array.from({ length: 100 }, (_, n) => states.encode(`state ${n}`, { subject: 'alice' }));
  const nonces = tokens.map((token) => Buffer.from(token.slice('v1e.'.length), 'base64url').toString('hex', 0, 12));
  expect(new Set(nonces).size).toBe(100);
  expect(tokens.map((token) => states.decode(token, { subject: 'alice' }))).toEqual(tokens.map((_, n) => `state ${n}`));
});
