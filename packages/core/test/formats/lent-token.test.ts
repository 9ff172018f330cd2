import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { Moment } from '../../src/base/clock.ts';
import {
  deriveTokenKey,
  sealSealring,
  type TokenKey,
  tokenKeySource,
  unsealingTokenKey,
  unsealSealring,
} from '../../src/formats/sealring.ts';
import { type DecodedToken, decodeToken, withDecodedToken } from '../../src/formats/sealring-token.ts';

const now: Moment = Object.freeze({ wallMs: 1_795_000_000_000, steadyMs: 5_000 });

describe('a lent token', () => {
  const dataKey = randomBytes(32);
  const source = tokenKeySource(dataKey, 'payments');
  const sealed = (payload: string): string =>
    sealSealring(deriveTokenKey(source, randomBytes(18)), randomBytes(12), Buffer.from(payload), new Uint8Array(16));
  const opened = (token: DecodedToken): string =>
    Buffer.from(unsealSealring(unsealingTokenKey(source, token, undefined), token)).toString();

  test('a lent token has the same parts as a token that is decoded into its own bytes, whatever its length', () => {
    for (const length of [0, 1, 100, 4_095, 4_096, 4_097, 10_000]) {
      const token = sealed('x'.repeat(length));
      const copied = withDecodedToken(
        token,
        (lent) => ({ ...lent, words: new Int32Array(lent.words) }),
        undefined,
        now,
      );
      expect(withDecodedToken(token, opened, undefined, now)).toBe('x'.repeat(length));
      expect(copied.words).toEqual(decodeToken(token).words);
    }
  });

  test('withDecodedToken passes the token, its owner and the moment to the callback, and passes on its result or error', () => {
    const token = sealed('state');
    const owner = {};
    expect(withDecodedToken(token, (_, ...others) => others, owner, now)).toEqual([token, owner, now]);
    const failing = (): never => {
      throw new Error('failed');
    };
    expect(() => withDecodedToken(token, failing, owner, now)).toThrow('failed');
    expect(withDecodedToken(token, opened, owner, now)).toBe('state');
  });

  test('keeps its bytes while another one is decoded, lent or sealed', () => {
    const [one, two] = [sealed('one'), sealed('two')];
    const both = withDecodedToken(
      one,
      (lent) => {
        const inner = [withDecodedToken(two, opened, undefined, now), opened(decodeToken(two))];
        sealed('three');
        return [...inner, opened(lent)];
      },
      undefined,
      now,
    );
    expect(both).toEqual(['two', 'two', 'one']);
  });

  test('authenticates nothing once it has been returned, whichever token comes after it', () => {
    const key = tokenKeySource(dataKey, 'payments');
    const tokenKey = (token: string): TokenKey => unsealingTokenKey(key, decodeToken(token), undefined);
    const [one, two] = [sealed('one'), sealed('two')];
    const kept = withDecodedToken(one, (lent) => lent, undefined, now);
    expect(() => unsealSealring(tokenKey(one), kept)).toThrow('authentication failed');
    withDecodedToken(two, opened, undefined, now);
    expect(() => unsealSealring(tokenKey(two), kept)).toThrow('authentication failed');
    expect(opened(decodeToken(two))).toBe('two');
  });
});
