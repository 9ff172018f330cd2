import type { CodecTarget } from '../../src/index.ts';
import { soundCodec } from '../zoo/broken-codecs.ts';

/** A codec with equal keys in every process and nonces that count from zero in each. */
export function counted(name: string, mark: number): CodecTarget {
  let ordinal = 0;
  const make = soundCodec({
    nonce() {
      const nonce = Buffer.alloc(12);
      nonce.writeUInt32BE(mark);
      nonce.writeUInt32BE(ordinal++, 8);
      return nonce;
    },
  });
  const [a, b] = [Buffer.alloc(32, 'a'), Buffer.alloc(32, 'b')];
  return {
    name,
    create: () => ({ codec: make([a]) }),
    createPeer: () => ({ codec: make([a]) }),
    createStranger: () => ({ codec: make([b]) }),
    createRotated: () => ({ codec: make([b, a]) }),
  };
}
