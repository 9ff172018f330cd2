import type { CodecTarget } from '../../src/index.ts';
import { soundCodec } from '../zoo/broken-codecs.ts';

/** A codec with the same keys in every process, whose nonces are counted from zero in each. */
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
