import { afterEach, beforeEach, expect, test } from 'vitest';
import { formatSecretsOf } from '../src/format-secrets.ts';
import { Fleet } from './support/fleet.ts';

let fleet: Fleet;
beforeEach(() => {
  fleet = new Fleet();
});
afterEach(() => fleet.close());

test('the secrets of a format come from the keys of the ring, newest first, and differ by format', async () => {
  const { codec } = await fleet.start();
  const secrets = formatSecretsOf(codec, 'python');
  const { seal } = secrets;
  await codec.rotate({ emergency: true });
  expect(secrets.open.map((each) => each.equals(seal))).toEqual([false, true]);
  expect(secrets.seal.equals(seal)).toBe(true);
  expect(formatSecretsOf(codec, 'mcp.d').seal.equals(seal)).toBe(false);
});

test('a token that no secret unseals triggers a read of the ring, and the call does not reject', async () => {
  const [one, other] = await fleet.startAll(2);
  await other?.codec.rotate({ emergency: true });
  const secrets = formatSecretsOf(one?.codec ?? {}, 'python');
  expect(secrets.open).toHaveLength(1);
  await secrets.noteUnknownKey();
  expect(secrets.open).toHaveLength(2);
});

test('an object that is not a codec over a ring is refused with a TypeError', () => {
  expect(() => formatSecretsOf({}, 'python')).toThrow(TypeError);
  expect(() => formatSecretsOf({}, 'python')).toThrow(/codec must be a KmsCodec, got an object/);
});
