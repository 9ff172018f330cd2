import type { RequestStateCodec } from '@sealring/core';
import type { CodecTarget } from '../../src/index.ts';
import { soundCodec, zooTarget } from '../zoo/broken-codecs.ts';

/** A sound codec with a side effect in seal and, optionally, in unseal. */
export function around(
  name: string,
  onSeal: (payload: Uint8Array) => void,
  onOpen: (payload: Uint8Array) => Uint8Array = (payload) => payload,
): CodecTarget {
  const make = soundCodec();
  return zooTarget(name, (keys): RequestStateCodec => {
    const sound = make(keys);
    return {
      seal(payload) {
        onSeal(payload);
        return sound.seal(payload);
      },
      unseal: (token) => onOpen(sound.unseal(token)),
    };
  });
}
