import { afterEach, beforeEach, expect, test } from 'vitest';
import { Fleet, open, seal } from '../support/fleet.ts';

let fleet: Fleet;
beforeEach(() => {
  fleet = new Fleet();
});
afterEach(() => fleet.close());

/** A generator that is stuck once the codec has started, as in a copied machine. */
function stuckGenerator() {
  let isStuck = false;
  return {
    stick: (): void => void (isStuck = true),
    random: (fill: Uint8Array): void => void (isStuck ? fill.fill(7) : crypto.getRandomValues(fill)),
  };
}

const nonceOf = (token: string): string =>
  Buffer.from(token.slice('v1.'.length), 'base64url').subarray(4, 16).toString('hex');

test('with hedge, no two payloads share a nonce in the python format if the generator is stuck (F2)', async () => {
  const { stick, random } = stuckGenerator();
  const member = await fleet.start({ format: 'python', hedge: true, random });
  stick();
  const tokens = Array.from({ length: 100 }, (_, n) => seal(member, `state ${n}`));
  expect(new Set(tokens.map(nonceOf)).size).toBe(100);
  expect(tokens.map((token) => open(member, token))).toEqual(tokens.map((_, n) => `state ${n}`));
});
