import type { Contender } from './contender.ts';
import { encryptionSdk } from './encryption-sdk.ts';
import { bareCipher, plainCodec } from './floors.ts';
import { iron, ironWebcrypto } from './iron.ts';
import { jose } from './jose.ts';
import { payloadCodec } from './payload-codec.ts';
import { sealring, sealringPythonWire } from './sealring.ts';
import { fastifySecureSession } from './secure-session.ts';
import { typescriptSdk } from './typescript-sdk.ts';

export type { Contender } from './contender.ts';

/** All contenders, Sealring first, by their names in the tables. */
export const CONTENDERS: Readonly<Record<string, () => Contender | Promise<Contender>>> = {
  Sealring: sealring,
  'Sealring (Python wire)': sealringPythonWire,
  'bare cipher': bareCipher,
  'plain codec': plainCodec,
  'TypeScript SDK': typescriptSdk,
  jose,
  '@hapi/iron': iron,
  'iron-webcrypto': ironWebcrypto,
  '@fastify/secure-session': fastifySecureSession,
  'AWS Encryption SDK': encryptionSdk,
  'payload codec': payloadCodec,
};

export async function startContender(name: string): Promise<Contender> {
  const start = CONTENDERS[name];
  if (start === undefined) throw new RangeError(`no contender ${JSON.stringify(name)}`);
  return await start();
}
