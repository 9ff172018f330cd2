import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Fleet, seal } from '../support/fleet.ts';

let fleet: Fleet;
beforeEach(() => {
  fleet = new Fleet();
});
afterEach(() => fleet.close());

test('inspect of a token in the Python format names the key with the fingerprint in the token', async () => {
  const native = await fleet.start();
  const python = await fleet.start({ format: 'python' });
  const token = seal(python);
  const keyId = native.codec.health().sealingKey ?? '';
  const active = { format: 'python', keyId, state: 'active', stale: false };
  for (const { codec } of [native, python]) expect(codec.inspect(token)).toEqual(active);
  await native.codec.rotate({ emergency: true });
  await fleet.clock.advance(1_200);
  seal(native);
  expect(native.codec.inspect(token)).toEqual({ ...active, state: 'verify-only', stale: true });
  await native.codec.revoke(keyId);
  expect(native.codec.inspect(token)).toEqual({ ...active, keyId: '', state: 'unknown' });

  const foreign = `v1.${randomBytes(80).toString('base64url')}`;
  expect(native.codec.inspect(foreign)).toEqual({ format: 'python', keyId: '', state: 'unknown', stale: false });
});

test('inspect refuses text that is not base64url, so that it shows no control characters', async () => {
  const { codec } = await fleet.start();
  const hostile = `sr1.\u001b]0;title\u0007\u001b[2J${'A'.repeat(120)}`;
  for (const token of [hostile, `sr1.${'A'.repeat(40)}\u202e${'A'.repeat(80)}`, `v1.\u001b[2J${'A'.repeat(80)}`]) {
    expect(() => codec.inspect(token)).toThrow('malformed');
  }
});
