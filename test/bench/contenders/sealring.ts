import { randomBytes } from 'node:crypto';
import { createKmsCodec, type KmsCodecOptions, localKeyWrapper, memoryRing } from '@sealring/core';
import { type Contender, isBytes, lengthOfText } from './contender.ts';

async function overRing(note: string, format: KmsCodecOptions['format']): Promise<Contender> {
  const codec = await createKmsCodec({
    keyWrapper: localKeyWrapper({ masterKey: randomBytes(32) }),
    ring: memoryRing(),
    ...(format === undefined ? {} : { format }),
  });
  return {
    note,
    seal: (payload) => codec.seal(payload),
    unseal: (sealed) => codec.unseal(String(sealed)),
    lengthOf: lengthOfText,
    isPayload: isBytes,
    close: () => codec.close(),
  };
}

export function sealring(): Promise<Contender> {
  return overRing('a ring under a KMS, native tokens', 'sealring');
}

export function sealringPythonWire(): Promise<Contender> {
  return overRing('the same ring, tokens of the MCP Python SDK', 'python');
}
