import { randomBytes } from 'node:crypto';
import { createKmsCodec, localKeyWrapper, memoryRing } from '@sealring/core';
import { expect, test } from 'vitest';
import { RequestStateSecurity } from '../src/index.ts';

test('RequestStateSecurity rejects a ttlSeconds longer than the tokenLifetimeSeconds of a codec made by codec.for()', async () => {
  const keyWrapper = localKeyWrapper({ masterKey: randomBytes(32) });
  await using codec = await createKmsCodec({ keyWrapper, ring: memoryRing() });
  const securityOf = (ttlSeconds: number) => new RequestStateSecurity({ codec: codec.for('boundary'), ttlSeconds });
  expect(() => securityOf(10_000_000)).toThrow(RangeError);
  expect(() => securityOf(3_600)).not.toThrow();
});
