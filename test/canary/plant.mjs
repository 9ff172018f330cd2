// Loaded before everything else, into every Node process of a canary run: `NODE_OPTIONS=--import=…/plant.mjs`.
//
// Every 32 random bytes that a program draws begin with the mark of the run. Data keys, master keys, HMAC secrets and
// the tokens of test servers are made from them; public values are not: nonces have 12 bytes, salts 18.
import crypto from 'node:crypto';
import { subscribe } from 'node:diagnostics_channel';
import { syncBuiltinESMExports } from 'node:module';
import { inspect } from 'node:util';

const mark = Buffer.from(process.env.SEALRING_CANARY ?? '', 'hex');
const KEY_BYTES = 32;

function marked(bytes) {
  if (bytes.byteLength === KEY_BYTES) new Uint8Array(bytes.buffer ?? bytes, bytes.byteOffset ?? 0).set(mark);
  return bytes;
}

if (mark.length > 0) {
  const { randomBytes, randomFillSync } = crypto;
  crypto.randomBytes = (size, callback) =>
    callback === undefined
      ? marked(randomBytes(size))
      : randomBytes(size, (error, bytes) => callback(error, error === null ? marked(bytes) : bytes));
  crypto.randomFillSync = (target, offset, size) => {
    randomFillSync(target, ...[offset, size].filter((given) => given !== undefined));
    return offset === undefined ? marked(target) : target;
  };
  const { webcrypto } = crypto;
  const getRandomValues = webcrypto.getRandomValues.bind(webcrypto);
  Object.getPrototypeOf(webcrypto).getRandomValues = (target) => marked(getRandomValues(target));
  syncBuiltinESMExports();
  // Prints every event completely, as an observer of a codec may do.
  const print = (message, name) =>
    process.stderr.write(`${String(name)} ${inspect(message, { depth: 9, showHidden: true })}\n`);
  const channels = (process.env.SEALRING_CANARY_EVENTS ?? '').split(' ').filter(Boolean);
  for (const name of channels) subscribe(name, print);
}
