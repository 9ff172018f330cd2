import { soundCodec, zooTarget } from '../zoo/broken-codecs.ts';

// Equal keys in every process, as in a fleet.
const make = soundCodec();
const keys = ['a', 'b'].map((letter) => Buffer.alloc(32, letter)) as [Buffer, Buffer];
export const target = {
  ...zooTarget('keeps its keys', make),
  create: () => ({ codec: make([keys[0]]) }),
  createPeer: () => ({ codec: make([keys[0]]) }),
  createStranger: () => ({ codec: make([keys[1]]) }),
  createRotated: () => ({ codec: make(keys.toReversed()) }),
};
