import { randomBytes } from 'node:crypto';
import hapiIron from '@hapi/iron';
import { defaults, seal, unseal } from 'iron-webcrypto';
import { type Contender, lengthOfText } from './contender.ts';

const shared = {
  lengthOf: lengthOfText,
  isPayload: (opened: unknown, _payload: Buffer, text: string) => opened === text,
};

export function iron(): Contender {
  const password = randomBytes(32).toString('hex');
  return {
    ...shared,
    note: 'string password, its defaults: a key is derived for every token',
    seal: (_payload, text) => hapiIron.seal(text, password, hapiIron.defaults),
    unseal: (sealed) => hapiIron.unseal(String(sealed), password, hapiIron.defaults),
  };
}

export function ironWebcrypto(): Contender {
  const password = randomBytes(32).toString('hex');
  return {
    ...shared,
    note: 'the same on WebCrypto',
    seal: (_payload, text) => seal(text, password, defaults),
    unseal: (sealed) => unseal(String(sealed), password, defaults),
  };
}
