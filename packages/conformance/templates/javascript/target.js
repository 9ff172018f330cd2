import { randomBytes } from 'node:crypto';
import { MyCodec } from './codec.js';

const [a, b, others] = [randomBytes(32), randomBytes(32), randomBytes(32)];

/** @type {import('@sealring/conformance').CodecTarget} */
const target = {
  name: 'my codec',
  create: () => ({ codec: new MyCodec(a) }),
  // Another process of your fleet, with the same keys.
  createPeer: () => ({ codec: new MyCodec(a) }),
  // Another service, with other keys.
  createStranger: () => ({ codec: new MyCodec(others) }),
  // After a rotation: seals with B and still unseals tokens of A.
  createRotated: () => ({ codec: new MyCodec(b, a) }),
};
export default target;
