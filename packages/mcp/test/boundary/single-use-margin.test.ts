import { randomBytes } from 'node:crypto';
import { createKmsCodec, localKeyWrapper, memoryRing } from '@sealring/core';
import { expect, test } from 'vitest';
import { memorySingleUse, RequestStateSecurity, type SingleUseStore } from '../../src/index.ts';

const KEY = randomBytes(32);
const open = (clockSkewSeconds: number) =>
  createKmsCodec({
    keyWrapper: localKeyWrapper({ masterKey: KEY }),
    ring: memoryRing(),
    policy: { clockSkewSeconds },
  });

test('RequestStateSecurity rejects a single-use store whose margin is smaller than the clock skew, and names both values (F48)', async () => {
  await using codec = await open(600);
  for (const over of [codec, codec.for('refunds')]) {
    expect(over.clockSkewSeconds).toBe(600);
    for (const clockSkewSeconds of [undefined, 599, 0]) {
      const singleUse = memorySingleUse(clockSkewSeconds === undefined ? {} : { clockSkewSeconds });
      const construct = () => new RequestStateSecurity({ codec: over, singleUse });
      expect(construct).toThrow(RangeError);
      expect(construct).toThrow(`singleUse.clockSkewSeconds ${clockSkewSeconds ?? 300} must be at least 600`);
    }
    for (const clockSkewSeconds of [600, 601]) {
      expect(
        () => new RequestStateSecurity({ codec: over, singleUse: memorySingleUse({ clockSkewSeconds }) }),
      ).not.toThrow();
    }
  }
});

test('RequestStateSecurity accepts a store or codec without a margin, and rejects a margin that is not a number', async () => {
  await using codec = await open(600);
  const claim = async () => true;
  const secure = (singleUse: object, over: object = { codec }) => {
    const construct = (): unknown => Reflect.construct(RequestStateSecurity, [{ ...over, singleUse }]);
    return construct;
  };
  const plain: SingleUseStore = { claim };
  expect(secure(plain)).not.toThrow();
  expect(secure(memorySingleUse({ clockSkewSeconds: 0 }), { keys: [KEY] })).not.toThrow();
  expect(secure({ claim, clockSkewSeconds: '900' })).toThrow(TypeError);
  expect(secure({ claim, clockSkewSeconds: Number.NaN })).toThrow(RangeError);
});
