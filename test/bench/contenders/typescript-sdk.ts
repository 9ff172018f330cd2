import { randomBytes } from 'node:crypto';
import { createRequestStateCodec, type ServerContext } from '@modelcontextprotocol/server';
import { type Contender, lengthOfText } from './contender.ts';

export function typescriptSdk(): Contender {
  const codec = createRequestStateCodec<string>({ key: randomBytes(32) });
  // Without `bind` the context is not read.
  const context = Object.create(null) as ServerContext;
  return {
    note: '`createRequestStateCodec` of @modelcontextprotocol/server: HMAC-SHA-256, readable by the client',
    seal: (_payload, text) => codec.mint(text, context),
    unseal: (sealed) => codec.verify(String(sealed), context),
    lengthOf: lengthOfText,
    isPayload: (opened, _payload, text) => opened === text,
  };
}
