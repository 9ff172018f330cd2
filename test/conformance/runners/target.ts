import { randomBytes } from 'node:crypto';
import type { CodecTarget } from '@sealring/conformance';
import { AesGcmRequestStateCodec } from '@sealring/core';

const [a, b] = [randomBytes(32), randomBytes(32)];
const codec = (...keys: Uint8Array[]) => ({ codec: new AesGcmRequestStateCodec(keys) });

/** The Python SDK's codec; with `SEALRING_BROKEN` it forgets old keys at a rotation. */
export const target: CodecTarget = {
  name: 'a runner’s',
  create: () => codec(a),
  createPeer: () => codec(a),
  createStranger: () => codec(b),
  createRotated: () => (process.env['SEALRING_BROKEN'] === undefined ? codec(b, a) : codec(b)),
};
