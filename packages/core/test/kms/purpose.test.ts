import { afterEach, beforeEach, expect, test } from 'vitest';
import { Fleet, type Member } from '../support/fleet.ts';

let fleet: Fleet;
beforeEach(() => {
  fleet = new Fleet();
});
afterEach(() => fleet.close());

const text = new TextEncoder();
const cursorOf = ({ codec }: Member) => codec.for('cursor');

test('the codec of a purpose has the token lifetime, prepare, inspect and health of its ring', async () => {
  const a = await fleet.start({ format: 'python', policy: { tokenLifetimeSeconds: 1_800 } });
  const cursor = cursorOf(a);
  expect(cursor.tokenLifetimeSeconds).toBe(1_800);
  expect(cursor.health()).toEqual(a.codec.health());
  const token = cursor.seal(text.encode('state'));
  expect(cursor.inspect(token)).toEqual({
    format: 'sealring',
    keyId: a.codec.health().sealingKey,
    state: 'active',
    stale: false,
  });
  expect(() => cursor.inspect(a.codec.seal(text.encode('state')))).toThrow('malformed');
  expect(() => Reflect.apply(Reflect.get(cursor, 'prepare'), cursor, [token, { signal: 1 }])).toThrow(TypeError);
});

test('after a revocation by another member, a purpose unseals its token once prepare has run', async () => {
  const policy = { missRefreshSeconds: 0 };
  const a = await fleet.start({ policy });
  const b = await fleet.start({ policy, ring: fleet.store.connectUnwatched() });
  await a.codec.revoke(a.codec.health().sealingKey ?? '');
  const token = cursorOf(a).seal(text.encode('state'));
  await cursorOf(b).prepare(token);
  expect(new TextDecoder().decode(cursorOf(b).unseal(token))).toBe('state');
});

test('every method of the codec of a purpose throws once the codec is closed', async () => {
  const a = await fleet.start();
  const cursor = cursorOf(a);
  const token = cursor.seal(text.encode('state'));
  await a.codec.close();
  const closed = { name: 'CodecClosedError' };
  const uses = [
    () => cursor.inspect(token),
    () => cursor.health(),
    () => cursor.unseal(token),
    () => cursor.prepare(token),
  ];
  for (const use of uses) {
    expect(use).toThrow(expect.objectContaining(closed));
  }
});
