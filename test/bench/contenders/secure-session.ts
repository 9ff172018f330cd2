import { randomBytes } from 'node:crypto';
import secureSession from '@fastify/secure-session';
import fastify from 'fastify';
import { type Contender, lengthOfText } from './contender.ts';

declare module '@fastify/secure-session' {
  interface SessionData {
    state: string;
  }
}

export async function fastifySecureSession(): Promise<Contender> {
  const app = fastify();
  await app.register(secureSession, { key: randomBytes(32) });
  await app.ready();
  return {
    note: 'XSalsa20-Poly1305 of libsodium over a JSON session',
    seal: (_payload, text) => app.encodeSecureSession(app.createSecureSession({ state: text })),
    unseal: (sealed) => app.decodeSecureSession(String(sealed))?.get('state'),
    lengthOf: lengthOfText,
    isPayload: (opened, _payload, text) => opened === text,
    close: () => app.close(),
  };
}
